from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statestore.drills.judge.accounting import OutputRow, Reading
from statestore.drills.judge.copies import (
    KEYS,
    PAD,
    Block,
    CopyOutcome,
    PackedRows,
    account,
    key_of,
    parse,
    value_of,
)
from statestore.drills.judge.findings import Account, Verdict

SIZE = 40
BLOCKS = [
    Block("plain", 0, SIZE, CopyOutcome.COMMITTED),
    Block("transactional", 0, SIZE, CopyOutcome.COMMITTED),
    Block("transactional", SIZE, 2 * SIZE, CopyOutcome.ABORTED),
    Block("transactional", 2 * SIZE, 3 * SIZE, CopyOutcome.IN_DOUBT),
    Block("transactional", 3 * SIZE, 4 * SIZE, CopyOutcome.COMMITTED),
]
PARTITIONS = ("a", "b", "c")
KINDS = ("lost", "duplicated", "unexpected", "out_of_order", "torn")


def row(writer: str, number: int) -> OutputRow:
    return OutputRow(0, key_of(writer, number), number)


def placed(*outcomes: CopyOutcome) -> dict[str, list[OutputRow]]:
    """The rows of the blocks of these outcomes, each key on a partition of its own."""
    rows: dict[str, list[OutputRow]] = {partition: [] for partition in PARTITIONS}
    for block in BLOCKS:
        if block.outcome in outcomes:
            for number in range(block.first, block.end):
                rows[PARTITIONS[number % KEYS % 3]].append(row(block.writer, number))
    return rows


def right() -> dict[str, list[OutputRow]]:
    """What is committed: that which was in doubt is not."""
    return placed(CopyOutcome.COMMITTED)


def judged(
    found: dict[str, list[OutputRow]],
    held: dict[str, list[OutputRow]] | None = None,
    blocks: list[Block] = BLOCKS,
    shortfall: str = "",
    input_shortfall: str = "",
) -> Account:
    held_rows = {partition: PackedRows(rows) for partition, rows in (right() if held is None else held).items()}
    return account("copies", Reading("1", held_rows, input_shortfall), Reading("2", found, shortfall), blocks)


def errors(found: Account) -> dict[str, int]:
    return {kind: getattr(found, kind) for kind in KINDS if getattr(found, kind)}


PLACES = st.sampled_from([(partition, number) for partition, rows in right().items() for number in range(len(rows))])


def test_a_copy_of_what_is_committed_passes() -> None:
    found = judged(right())
    assert (found.verdict, errors(found), found.offenders) == (Verdict.PASS, {}, {})
    assert (found.attempted, found.committed, found.found) == (5 * SIZE, 3 * SIZE, 3 * SIZE)
    assert f"None of {SIZE} aborted rows was found. The writers of {SIZE} rows were left in doubt" in found.reason


def test_other_partitions_than_those_of_the_input_are_right_as_long_as_a_key_has_one() -> None:
    rows = right()
    assert judged({"x": rows["c"], "y": [*rows["b"], *rows["a"]]}).verdict is Verdict.PASS


@given(st.sets(PLACES, min_size=1, max_size=5))
def test_rows_that_are_missing_are_lost_and_nothing_else(gone: set[tuple[str, int]]) -> None:
    rows = {
        partition: [one for number, one in enumerate(those) if (partition, number) not in gone]
        for partition, those in right().items()
    }
    found = judged(rows)
    assert (found.verdict, errors(found)) == (Verdict.FAIL, {"lost": len(gone)})
    partition, number = min(
        gone, key=lambda place: (right()[place[0]][place[1]].key, right()[place[0]][place[1]].order)
    )
    first = right()[partition][number]
    assert found.offenders["lost"][0] == f"key {first.key} #{first.order}"


@given(PLACES, st.integers(1, 3), st.data())
def test_copies_beyond_the_first_are_duplicated_wherever_they_are(
    place: tuple[str, int], copies: int, data: st.DataObject
) -> None:
    rows, one = right(), right()[place[0]][place[1]]
    for _ in range(copies):
        here = rows[data.draw(st.sampled_from(PARTITIONS))]
        here.insert(data.draw(st.integers(0, len(here))), one)
    found = judged(rows)
    assert (found.verdict, errors(found)) == (Verdict.FAIL, {"duplicated": copies})
    assert found.found == 3 * SIZE + copies


@given(PLACES)
def test_a_row_that_the_writer_has_sent_twice_is_due_twice(place: tuple[str, int]) -> None:
    held, one = right(), right()[place[0]][place[1]]
    held[place[0]].append(one)
    assert judged(held, held).verdict is Verdict.PASS
    assert errors(judged(right(), held)) == {"lost": 1}
    again = {partition: list(rows) for partition, rows in held.items()}
    again[place[0]].append(one)
    assert errors(judged(again, held)) == {"duplicated": 1}


@given(st.integers(SIZE, 2 * SIZE - 1))
def test_an_aborted_row_is_unexpected_even_if_a_reader_of_the_input_has_seen_it(number: int) -> None:
    rows, one = right(), row("transactional", number)
    rows["a"].append(one)
    for held in (right(), rows):
        found = judged(rows, held)
        assert (found.verdict, errors(found)) == (Verdict.FAIL, {"unexpected": 1})
        assert found.offenders == {"unexpected": (f"key {one.key} #{number}",)}


def test_rows_in_doubt_are_due_if_the_input_has_them() -> None:
    both = placed(CopyOutcome.COMMITTED, CopyOutcome.IN_DOUBT)
    assert judged(both, both).verdict is Verdict.PASS
    assert errors(judged(right(), both)) == {"lost": SIZE}
    assert errors(judged(both, right())) == {"unexpected": SIZE}


@given(PLACES)
def test_a_row_that_its_writer_has_a_receipt_for_is_due_even_if_no_reader_has_seen_it(place: tuple[str, int]) -> None:
    rows = right()
    del rows[place[0]][place[1]]
    assert errors(judged(rows, rows)) == {"lost": 1}


@given(PLACES)
def test_two_rows_of_a_key_in_the_wrong_order_are_out_of_order(place: tuple[str, int]) -> None:
    rows = right()
    here = rows[place[0]]
    one = here[place[1]]
    same = [number for number, other in enumerate(here) if other.key == one.key and number != place[1]]
    if not same:
        return
    here[place[1]], here[same[0]] = here[same[0]], here[place[1]]
    found = judged(rows)
    assert found.verdict is Verdict.FAIL
    assert set(errors(found)) == {"out_of_order"}


def test_two_rows_of_different_keys_have_no_order() -> None:
    rows = right()
    here = rows["a"]
    assert here[0].key != here[1].key
    here[0], here[1] = here[1], here[0]
    assert judged(rows).verdict is Verdict.PASS


def test_a_key_on_two_partitions_is_out_of_order() -> None:
    rows = right()
    one = rows["a"].pop()
    rows["b"].append(one)
    found = judged(rows)
    assert errors(found) == {"out_of_order": 1}
    assert found.offenders == {"out_of_order": (f"key {one.key} #{one.order}",)}


def test_what_is_not_a_row_is_unexpected() -> None:
    rows = right()
    rows["c"].append(parse("plain-0", b""))
    found = judged(rows)
    assert (found.verdict, errors(found), found.found) == (Verdict.FAIL, {"unexpected": 1}, 3 * SIZE + 1)
    assert "not a row, but b'' with key 'plain-0'" in found.offenders["unexpected"][0]


def test_a_reading_that_fell_short_proves_no_loss() -> None:
    rows = right()
    missing = rows["a"].pop()
    found = judged(rows, shortfall="held up")
    assert (found.verdict, errors(found)) == (Verdict.UNKNOWN, {})
    assert "The output was not read to the end: held up" in found.reason
    rows["b"].insert(0, rows["b"][0])
    assert judged(rows, shortfall="held up").verdict is Verdict.FAIL
    short = right()
    short["a"].remove(missing)
    in_doubt = placed(CopyOutcome.COMMITTED, CopyOutcome.IN_DOUBT)
    found = judged(in_doubt, short, input_shortfall="held up")
    assert (found.verdict, errors(found)) == (Verdict.UNKNOWN, {}), "the input may have had them"
    assert {getattr(found, kind) for kind in KINDS} == {None}


@given(PLACES)
def test_half_an_input_proves_no_second_copy(place: tuple[str, int]) -> None:
    """A writer without a receipt sends a row again: the copy may lie where the reader of the input has not come to."""
    both, one = right(), right()[place[0]][place[1]]
    both[place[0]].append(one)
    found = judged(both, right(), input_shortfall="held up")
    assert (found.verdict, errors(found), found.duplicated) == (Verdict.UNKNOWN, {}, None)
    assert judged(both, both).verdict is Verdict.PASS


def test_whose_rows_do_not_name_a_batch_has_no_count_of_torn_ones() -> None:
    assert judged(right()).torn is None


@pytest.mark.parametrize("outcome", [CopyOutcome.COMMITTED, CopyOutcome.ABORTED])
def test_without_committed_or_without_aborted_rows_nothing_was_put_to_the_test(outcome: CopyOutcome) -> None:
    blocks = [block for block in BLOCKS if block.outcome is outcome]
    rows = placed(CopyOutcome.COMMITTED) if outcome is CopyOutcome.COMMITTED else {}
    found = judged(rows, rows, blocks)
    assert (found.verdict, errors(found)) == (Verdict.UNKNOWN, {})
    assert "too few to judge by" in found.reason


@given(st.sampled_from(["plain", "transactional"]), st.integers(0, 10**9))
def test_rows_are_read_as_they_are_written(writer: str, number: int) -> None:
    assert parse(key_of(writer, number), value_of(key_of(writer, number), number)) == row(writer, number)


@pytest.mark.parametrize(
    ("key", "data"),
    [
        ("plain-2", value_of("plain-1", 1)),
        ("plain-1", b'{"key": "plain-1", "n": 1}'),
        ("plain-1", value_of("plain-1", 1).replace(PAD.encode(), b"..")),
        ("plain-1", value_of("plain-1", 1)[:-1] + b', "more": 1}'),
        ("plain-1", value_of("plain-1", 1)[:-1]),
        ("", b"\xff"),
        ("plain-1", b"[1]"),
    ],
)
def test_anything_else_is_not_a_row(key: str, data: bytes) -> None:
    assert parse(key, data).key == ""


@given(st.lists(st.sampled_from([row("plain", 3), row("plain", 20), row("transactional", 3)])))
def test_packed_rows_are_the_rows(rows: list[OutputRow]) -> None:
    strange = OutputRow(-1, "", 0, "not a row")
    packed = PackedRows([strange, *rows])
    assert list(packed) == [*rows, strange]
    assert len(packed) == len(rows) + 1
