"""What a reader can prove by where it stands. Entries are numbered in one ledger."""

from __future__ import annotations

import pytest

from eos.errors import EntriesGone
from eos.pulsar.net.read_proof import LOOKS, ReadProof
from eos.pulsar.wire.message_id import EntryId


def at(entry: int) -> EntryId:
    return EntryId(5, entry)


def proof(start: int | None, *, stored: bool = False, compacted: bool = False) -> ReadProof:
    return ReadProof("t", None if start is None else at(start), stored=stored, compacted=compacted)


def test_while_the_reader_stands_before_what_came_first_nothing_was_left_out() -> None:
    one = proof(3, stored=True)
    assert one.arrived(at(3), at(2), [at(9)])
    assert one.proven == at(9)
    assert one.arrived(at(3), at(2), [at(11)]), "more comes on the same line"
    one.joined()
    assert not one.arrived(at(12), at(10), [at(13)]), "the next line begins with the last entry of the one before"
    one.joined()
    assert one.arrived(at(11), at(10), [at(12)])
    assert not one.arrived(at(11), at(11), [at(20)]), "it was moved later"


@pytest.mark.parametrize("stands", [3, 5, 9])
def test_a_position_that_was_moved_proves_nothing(stands: int) -> None:
    one = proof(3, stored=True)
    assert not one.arrived(at(3), at(stands), [at(9)])
    assert one.proven is None
    assert one.arrived(at(3), at(2), [at(9)]), "the next reader stands where it began"


def test_a_start_that_must_come_and_never_does_is_gone_after_some_readers_and_the_rest_comes() -> None:
    one = proof(3, stored=True)
    for _ in range(LOOKS - 1):
        assert not one.arrived(at(7), at(6), [at(9)])
    with pytest.raises(EntriesGone, match=r"reading t from entry 5:3 on leaves out entries\. The broker gives 5:7"):
        one.arrived(at(7), at(6), [at(9)])
    assert one.arrived(at(7), at(6), [at(9)])


def test_where_nothing_must_come_two_readers_in_a_row_must_be_given_the_same() -> None:
    one = proof(3)  # 3 to 6 may be aborted: the broker acknowledges them for the reader
    assert not one.arrived(at(7), at(6), [at(9)])
    assert one.arrived(at(7), at(6), [at(9)])
    other = proof(3)
    assert not other.arrived(at(8), at(7), [at(9)]), "it was moved"
    assert not other.arrived(at(5), at(4), [at(9)]), "and this is what comes of a reader that was not"
    assert other.arrived(at(5), at(4), [at(9)])


def test_the_earliest_message_counts_at_once_where_the_reader_was_not_moved() -> None:
    assert proof(3).arrived(at(3), at(2), [at(4)])
    assert proof(3).arrived(at(6), at(2), [at(7)]), "it stands before its start"


def test_an_entry_that_must_not_come_again_is_not_waited_for() -> None:
    one = proof(3, stored=True)
    assert one.arrived(at(3), at(2), [at(6)])
    one.passed()
    one.joined()
    assert one.arrived(at(8), at(6), [at(9)]), "it stands where it began, after the entry that was passed"
    one.passed()
    one.joined()
    assert not one.arrived(at(12), at(11), [at(13)]), "it was moved, or what lies between is not delivered"
    assert one.arrived(at(12), at(11), [at(13)])


@pytest.mark.parametrize(
    ("start", "stored", "first", "stands", "last", "goes_on"),
    [
        (3, True, 3, 2, 20, True),
        (3, True, 3, 3, 20, False),  # it was moved behind what came
        (3, True, None, 2, 20, True),
        (3, True, None, 3, 20, False),  # it was moved behind what must come
        (3, False, None, 9, 20, True),  # aborted entries were passed
        (3, False, None, 20, 20, False),  # never past a message
        (None, False, None, -1, None, True),
    ],
)
def test_in_silence_the_position_tells_whether_more_can_come(
    start: int | None, stored: bool, first: int | None, stands: int, last: int | None, goes_on: bool
) -> None:
    one = proof(start, stored=stored)
    said = one.silent(None if first is None else at(first), at(stands), None if last is None else at(last))
    assert said is goes_on


def test_a_silence_that_no_reader_ends_is_a_loss() -> None:
    one = proof(3, stored=True)
    for _ in range(LOOKS - 1):
        assert not one.silent(None, at(9), at(20))
    with pytest.raises(EntriesGone, match="Nothing comes, although messages are stored there"):
        one.silent(None, at(9), at(20))


def test_compaction_may_take_any_message_away() -> None:
    one = proof(3, compacted=True, stored=True)
    assert not one.arrived(at(7), at(6), [at(9)])
    assert one.arrived(at(7), at(6), [at(9)])


def test_a_marker_after_what_compaction_left_moves_the_reader_each_time() -> None:
    """Its ledgers are deleted, and the marker is entry 20. What came up to there counts once it came twice."""
    left = [at(3), at(9), at(21)]
    one = proof(None, compacted=True)
    assert not one.arrived(at(3), at(20), left)
    one.joined()
    assert not one.arrived(at(3), at(20), [at(3), at(21)]), "one of two readers was given less"
    one.joined()
    assert not one.arrived(at(3), at(20), left)
    one.joined()
    assert not one.arrived(at(3), at(19), left), "it was moved elsewhere"
    one.joined()
    assert not one.arrived(at(3), at(20), left)
    one.joined()
    assert one.arrived(at(3), at(20), [*left, at(22)]), "what lies after it can't have been left out"
    assert one.arrived(at(3), at(20), [at(30)])
    assert one.silent(at(3), at(20), at(30))
    assert not one.silent(at(3), at(25), at(30)), "it was moved again"
    one.joined()
    assert one.silent(at(3), at(25), at(30)), "as the line before it"
    assert one.silent(at(3), at(25), at(30))
    other = proof(None, stored=True)
    for _ in range(LOOKS - 1):
        assert not other.arrived(at(3), at(20), left), "where no compaction is read, nothing else moves a reader so"


def test_reasons_of_others_to_begin_again_count_too() -> None:
    one = proof(3, stored=True)
    for _ in range(LOOKS - 1):
        one.unproven(at(9))
    with pytest.raises(EntriesGone):
        one.unproven(at(9))
    assert one.gone
    assert one.arrived(at(9), at(8), [at(9)])
    assert not one.gone
