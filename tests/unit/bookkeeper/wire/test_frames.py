from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos.bookkeeper.errors import BookieUnauthorized, BookieUnavailable
from eos.bookkeeper.wire import frames
from eos.bookkeeper.wire.bookkeeper_pb2 import AuthMessage, BKPacketHeader, Request, Response
from eos.bookkeeper.wire.frames import BookieAnswer, BookieFrames, Code
from tests.vectors.ledgers import FRAMES, LEDGER

ANSWERS = {
    "read": BookieAnswer(Code.OK, LEDGER, 6, (b"stored",)),
    "no entry": BookieAnswer(Code.NO_ENTRY, LEDGER, 6, ()),
    "batch": BookieAnswer(Code.OK, LEDGER, 6, (b"one", b"three")),
    "no batch": BookieAnswer(Code.NO_LEDGER, LEDGER, 6, ()),
}


def test_requests_are_those_of_bookkeeper() -> None:
    assert frames.read_request(LEDGER, 6) == FRAMES["read request"]
    assert frames.batch_read_request(LEDGER, 6, 9, 100, 5000) == FRAMES["batch request"]


def test_no_request_to_read_has_a_flag_since_flag_1_fences() -> None:
    for request in (frames.read_request(LEDGER, 6), frames.batch_read_request(LEDGER, 6, 9, 100, 5000)):
        assert request[6:8] == b"\0\0"


@pytest.mark.parametrize(("name", "answer"), ANSWERS.items())
def test_answers_are_read_as_bookkeeper_wrote_them(name: str, answer: BookieAnswer) -> None:
    assert frames.answer_of(FRAMES[name][4:]) == answer


@given(st.data())
def test_frames_come_out_whole_however_the_bytes_arrive(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(FRAMES))))
    stream = b"".join(FRAMES[name] for name in names)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    reader = BookieFrames(1000)
    came = [
        frame
        for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
        for frame in reader.feed(stream[begin:end])
    ]
    assert came == [FRAMES[name][4:] for name in names]


def test_a_frame_larger_than_the_bound_is_refused_before_it_is_held() -> None:
    with pytest.raises(BookieUnavailable, match="1001 bytes; 1000 are the most"):
        list(BookieFrames(1000).feed((1001).to_bytes(4)))


@pytest.mark.parametrize("name", ANSWERS)
def test_a_cut_answer_is_never_another_answer(name: str) -> None:
    frame = FRAMES[name][4:]
    for size in range(len(frame)):
        try:
            cut = frames.answer_of(frame[:size])
        except BookieUnavailable:
            continue
        # A frame says itself how long it is. What is cut within a stored entry fails the entry's digest.
        assert cut.stored == () or len(cut.stored) < len(ANSWERS[name].stored) or name == "read"


@given(st.binary(max_size=60))
def test_other_bytes_are_no_answer_or_some_answer_and_no_other_error(data: bytes) -> None:
    for read in (frames.answer_of, frames.auth_payload, frames.start_tls_status):
        try:
            read(data)
        except (BookieUnavailable, BookieUnauthorized):
            continue


def test_authentication_and_tls_go_by_protobuf() -> None:
    request = frames.auth_request("plugin", b"token")
    assert int.from_bytes(request[:4]) == len(request) - 4
    assert AuthMessage.FromString(request[8:]) == AuthMessage(authPluginName="plugin", payload=b"token")
    assert frames.auth_payload(request[4:]) == b"token"
    tls = Request.FromString(frames.start_tls_request()[4:])
    assert (tls.header.version, tls.header.operation, tls.HasField("startTLSRequest")) == (3, 9, True)
    answer = Response(header=BKPacketHeader(version=3, operation=9, txnId=1), status=502).SerializeToString()
    assert frames.start_tls_status(answer) == 502
    with pytest.raises(BookieUnauthorized, match="no role for this client's certificate, status 502"):
        frames.answer_of(answer)
