"""A producer, which is opened once, used until anything goes wrong, and never repaired.

The broker answers sends in their order, one receipt each. Each of these faults ends the producer: a receipt that is
missing, is out of order or names no ledger, a refused send, a close that the client didn't ask for, and a lost
connection. A frame without a receipt may or may not be in the transaction, and sending it again could put it there
twice. So the caller aborts the transaction and writes the batch again, with a new producer.

With broker deduplication on, the broker drops a frame that it takes for a duplicate, and the receipt names ledger -1.
The row is not there, so this is an error and not a success.

Only the broker's answer to CLOSE_PRODUCER makes sure that no send of this producer can still take effect, since the
broker refuses sends on a closed producer.

FENCED is only the refusal of an exclusive producer that says that the epoch of the topic has moved on (PIP-68). The
broker does not tell a fenced former owner. Its next send may get no answer at all.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from eos.errors import EosError, Fenced, FrameTooLarge, NetworkError, ProducerClosed, Refused, RefusedForGood
from eos.pickling import PickledByName
from eos.pulsar.protocol.machine import Machine, TransitionTable
from eos.pulsar.protocol.refusals import refused
from eos.pulsar.protocol.requests import Type, granted
from eos.pulsar.protocol.schemas import Declared
from eos.pulsar.wire.frames import error_name
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandCloseProducer,
    CommandProducer,
    CommandSendError,
    CommandSendReceipt,
    KeyValue,
    ProducerAccessMode,
)

ACCESS_MODES = {
    "shared": ProducerAccessMode.Shared,
    "exclusive": ProducerAccessMode.Exclusive,
    "exclusive-with-fencing": ProducerAccessMode.ExclusiveWithFencing,
}
"""{our name: Pulsar's number}."""

_MOVED_EPOCH = "epoch has already moved"


class State(StrEnum):
    """Where the producer stands."""

    NEW = "new"
    OPENING = "opening"
    READY = "ready"
    CLOSING = "closing"
    CLOSED = "closed"
    CLOSED_BY_BROKER = "closed by broker"
    FENCED = "fenced"
    FAILED = "failed"


class Input(StrEnum):
    """Its inputs."""

    OPEN = "open"
    SEND = "send"
    CLOSE = "close"
    OPENED = "opened"
    RECEIPT = "receipt"
    BAD_RECEIPT = "bad receipt"
    SEND_ERROR = "send error"
    CLOSED = "close confirmed"
    BROKER_CLOSED = "closed by broker"
    EPOCH_MOVED = "topic epoch moved"
    REFUSED = "refused"
    LOST = "connection lost"


PRODUCER: TransitionTable[State, Input] = TransitionTable(
    name="producer",
    start=State.NEW,
    ours=frozenset({Input.OPEN, Input.SEND, Input.CLOSE}),
    moves={
        (State.NEW, Input.OPEN): State.OPENING,
        (State.OPENING, Input.OPENED): State.READY,
        (State.OPENING, Input.REFUSED): State.FAILED,
        (State.OPENING, Input.EPOCH_MOVED): State.FENCED,
        (State.OPENING, Input.BROKER_CLOSED): State.CLOSED_BY_BROKER,
        (State.OPENING, Input.LOST): State.FAILED,
        (State.READY, Input.SEND): State.READY,
        (State.READY, Input.RECEIPT): State.READY,
        (State.READY, Input.CLOSE): State.CLOSING,
        (State.READY, Input.BAD_RECEIPT): State.FAILED,
        (State.READY, Input.SEND_ERROR): State.FAILED,
        (State.READY, Input.EPOCH_MOVED): State.FENCED,
        (State.READY, Input.BROKER_CLOSED): State.CLOSED_BY_BROKER,
        (State.READY, Input.LOST): State.FAILED,
        (State.CLOSING, Input.RECEIPT): State.CLOSING,
        (State.CLOSING, Input.CLOSED): State.CLOSED,
        (State.CLOSING, Input.BAD_RECEIPT): State.FAILED,
        (State.CLOSING, Input.SEND_ERROR): State.FAILED,
        (State.CLOSING, Input.EPOCH_MOVED): State.FENCED,
        (State.CLOSING, Input.REFUSED): State.FAILED,
        (State.CLOSING, Input.BROKER_CLOSED): State.CLOSED_BY_BROKER,
        (State.CLOSING, Input.LOST): State.FAILED,
    },
)

ENDED = frozenset({State.CLOSED, State.CLOSED_BY_BROKER, State.FENCED, State.FAILED})
"""The states in which nothing more can happen."""


class _Sent(NamedTuple):
    """A frame without a receipt: its first sequence id, bytes of payload, messages, whether it can be cut smaller."""

    sequence_id: int
    size: int
    messages: int
    can_be_cut: bool


class ProducerSession:
    """One producer's line to its broker: what it sent, and what it still waits for.

    Attributes:
        topic: the physical topic.
        name: the name in use, known once opened.
        topic_epoch: the epoch of an exclusive producer, known once opened; None when shared.
        schema_version: of the schema that was declared, known once opened; empty where none was.
        failure: why it ended; None while it lives and after a close that we asked for.
    """

    def __init__(self, topic: str, producer_id: int, broker: str) -> None:
        """Args: the topic; our number for this producer on its connection; the broker's address, for messages."""
        self._machine = Machine(PRODUCER)
        self.topic = topic
        self.producer_id = producer_id
        self.broker = broker
        self.name = ""
        self.topic_epoch: int | None = None
        self.schema_version = b""
        self.failure: EosError | None = None
        self._next = 0
        self._pending: deque[_Sent] = deque()

    @property
    def state(self) -> State:
        """Where the producer stands."""
        return self._machine.state

    @property
    def unanswered(self) -> int:
        """How many sends have no receipt yet."""
        return len(self._pending)

    def open(
        self,
        access: str,
        name: str | None,
        topic_epoch: int | None,
        schema: Declared | None = None,
        introduction: ProducerIdentity | None = None,
    ) -> BaseCommand:
        """Return PRODUCER.

        Args: a key of ACCESS_MODES; a name, or None for a fresh one; the epoch we hold, if any; what it writes, if that
        is to be declared; who writes, apart from the name.
        """
        self._machine.take(Input.OPEN)
        producer = CommandProducer(
            topic=self.topic,
            producer_id=self.producer_id,
            epoch=0,
            user_provided_producer_name=name is not None,
            producer_access_mode=ACCESS_MODES[access],
            txn_enabled=True,
        )
        if introduction is not None:
            producer.encrypted = introduction.encrypted
            producer.metadata.extend(KeyValue(key=key, value=value) for key, value in introduction.properties.items())
        if name is not None:
            producer.producer_name = name
        if topic_epoch is not None:
            producer.topic_epoch = topic_epoch
        if schema is not None:
            producer.schema.CopyFrom(schema.on_the_wire())
        return BaseCommand(type=Type.PRODUCER, producer=producer)

    def opened(self, answer: BaseCommand, asked: str) -> None:
        """Take the answer to PRODUCER. Raises Fenced when the topic's epoch has moved, else Refused."""
        try:
            success = granted(answer, asked).producer_success
        except Refused as problem:
            if _says_epoch_moved(problem.code, problem.detail):
                raise self._end(Input.EPOCH_MOVED, Fenced(str(problem))) from problem
            raise self._end(Input.REFUSED, problem) from None
        self._machine.take(Input.OPENED)
        self.name = success.producer_name
        self.topic_epoch = success.topic_epoch if success.HasField("topic_epoch") else None
        self.schema_version = success.schema_version
        self._next = success.last_sequence_id + 1

    def send(self, size: int, messages: int, *, can_be_cut: bool = False) -> int:
        """Note a frame of this many bytes and messages; return the sequence id of its first message.

        Each message has a sequence id, so that with deduplication none can stand for another. The chunks of a message
        share one: all but the last have no message. `can_be_cut`: the same rows fit into smaller frames.
        Raises OutOfTurn, or why the producer ended.
        """
        if self.failure is not None:
            raise self.failure
        self._machine.take(Input.SEND)
        sequence_id = self._next
        self._next += messages
        self._pending.append(_Sent(sequence_id, size, messages, can_be_cut))
        return sequence_id

    def receipt(self, receipt: CommandSendReceipt) -> tuple[int, MessageId] | None:
        """Take a receipt: return the bytes that it acknowledges and where they are stored.

        None: the receipt is bad, and `failure` says why.
        """
        where = MessageId.read(receipt.message_id)
        expected = self._pending[0].sequence_id if self._pending else None
        if receipt.sequence_id != expected:
            self._fail(
                Input.BAD_RECEIPT,
                f"a receipt for frame {receipt.sequence_id} while frame {expected} was the next to be acknowledged",
            )
            return None
        if where.ledger < 0:
            self._fail(
                Input.BAD_RECEIPT,
                f"frame {receipt.sequence_id} was dropped by the broker as a duplicate (its receipt names ledger -1)",
            )
            return None
        self._machine.take(Input.RECEIPT)
        return self._pending.popleft().size, where

    def send_error(self, error: CommandSendError) -> None:
        """Take the refusal of a send; `failure` says why."""
        problem = refused(f"send frame {error.sequence_id} to {self.topic}", error_name(error.error), error.message)
        if isinstance(problem, FrameTooLarge):
            problem = self._too_large(problem, error.sequence_id)
        if _says_epoch_moved(problem.code, problem.detail):
            self._end(Input.EPOCH_MOVED, Fenced(str(problem)))
        else:
            self._end(Input.SEND_ERROR, problem)

    def _too_large(self, problem: FrameTooLarge, number: int) -> Refused:
        """Tell a frame that can be cut smaller from a message that can't."""
        # The broker names the last message of the frame (CommandSend.highest_sequence_id), a receipt its first.
        frame = next((one for one in self._pending if 0 <= number - one.sequence_id < one.messages), None)
        if frame is not None and frame.can_be_cut:
            return FrameTooLarge(problem.asked, problem.code, problem.detail, size=frame.size)
        return RefusedForGood(
            problem.asked,
            problem.code,
            problem.detail,
            f"One message alone{f', of {frame.size} bytes,' if frame else ''} is more than the topic allows. Make it "
            "smaller, have the sink send it in chunks (chunking=True), or raise the topic's limit: pulsar-admin "
            f"topicPolicies set-max-message-size --max-message-size BYTES {self.topic}",
        )

    def closed_by_broker(self) -> None:
        """Take a CLOSE_PRODUCER that we didn't ask for."""
        if self.state is State.OPENING:
            where = f"{self.topic} at {self.broker}"
            words = f"the broker closed a producer on {where} while it opened. The topic moves, or a policy has changed"
            self._end(Input.BROKER_CLOSED, ProducerClosed(words))
            return
        self._fail(
            Input.BROKER_CLOSED,
            f"closed by the broker (the topic moves or is closed), with {self.unanswered} frames unacknowledged. If "
            f"that goes on, eos doctor {self.topic} says whether a policy keeps the broker from recovering the topic",
        )

    def lost(self, why: EosError) -> None:
        """Note that the connection, or the wait for an answer, has ended."""
        if self._machine.allows(Input.LOST):
            self._end(Input.LOST, why)

    def close(self) -> BaseCommand:
        """Return CLOSE_PRODUCER. Raises OutOfTurn, or why the producer ended."""
        if self.failure is not None:
            raise self.failure
        self._machine.take(Input.CLOSE)
        return self.close_command()

    def close_command(self) -> BaseCommand:
        """Return CLOSE_PRODUCER for a producer that is given up, whatever its state."""
        return BaseCommand(type=Type.CLOSE_PRODUCER, close_producer=CommandCloseProducer(producer_id=self.producer_id))

    def closed(self, answer: BaseCommand) -> None:
        """Take the answer to CLOSE_PRODUCER. Raises Refused, or why the producer ended meanwhile.

        Receipts come before this answer: sends that still lack one make it an error.
        """
        if self.failure is not None:
            raise self.failure
        asked = f"close the producer on {self.topic}"
        try:
            granted(answer, asked)
        except Refused as problem:
            raise self._end(Input.REFUSED, problem) from None
        if self._pending:
            self._fail(Input.BAD_RECEIPT, f"closed while {self.unanswered} frames were unacknowledged")
            assert self.failure is not None
            raise self.failure
        self._machine.take(Input.CLOSED)

    def _fail(self, happening: Input, why: str) -> None:
        self._end(happening, NetworkError(f"producer {self.name or '(new)'} on {self.topic} at {self.broker}: {why}"))

    def _end(self, happening: Input, why: EosError) -> EosError:
        self._machine.take(happening)
        self.failure = why
        return why


def _says_epoch_moved(code: str, message: str) -> bool:
    return code == "ProducerFenced" and _MOVED_EPOCH in message.lower()


@dataclass(frozen=True, slots=True)
class ProducerIdentity(PickledByName):
    """The writer's identity. The names made of it are all different.

    Attributes:
        name: what the producers' names begin with, for a person to read.
        properties: what else is to be known; texts.
        encrypted: whether all that it writes is encrypted. The broker then refuses what is not. Default False.
    """

    name: str
    properties: Mapping[str, str] = field(default_factory=dict)
    encrypted: bool = False

    def part(self, role: str, **properties: str) -> ProducerIdentity:
        """Return the introduction of a part of this writer: its role, in a word, and what else is to be known of it."""
        return ProducerIdentity(f"{self.name}:{role}", {**self.properties, **properties}, self.encrypted)

    def fresh_name(self) -> str:
        """Return a name that no producer had before.

        With deduplication the broker remembers the sequence ids of a name beyond an abort, and drops what comes under
        them again.
        """
        return f"{self.name}:{secrets.token_hex(8)}"
