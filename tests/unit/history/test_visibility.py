from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos.history.visibility import ABORT, COMMIT, TooManyUndecided, Visibility
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata

OTHER_MARKER = 10
UNBOUNDED = 2**40

kinds = st.sampled_from(["plain", "data", COMMIT, ABORT, OTHER_MARKER])
logs = st.lists(st.tuples(kinds, st.integers(0, 2)), max_size=14)


def stored(log: list[tuple[object, int]]) -> list[Entry]:
    entries = []
    for number, (kind, txn) in enumerate(log):
        metadata = MessageMetadata()
        if kind != "plain":
            metadata.txnid_most_bits, metadata.txnid_least_bits = 1, txn
        if isinstance(kind, int):
            metadata.marker_type = kind
        entries.append(Entry(EntryId(number // 5, number % 5), metadata, b"", 10))
    return entries


def by_the_rule(entries: list[Entry], last: int) -> list[EntryId]:
    """The rule as it is written, entry by entry."""

    def visible(at: int) -> bool:
        metadata = entries[at].metadata
        if metadata.HasField("marker_type"):
            return False
        if not metadata.HasField("txnid_most_bits"):
            return True
        later = (one.metadata for one in entries[at + 1 :])
        markers = [
            one.marker_type
            for one in later
            if one.HasField("marker_type")
            and one.marker_type in (COMMIT, ABORT)
            and one.txnid_least_bits == metadata.txnid_least_bits
        ]
        return markers[:1] == [COMMIT]

    return [entries[at].id for at in range(last + 1) if visible(at)]


@given(logs, st.data())
def test_what_is_visible_is_what_the_rule_says_in_order(log: list[tuple[object, int]], data: st.DataObject) -> None:
    entries = stored(log)
    last = data.draw(st.integers(0, max(0, len(entries) - 1)))
    end = entries[last].id if entries else EntryId(0, 0)
    visibility = Visibility(end, UNBOUNDED)
    came = [one.id for entry in entries for one in visibility.take(entry)]
    if not visibility.undecided:
        assert came == by_the_rule(entries, last) if entries else came == []
    came += [one.id for one in visibility.end()]
    assert came == (by_the_rule(entries, last) if entries else [])


@given(logs, st.data())
def test_once_the_end_is_passed_and_nothing_is_undecided_no_later_entry_is_needed(
    log: list[tuple[object, int]], data: st.DataObject
) -> None:
    entries = stored(log)
    last = data.draw(st.integers(0, max(0, len(entries) - 1)))
    visibility = Visibility(entries[last].id if entries else EntryId(0, 0), UNBOUNDED)
    came: list[EntryId] = []
    for number, entry in enumerate(entries):
        came += [one.id for one in visibility.take(entry)]
        if number >= last and not visibility.undecided:
            assert came == by_the_rule(entries, last)


def test_a_transaction_that_is_too_large_is_not_held_without_end() -> None:
    entries = stored([("data", 0)] * 4)
    visibility = Visibility(EntryId(9, 9), max_bytes=30)
    for entry in entries[:3]:
        assert list(visibility.take(entry)) == []
    with pytest.raises(TooManyUndecided, match="40 bytes of entries wait for the end of the transaction of entry 0:0"):
        list(visibility.take(entries[3]))
