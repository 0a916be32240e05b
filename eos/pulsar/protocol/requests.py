"""Which answer belongs to which request.

A request carries a number, and so does its answer: the one command that answers this kind of request, or a refusal.
A broker refuses by that command or by ERROR; Pulsar Proxy (4.0.6) also by the answer to another kind of request: it
refuses PARTITIONED_METADATA by LOOKUP_RESPONSE. Answers come in any order. In Pulsar's protocol the number of a
command's type is also the number of the field that holds its body.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from eos.errors import Refused, UnexpectedFrame
from eos.pulsar.protocol.refusals import refused
from eos.pulsar.wire.frames import error_name
from eos.pulsar.wire.pulsar_pb2 import BaseCommand

T = TypeVar("T")
Type = BaseCommand.Type

ANSWERS: dict[int, int] = {
    Type.SUBSCRIBE: Type.SUCCESS,
    Type.PRODUCER: Type.PRODUCER_SUCCESS,
    Type.ACK: Type.ACK_RESPONSE,
    Type.UNSUBSCRIBE: Type.SUCCESS,
    Type.SEEK: Type.SUCCESS,
    Type.CLOSE_PRODUCER: Type.SUCCESS,
    Type.CLOSE_CONSUMER: Type.SUCCESS,
    Type.PARTITIONED_METADATA: Type.PARTITIONED_METADATA_RESPONSE,
    Type.LOOKUP: Type.LOOKUP_RESPONSE,
    Type.GET_TOPICS_OF_NAMESPACE: Type.GET_TOPICS_OF_NAMESPACE_RESPONSE,
    Type.GET_SCHEMA: Type.GET_SCHEMA_RESPONSE,
    Type.GET_LAST_MESSAGE_ID: Type.GET_LAST_MESSAGE_ID_RESPONSE,
    Type.NEW_TXN: Type.NEW_TXN_RESPONSE,
    Type.ADD_PARTITION_TO_TXN: Type.ADD_PARTITION_TO_TXN_RESPONSE,
    Type.END_TXN: Type.END_TXN_RESPONSE,
    Type.TC_CLIENT_CONNECT_REQUEST: Type.TC_CLIENT_CONNECT_RESPONSE,
}
"""{request: the command that grants it}. A refusal may come by any of `ANSWERING`."""

ANSWERING = frozenset(ANSWERS.values()) | {Type.ERROR}
"""The commands that answer a request."""

_REFUSED_BY = (("error", "message"), ("error_code", "error_message"))
"""The fields by which an answer refuses: most have the first two, those about schemas the others."""

_FIELDS = {number: field.name for number, field in BaseCommand.DESCRIPTOR.fields_by_number.items()}


def body(command: BaseCommand) -> Any:
    """Return the message inside a command, for its type."""
    return getattr(command, _FIELDS[command.type])


def refusal(answer: BaseCommand, asked: str) -> Refused | None:
    """Return the broker's refusal, or None when the answer is a good one."""
    inside = body(answer)
    for code, words in _REFUSED_BY:
        if code in inside.DESCRIPTOR.fields_by_name and inside.HasField(code):
            return refused(asked, error_name(getattr(inside, code)), getattr(inside, words))
    return None


def granted(answer: BaseCommand, asked: str) -> BaseCommand:
    """Return the answer; raise Refused when it is a refusal."""
    problem = refusal(answer, asked)
    if problem is not None:
        raise problem
    return answer


class Requests(Generic[T]):
    """Numbers requests and finds what waits for an answer.

    T is the type that the caller wants back with the answer. Not thread-safe.
    """

    def __init__(self) -> None:
        self._next = 0
        self._waiting: dict[int, tuple[int, T]] = {}

    def number(self, request: BaseCommand, waiting: T) -> int:
        """Write the next number into the request, and remember who waits for its answer."""
        request_id = self._next
        self._next += 1
        body(request).request_id = request_id
        self._waiting[request_id] = (ANSWERS[request.type], waiting)
        return request_id

    @property
    def waiting(self) -> bool:
        """Whether an answer is awaited."""
        return bool(self._waiting)

    def forget(self, request_id: int) -> None:
        """Stop waiting: a later answer to this request is dropped."""
        self._waiting.pop(request_id, None)

    def match(self, answer: BaseCommand) -> T | None:
        """Return the waiter for this answer, once. None where there is none, or none any longer.

        Raises UnexpectedFrame when the command can't be an answer to that request: it grants another one.
        """
        request_id = body(answer).request_id
        expected, waiting = self._waiting.get(request_id, (answer.type, None))
        if answer.type not in (expected, Type.ERROR) and refusal(answer, "") is None:
            given, wanted = Type.Name(answer.type), Type.Name(expected)
            raise UnexpectedFrame(f"{given} as an answer to request {request_id}, not {wanted}")
        self._waiting.pop(request_id, None)
        return waiting

    def drain(self) -> list[T]:
        """Return all that still wait, and forget them."""
        left = [waiting for _, waiting in self._waiting.values()]
        self._waiting.clear()
        return left
