"""Writers under names that stay, against a scripted broker that remembers the numbers of each name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from eos.delivery.digest import RowDigest
from eos.delivery.numbered import Comparer, ResumingWriter, writer_of
from eos.delivery.numbering import Kept, Numbering, first_number
from eos.delivery.producers import FreshProducers
from eos.delivery.writer import BatchTransaction, Report, Writer, WriteSettings, send_all
from eos.errors import EosError, InvalidInput, NotCommitted, Refused, StaleBatch
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.batch import BatchEncoder, unpack
from eos.pulsar.wire.frames import Frame
from eos.pulsar.wire.pulsar_pb2 import BaseCommand, CommandProducerSuccess, ServerError
from eos.steps import Step, unobserved
from tests.unit.pulsar.net.fake_broker import FakeBroker, Session, receipt, refusing
from tests.waiting import until

TOPIC = "persistent://public/default/t"
PARTS = [f"{TOPIC}-partition-{part}" for part in range(2)]
NUMBERING = Numbering("flights", 7, 1)
NAME = "eos-deduplicated-flights.1.4"
FIRST = first_number(7)
ROWS = pa.record_batch(
    {"value": [b"%d" % row for row in range(8)], "partition": pa.array([row % 2 for row in range(8)], pa.int32())}
)
ON_THE_FIRST, ON_THE_SECOND = ([b"%d" % row for row in range(part, 8, 2)] for part in (0, 1))


@pytest.fixture
def sent(broker: FakeBroker) -> dict[str, list[tuple[int, list[bytes]]]]:
    """{physical topic: (sequence id, values) of each frame}."""
    producers: dict[tuple[int, int], str] = {}
    frames: dict[str, list[tuple[int, list[bytes]]]] = {}

    def take(session: Session, frame: Frame) -> None:
        assert frame.metadata is not None
        assert frame.payload is not None
        assert frame.metadata.producer_name == NAME
        values = [value for _, value in unpack(frame.metadata, frame.payload)]
        opened = [one.producer for one in broker.commands(Type.PRODUCER)]
        topic = next(one.topic for one in opened if one.producer_id == frame.command.send.producer_id)
        frames.setdefault(topic, []).append((frame.metadata.sequence_id, values))
        session.send(receipt(frame))

    broker.handlers[Type.SEND] = take
    assert producers == {}
    return frames


@pytest.fixture
def newest(broker: FakeBroker) -> dict[str, int]:
    """{physical topic: the newest number of any name}, as the broker tells."""
    known: dict[str, int] = {}

    def opened(session: Session, frame: Frame) -> None:
        asked = frame.command.producer
        assert asked.user_provided_producer_name
        success = CommandProducerSuccess(
            producer_name=asked.producer_name, last_sequence_id=known.get(asked.topic, -1), request_id=asked.request_id
        )
        session.send(BaseCommand(type=Type.PRODUCER_SUCCESS, producer_success=success))

    broker.handlers[Type.PRODUCER] = opened
    return known


@pytest.fixture
def settings(broker: FakeBroker, newest: dict[str, int]) -> Iterator[WriteSettings]:
    cluster = broker.client().cluster
    yield WriteSettings(cluster, TOPIC, "murmur3", "none", 1 << 20)
    Client.shared(cluster).close()


def kept(*values: bytes) -> Kept:
    taken = RowDigest()
    for chunk in BatchEncoder().chunks(pa.record_batch({"value": list(values)})):
        taken.take_chunk(chunk)
    return Kept(taken.rows, taken.text)


def write(settings: WriteSettings, numbering: Numbering, rows: int = 3) -> Report:
    """Write the rows, some at a time, as the task of partition 4 does."""
    to = BatchTransaction(None, 7, unobserved, {TOPIC: 2}, numbering=numbering)
    writer = writer_of(settings, to, FreshProducers(settings.cluster, 1 << 20), "4", 0)
    try:
        for start in range(0, ROWS.num_rows, rows):
            writer.write(ROWS.slice(start, rows))
            writer._send_gathered()
        report = send_all(writer, [])
        writer.finish()
    except EosError:
        writer.abandon()
        raise
    return report


def test_rows_are_numbered_by_batch_and_place_under_the_name_of_the_writer(
    settings: WriteSettings, sent: dict[str, list[tuple[int, list[bytes]]]], broker: FakeBroker
) -> None:
    report = write(settings, NUMBERING)
    assert sent[PARTS[0]] == [(FIRST, [b"0", b"2"]), (FIRST + 2, [b"4"]), (FIRST + 3, [b"6"])]
    assert sent[PARTS[1]] == [(FIRST, [b"1"]), (FIRST + 1, [b"3", b"5"]), (FIRST + 3, [b"7"])]
    assert (report.rows, report.frames) == ({TOPIC: 8}, {TOPIC: 6})
    until(lambda: len(broker.commands(Type.CLOSE_PRODUCER)) == 2)


@pytest.mark.parametrize("forgotten", [False, True])
@pytest.mark.parametrize("rows", [1, 3, 8])
def test_what_is_stored_is_left_out_and_counted_and_the_rest_numbered_on_however_it_is_cut(
    settings: WriteSettings,
    sent: dict[str, list[tuple[int, list[bytes]]]],
    newest: dict[str, int],
    rows: int,
    forgotten: bool,
) -> None:
    if not forgotten:
        newest |= {PARTS[0]: FIRST + 2, PARTS[1]: FIRST - 1}
    stored = {"4": {PARTS[0]: kept(*ON_THE_FIRST[:3])}, "5": {PARTS[1]: kept(b"of another")}}
    report = write(settings, replace(NUMBERING, stored=stored), rows)
    assert sent[PARTS[0]] == [(FIRST + 3, [b"6"])]
    assert [value for _, values in sent[PARTS[1]] for value in values] == ON_THE_SECOND
    assert sent[PARTS[1]][0][0] == FIRST
    assert (report.rows, report.bytes) == ({TOPIC: 8}, {TOPIC: 8})


def test_nothing_is_opened_where_all_is_stored(settings: WriteSettings, broker: FakeBroker) -> None:
    stored = {"4": {PARTS[0]: kept(*ON_THE_FIRST), PARTS[1]: kept(*ON_THE_SECOND)}}
    report = write(settings, replace(NUMBERING, stored=stored))
    assert broker.commands(Type.PRODUCER) == []
    assert (report.rows, report.frames) == ({TOPIC: 8}, {})


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (FIRST + 1, NotCommitted, "the broker has row 1 of batch 7 under the name"),
        (FIRST, NotCommitted, "another driver is at work"),
        (first_number(8), StaleBatch, "the broker has rows of batch 8 under the name"),
        (first_number(9) - 1, StaleBatch, "Every query needs a name= of its own"),
    ],
)
def test_what_was_stored_since_it_was_looked_at_ends_the_try_before_it_sends_there(
    settings: WriteSettings,
    sent: dict[str, list[tuple[int, list[bytes]]]],
    newest: dict[str, int],
    broker: FakeBroker,
    number: int,
    kind: type[EosError],
    words: str,
) -> None:
    newest[PARTS[0]] = number
    with pytest.raises(kind, match=words):
        write(settings, NUMBERING)
    assert sent == {}
    until(lambda: len(broker.commands(Type.CLOSE_PRODUCER)) == 2)


def test_more_than_was_found_ends_the_try_too(
    settings: WriteSettings, sent: dict[str, list[tuple[int, list[bytes]]]], newest: dict[str, int]
) -> None:
    newest[PARTS[0]] = FIRST + 2
    with pytest.raises(NotCommitted, match="the broker has row 2 of batch 7"):
        write(settings, replace(NUMBERING, stored={"4": {PARTS[0]: kept(*ON_THE_FIRST[:2])}}))
    assert PARTS[0] not in sent


def test_a_name_that_another_process_holds_is_told_as_such(settings: WriteSettings, broker: FakeBroker) -> None:
    broker.handlers[Type.PRODUCER] = refusing(ServerError.ProducerBusy, f"'{NAME}' is already connected to topic")
    with pytest.raises(NotCommitted, match=f"another process writes under the producer name {NAME}: an earlier driver"):
        write(settings, NUMBERING)


@pytest.mark.parametrize(
    "words", ["Topic 't' reached max producers limit", "Topic has an existing exclusive producer: a"]
)
def test_a_topic_that_lets_in_no_producer_is_not_taken_for_a_name_that_is_held(
    settings: WriteSettings, broker: FakeBroker, words: str
) -> None:
    broker.handlers[Type.PRODUCER] = refusing(ServerError.ProducerBusy, words)
    with pytest.raises(Refused, match=words):
        write(settings, NUMBERING)


# ---- comparing


def compare(settings: WriteSettings, *stored: Kept, rows: int = 3) -> Report:
    numbering = replace(NUMBERING, stored={"4": dict(zip(PARTS, stored, strict=False))}, compares=True)
    return write(settings, numbering, rows)


@pytest.mark.parametrize("rows", [1, 3, 8])
def test_the_first_rows_are_compared_and_nothing_is_sent(
    settings: WriteSettings, broker: FakeBroker, rows: int
) -> None:
    seen: list[Step] = []
    compare(settings, kept(*ON_THE_FIRST[:3]), kept(*ON_THE_SECOND), rows=rows)
    assert broker.commands(Type.PRODUCER) == []
    assert seen == []


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (kept(b"0", b"2", b"5"), "has 3 rows that the task of Spark's partition 4 had sent, .* now it has other ones"),
        (kept(b"2", b"0"), "now it has other ones"),
        (kept(*ON_THE_FIRST, b"8"), "now it has only 4"),
    ],
)
def test_other_rows_another_order_and_fewer_rows_are_refused(settings: WriteSettings, stored: Kept, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        compare(settings, stored)


def test_only_rows_with_numbers_have_such_writers(settings: WriteSettings) -> None:
    producers = FreshProducers(settings.cluster, 1 << 20)
    plain = BatchTransaction(None, 7, unobserved)
    kinds = [
        type(writer_of(settings, replace(plain, numbering=numbering), producers, "4", 4))
        for numbering in (None, NUMBERING, replace(NUMBERING, compares=True))
    ]
    assert kinds == [Writer, ResumingWriter, Comparer]
