from __future__ import annotations

import pytest

from eos.errors import UnexpectedFrame
from eos.pulsar.protocol.lookup import Lookup, ask_partitions
from eos.pulsar.protocol.requests import ANSWERS, Requests, Type, body, refusal
from eos.pulsar.wire.frames import FrameDecoder, encode
from eos.pulsar.wire.pulsar_pb2 import BaseCommand, CommandError, ServerError


def answer_to(request: BaseCommand, kind: int | None = None) -> BaseCommand:
    answer = BaseCommand(type=ANSWERS[request.type] if kind is None else kind)  # type: ignore[arg-type]
    body(answer).request_id = body(request).request_id
    return answer


def test_answers_find_their_requests_in_any_order() -> None:
    requests: Requests[str] = Requests()
    first, second = ask_partitions("a"), Lookup("b", tls=False).ask()
    assert requests.number(first, "first") != requests.number(second, "second")
    assert requests.match(answer_to(second)) == "second"
    assert requests.match(answer_to(first)) == "first"
    assert requests.match(answer_to(first)) is None


def test_an_error_answers_any_request() -> None:
    requests: Requests[str] = Requests()
    request = ask_partitions("a")
    requests.number(request, "asked")
    assert requests.match(answer_to(request, Type.ERROR)) == "asked"


@pytest.mark.parametrize("kind", sorted(set(ANSWERS.values())), ids=lambda kind: str(Type.Name(kind)))
def test_a_refusal_is_an_answer_of_whatever_kind(kind: int) -> None:
    requests: Requests[str] = Requests()
    request = ask_partitions("a")
    requests.number(request, "asked")
    answer = answer_to(request, kind)
    code = next((field for field in ("error", "error_code") if field in body(answer).DESCRIPTOR.fields_by_name), None)
    if code is None:  # of a kind that can't refuse
        return
    setattr(body(answer), code, ServerError.ServiceNotReady)
    assert requests.match(answer) == "asked"


def test_an_answer_of_another_kind_is_refused_and_the_request_still_waits() -> None:
    requests: Requests[str] = Requests()
    request = ask_partitions("a")
    requests.number(request, "asked")
    with pytest.raises(UnexpectedFrame, match="SUCCESS as an answer to request 0, not PARTITIONED_METADATA_RESPONSE"):
        requests.match(answer_to(request, Type.SUCCESS))
    assert requests.drain() == ["asked"]


def test_a_late_answer_to_a_forgotten_request_is_dropped() -> None:
    requests: Requests[str] = Requests()
    request = ask_partitions("a")
    requests.forget(requests.number(request, "asked"))
    assert requests.match(answer_to(request)) is None
    assert requests.drain() == []


@pytest.mark.parametrize("request_type", list(ANSWERS), ids=lambda kind: str(Type.Name(kind)))
def test_every_request_and_answer_carries_a_number_and_every_refusal_is_seen(request_type: int) -> None:
    requests: Requests[str] = Requests()
    request = BaseCommand(type=request_type)  # type: ignore[arg-type]
    requests.number(request, "asked")
    answer = answer_to(request)
    assert refusal(answer, "ask") is None
    assert requests.match(answer) == "asked"
    error = BaseCommand(type=Type.ERROR, error=CommandError(error=ServerError.ServiceNotReady, message="wait"))
    refused = refusal(error, "ask")
    assert refused is not None
    assert (refused.code, refused.detail) == ("ServiceNotReady", "wait")
    if "error" in body(answer).DESCRIPTOR.fields_by_name:
        body(answer).error = ServerError.MetadataError
        named = refusal(answer, "ask")
        assert named is not None
        assert named.code == "MetadataError"


@pytest.mark.parametrize("request_type", list(ANSWERS), ids=lambda kind: str(Type.Name(kind)))
def test_every_answer_is_understood_however_its_bytes_are_cut(request_type: int) -> None:
    request = BaseCommand(type=request_type)  # type: ignore[arg-type]
    Requests[str]().number(request, "asked")
    body(request).request_id = 300
    answer = answer_to(request)
    error = BaseCommand(type=Type.ERROR, error=CommandError(request_id=300, error=ServerError.MetadataError))
    data = encode(answer) + encode(error)
    for cut in range(len(data) + 1):
        decoder = FrameDecoder()
        frames = [frame.command for part in (data[:cut], data[cut:]) for frame in decoder.feed(part)]
        assert frames == [answer, error]
        assert [body(frame).request_id for frame in frames] == [300, 300]
        assert refusal(frames[0], "ask") is None
        assert refusal(frames[1], "ask") is not None
