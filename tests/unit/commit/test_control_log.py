from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos.commit.control_log import (
    WAYS_OUT,
    Intent,
    LogView,
    Marker,
    OwnerRecord,
    Record,
    decode,
    encode,
)
from eos.commit.decision import Known, Past, digest
from eos.commit.registration import Registration
from eos.errors import DamagedLog, InvalidInput, NewerVersion
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.txn import TxnId

TEXT = st.text(max_size=20)
NUMBER = st.integers(0, 2**62)
TXN = st.builds(TxnId, NUMBER, NUMBER)
COUNTS = st.dictionaries(TEXT, NUMBER, max_size=3)
EXPIRED = st.none() | st.builds(MessageId, NUMBER, NUMBER)
RECORDS: st.SearchStrategy[Record] = st.one_of(
    st.builds(OwnerRecord, NUMBER, TEXT, TEXT, NUMBER, NUMBER, st.booleans(), EXPIRED),
    st.builds(Intent, NUMBER, TEXT, TEXT, NUMBER, NUMBER, TXN, st.none() | TEXT, EXPIRED),
    st.builds(Marker, NUMBER, TEXT, TEXT, NUMBER, NUMBER, TXN, st.none() | TEXT, COUNTS, COUNTS, TEXT, EXPIRED),
)


def owner(number: int, query: str = "q", coordinator: int = 0, begins: bool = False) -> OwnerRecord:
    return OwnerRecord(number, query, "run", coordinator, 0, begins)


def intent(number: int, batch: int, query: str = "q", txn: TxnId | None = None) -> Intent:
    return Intent(number, query, "run", batch, 1, txn or TxnId(0, number), None)


def marker(number: int, batch: int, txn: TxnId | None = None) -> Marker:
    return Marker(number, "q", "run", batch, 1, txn or TxnId(0, number), None, {"t": 1}, {"t": 2}, f"offsets {batch}")


def view(*records: Record, **settings: Any) -> LogView:
    """Fold records; each lies at the entry of its place."""
    folded = LogView(**settings)
    for place, record in enumerate(records):
        folded.apply(record, MessageId(1, place))
    return folded


# ---- records


@given(RECORDS)
def test_what_is_written_is_read(record: Record) -> None:
    assert decode(encode(record)) == record


@given(st.binary(max_size=200))
def test_garbage_is_a_damaged_log(data: bytes) -> None:
    with pytest.raises(DamagedLog):
        decode(data)


@given(RECORDS, st.data())
def test_a_record_that_was_tampered_with_is_damaged_or_still_a_record(record: Record, data: st.DataObject) -> None:
    fields = json.loads(encode(record))
    name = data.draw(st.sampled_from(sorted(fields)))
    fields[name] = data.draw(st.none() | st.text(max_size=3) | st.lists(st.integers(), max_size=1))
    try:
        read = decode(json.dumps(fields).encode())
    except DamagedLog:
        return
    # The commands print and add up what is read.
    for one in ("number", "query_id", "run_id", "batch_id", "attempt", "rows", "bytes"):
        assert isinstance(getattr(read, one, None), type(getattr(record, one, None)))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "did not write"),
        (b"hello", "Something else writes to this topic"),
        (b"[1]", "did not write"),
        (b"[" * 100_000, "did not write"),
        (b'{"v":"2","kind":"owner"}', "version '2', and this library reads version 1"),
        (b'{"v":0,"kind":"owner"}', "version 0, and this library reads version 1"),
        (b'{"v":1,"kind":"guest"}', "lacks what it must have"),
        (b'{"v":1,"kind":"owner","number":1}', "lacks what it must have"),
        (encode(marker(1, 1)).replace(b"offsets 1", b"offsets 2"), "checksum"),
        (encode(intent(1, 1)).replace(b'"batch_id":1', b'"batch_id":"1"'), "batch_id is str"),
        (encode(intent(1, 1)).replace(b'"query_id":"q"', b'"query_id":null'), "query_id is NoneType"),
        (encode(owner(1)).replace(b'"coordinator":0', b'"coordinator":"0"'), "coordinator is str"),
        (encode(marker(1, 1)).replace(b'"rows":{', b'"rows":[],"x":{'), "rows is list"),
        (encode(marker(1, 1)).replace(b'"rows":{"t":1}', b'"rows":{"t":"1"}'), "rows has a value that is not a whole"),
    ],
)
def test_a_refused_record_says_why(data: bytes, words: str) -> None:
    with pytest.raises(DamagedLog, match=words) as told:
        decode(data)
    assert str(told.value).endswith(WAYS_OUT)


def test_a_record_of_a_newer_version_is_not_told_as_damage() -> None:
    with pytest.raises(NewerVersion, match="version 2, and this library reads version 1") as told:
        decode(b'{"v":2,"kind":"owner"}')
    assert isinstance(told.value, InvalidInput)
    assert not isinstance(told.value, DamagedLog)


def test_a_log_of_which_nothing_has_expired_is_written_as_by_the_first_version() -> None:
    assert encode(owner(1, begins=True)) == (
        b'{"v":1,"kind":"owner","number":1,"query_id":"q","run_id":"run","coordinator":0,"topic_epoch":0,"begins":true}'
    )
    assert b"expired" not in encode(intent(2, 0)) + encode(marker(3, 0))


def test_a_field_of_a_later_version_is_ignored() -> None:
    """One that must not be ignored comes with another version number."""
    fields = json.loads(encode(intent(2, 0)))
    assert decode(json.dumps(fields | {"later": [1]}).encode()) == intent(2, 0)


def test_a_position_that_is_none_is_damage() -> None:
    fields = json.loads(encode(intent(2, 0)))
    for wrong in ("1:2", [1], [1, "x"], 7):
        with pytest.raises(DamagedLog, match="lacks what it must have"):
            decode(json.dumps(fields | {"expired": wrong}).encode())


def test_a_marker_keeps_the_offsets_file_word_for_word() -> None:
    text = 'v1\n{"batchTimestampMs":1}\n{"logOffset":3}\n\u2603'
    written = Marker(1, "q", "r", 1, 1, TxnId(0, 1), None, {}, {}, text)
    read = decode(encode(written))
    assert isinstance(read, Marker)
    assert read.offsets == text


# ---- the fold


def test_an_empty_log_knows_nothing() -> None:
    assert view().empty
    assert view().known == Known()
    assert view().coordinator is None


def test_a_thousand_markers_take_little_memory_however_many_topics_their_batches_wrote_to() -> None:
    """Only the newest one is kept whole: of 10,000 topics each took 0.88 MiB."""
    folded = LogView(retain=1_000)

    def fold(batch: int) -> None:
        counts = {f"persistent://public/default/topic-{number}-of-{batch}": 1 for number in range(100)}
        whole = replace(marker(batch, batch), rows=counts, bytes=counts, offsets=f"{batch} " * 5_000)
        folded.apply(whole, MessageId(1, batch))

    fold(0)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for batch in range(1, 1_000):
            fold(batch)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 2_000_000
    assert folded.newest is not None
    assert len(folded.newest.rows) == 100
    assert folded.markers[7] == Past(7, "q", digest("7 " * 5_000))


def test_the_newest_marker_and_the_last_intent_are_what_counts() -> None:
    folded = view(owner(1, begins=True), intent(2, 0), marker(3, 0, TxnId(0, 2)), intent(4, 1), intent(6, 1))
    assert folded.known == Known("q", Past(0, "q", digest("offsets 0")), Past(1, "q", ended=False))
    assert folded.unfinished == intent(6, 1)
    assert folded.last_number == 6


def test_an_intent_is_finished_by_the_marker_of_its_own_transaction() -> None:
    assert view(intent(1, 5), marker(2, 5, TxnId(0, 1))).unfinished is None
    assert view(intent(1, 5), marker(2, 5, TxnId(0, 1)), intent(3, 6)).unfinished == intent(3, 6)


def test_the_query_is_the_one_that_wrote_batches_not_the_one_that_came_last() -> None:
    """A driver of another query that took over a log it could not read is refused, and its OWNER stays."""
    assert view(owner(1, "q"), intent(2, 0), owner(3, "stranger")).known.query_id == "q"
    assert view(owner(1, "q"), owner(2, "stranger")).known.query_id == "q"


def test_the_coordinator_is_the_one_that_was_written_with() -> None:
    assert view(owner(1, coordinator=3), owner(2, coordinator=5)).coordinator == 3
    assert view(owner(1, coordinator=3), intent(2, 0, txn=TxnId(4, 9)), owner(3, coordinator=5)).coordinator == 4


@pytest.mark.parametrize("second", [3, 2])
def test_a_batch_that_was_committed_twice_or_out_of_order_is_told(second: int) -> None:
    with pytest.raises(DamagedLog, match="committed twice or out of order"):
        view(marker(1, 3), marker(2, second))


# ---- retention


def test_the_newest_markers_are_retained() -> None:
    folded = view(*[marker(n, n) for n in range(1, 8)], retain=3)
    assert list(folded.markers) == [5, 6, 7]
    assert folded.expired == MessageId(1, 3)  # where the marker of batch 4 lies


def test_markers_since_the_oldest_savepoint_are_retained_as_well() -> None:
    folded = view(*[marker(n, n) for n in range(1, 8)], retain=3, retain_since=3)
    assert list(folded.markers) == [3, 4, 5, 6, 7]
    assert folded.expired == MessageId(1, 1)


def test_nothing_may_go_while_there_are_few() -> None:
    assert view(owner(1), marker(2, 1), marker(3, 2), retain=3).expired is None


# ---- is it whole?


def registered(last_number: int) -> Registration:
    return Registration("f", "persistent://public/default/__eos-f", last_number)


@pytest.mark.parametrize(
    ("records", "last", "words"),
    [
        ([], 1, "is empty, and this query has seen its record 1"),
        ([owner(1, begins=True)], 2, "ends with record 1, and this query has seen its record 2"),
        ([owner(9)], 9, "the beginning of the control log is gone"),
        ([intent(9, 4)], None, "the beginning of the control log is gone"),
    ],
)
def test_a_log_that_lost_records_is_refused(records: list[Record], last: int | None, words: str) -> None:
    with pytest.raises(DamagedLog, match=words):
        view(*records).check_whole(None if last is None else registered(last))


@pytest.mark.parametrize(
    ("records", "last"),
    [
        ([], None),
        ([owner(1, begins=True)], None),
        ([owner(2, begins=True)], 2),  # the first try did not arrive
        ([owner(1, begins=True), intent(4, 0)], 1),  # an aborted marker leaves a gap
        ([marker(900, 400), owner(901)], 900),  # retention dropped the beginning
    ],
)
def test_a_log_that_lost_nothing_is_taken(records: list[Record], last: int | None) -> None:
    view(*records).check_whole(None if last is None else registered(last))
