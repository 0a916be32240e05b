from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statestore.drills.judge.accounting import (
    OFFENDERS,
    Expected,
    OutputRow,
    Reading,
    account,
    live_findings,
    torn_batches,
)
from statestore.drills.judge.findings import Account, Verdict

PARTITIONS, BATCHES, SIZE = 3, 4, 5
KINDS = ("lost", "duplicated", "unexpected", "out_of_order", "torn")


def row(partition: int, number: int) -> OutputRow:
    return OutputRow(number // SIZE, f"p{partition}", number)


NUMBERS = range(BATCHES * SIZE)
ALL = Expected(
    frozenset(row(partition, number) for partition in range(PARTITIONS) for number in NUMBERS),
    committed=frozenset(range(BATCHES)),
)


def right() -> dict[str, list[OutputRow]]:
    return {f"partition-{partition}": [row(partition, number) for number in NUMBERS] for partition in range(PARTITIONS)}


def reading(rows: dict[str, list[OutputRow]], reader: str = "the last reader", shortfall: str = "") -> Reading:
    return Reading(reader, rows, shortfall)


def errors(found: Account) -> dict[str, int]:
    return {kind: getattr(found, kind) for kind in KINDS if getattr(found, kind)}


def balanced(found: Account) -> bool:
    """Every row read is either one that is due, one of a batch under way, a copy, or one that no batch has."""
    wrong = (found.lost, found.duplicated, found.unexpected)
    lost, duplicated, unexpected = (count or 0 for count in wrong)
    return None not in wrong and found.found == found.committed - lost + duplicated + unexpected


PLACES = st.tuples(st.integers(0, PARTITIONS - 1), st.sampled_from(NUMBERS))


def test_an_output_that_is_right_passes() -> None:
    found = account("rows", ALL, reading(right()))
    assert (found.verdict, errors(found), found.offenders) == (Verdict.PASS, {}, {})
    assert (found.attempted, found.committed, found.found) == (60, 60, 60)
    assert found.reason == "Each of 60 committed rows was found exactly once and in order."
    assert found.state_equal is None


@given(st.sets(PLACES, min_size=1, max_size=OFFENDERS))
def test_rows_that_are_missing_are_lost_and_their_batches_torn_unless_they_are_gone_as_a_whole(
    places: set[tuple[int, int]],
) -> None:
    gone = {row(*place) for place in places}
    rows = {partition: [one for one in those if one not in gone] for partition, those in right().items()}
    found = account("rows", ALL, reading(rows))
    in_part = {one.batch for one in gone if not ALL.batches[one.batch] <= gone}
    assert found.verdict is Verdict.FAIL
    assert errors(found) == {"lost": len(gone)} | ({"torn": len(in_part)} if in_part else {})
    assert found.offenders["lost"] == tuple(map(str, sorted(gone)))
    assert balanced(found)


@given(PLACES, st.integers(1, 3), st.data())
def test_copies_are_duplicated_wherever_they_are_and_nothing_else(
    place: tuple[int, int], copies: int, data: st.DataObject
) -> None:
    rows = right()
    for _ in range(copies):
        here = rows[data.draw(st.sampled_from(sorted(rows)))]
        here.insert(data.draw(st.integers(0, len(here))), row(*place))
    found = account("rows", ALL, reading(rows))
    assert (found.verdict, errors(found)) == (Verdict.FAIL, {"duplicated": copies})
    assert found.offenders == {"duplicated": (str(row(*place)),)}
    assert balanced(found)


@given(st.integers(0, PARTITIONS - 1), st.integers(0, BATCHES - 1), st.data())
def test_two_rows_of_a_batch_in_the_wrong_order_are_out_of_order_and_nothing_else(
    partition: int, batch: int, data: st.DataObject
) -> None:
    rows = right()
    here = rows[f"partition-{partition}"]
    first = data.draw(st.integers(0, SIZE - 2)) + batch * SIZE
    here[first], here[first + 1] = here[first + 1], here[first]
    found = account("rows", ALL, reading(rows))
    assert errors(found) == {"out_of_order": 1}
    assert found.offenders == {"out_of_order": (str(row(partition, first)),)}


@given(st.integers(0, PARTITIONS - 1), st.integers(1, BATCHES - 1))
def test_a_row_amid_a_later_batch_tears_its_own(partition: int, batch: int) -> None:
    rows = right()
    here = rows[f"partition-{partition}"]
    here.insert(batch * SIZE + 1, here.pop(batch * SIZE - 1))
    found = account("rows", ALL, reading(rows))
    assert errors(found) == {"out_of_order": 1, "torn": 2}
    assert found.offenders["torn"][0].startswith(f"batch {batch - 1}: the last reader found it in 2 pieces")


FOREIGN = st.sampled_from(
    [
        OutputRow(-1, "", 0, "not a row"),
        OutputRow(2, "p1", 999),
        row(1, 3)._replace(batch=2),
        row(1, 3)._replace(content="x"),
    ]
)


@given(st.lists(FOREIGN, min_size=1, max_size=4), st.data())
def test_rows_that_no_batch_has_are_unexpected_and_nothing_else(foreign: list[OutputRow], data: st.DataObject) -> None:
    rows = right()
    for one in foreign:
        here = rows[data.draw(st.sampled_from(sorted(rows)))]
        here.insert(data.draw(st.integers(0, len(here))), one)
    found = account("rows", ALL, reading(rows))
    assert errors(found) == {"unexpected": len(foreign)}
    assert found.offenders["unexpected"] == tuple(map(str, sorted(set(foreign))))
    assert balanced(found)


def test_a_key_on_two_partitions_has_no_order() -> None:
    rows = right()
    rows["partition-1"].append(rows["partition-0"].pop())
    found = account("rows", ALL, reading(rows))
    assert found.offenders["out_of_order"] == (str(row(0, NUMBERS[-1])),)


def test_rows_without_a_key_have_no_order_and_any_place() -> None:
    rows = [OutputRow(0, "", 0, str(number)) for number in range(6)]
    found = account("rows", Expected(frozenset(rows), frozenset({0})), reading({"b": rows[:2:-1], "a": rows[:3]}))
    assert found.verdict is Verdict.PASS


def test_the_batch_that_was_under_way_may_be_there_as_a_whole_or_not_at_all() -> None:
    under_way = replace(ALL, committed=frozenset(range(BATCHES - 1)))
    whole = account("rows", under_way, reading(right()))
    assert (whole.verdict, whole.committed, whole.found) == (Verdict.PASS, 45, 60)
    absent = {name: rows[:-SIZE] for name, rows in right().items()}
    assert account("rows", under_way, reading(absent)).verdict is Verdict.PASS
    in_part = {name: rows[: -SIZE if name == "partition-0" else None] for name, rows in right().items()}
    assert errors(account("rows", under_way, reading(in_part))) == {"torn": 1}


def test_offenders_are_the_first_few_by_batch_and_number() -> None:
    many = Expected(frozenset(OutputRow(batch, "k", batch) for batch in range(20)), committed=frozenset(range(20)))
    found = account("rows", many, reading({}))
    assert (found.lost, found.offenders["lost"]) == (20, tuple(f"batch {n} key k #{n}" for n in range(OFFENDERS)))
    assert found.reason == "20 lost (first: batch 0 key k #0)."


def test_a_reader_that_did_not_come_to_the_end_leaves_it_unknown() -> None:
    rows = {name: rows[:7] for name, rows in right().items()}
    found = account("rows", ALL, reading(rows, shortfall="partition-1 gave nothing for 30 s."))
    assert (found.verdict, errors(found)) == (Verdict.UNKNOWN, {})
    assert found.reason == "the last reader did not read to the end: partition-1 gave nothing for 30 s."
    assert {getattr(found, kind) for kind in KINDS} == {None}, "nothing was found, and nothing is known"
    assert not found.is_exact()


def test_what_is_wrong_for_sure_is_a_fail_even_without_the_end() -> None:
    rows = {name: rows[:7] + rows[:1] for name, rows in right().items()}
    found = account("rows", ALL, reading(rows, shortfall="The broker is gone."))
    assert (found.verdict, errors(found)) == (Verdict.FAIL, {"duplicated": 3})
    assert (found.lost, found.unexpected) == (None, None)
    assert found.reason.endswith("The broker is gone.")


def test_an_account_of_nothing_is_no_pass() -> None:
    found = account("rows", replace(ALL, committed=frozenset()), reading({}))
    assert (found.verdict, found.reason) == (
        Verdict.UNKNOWN,
        "The query has committed no row, so nothing was put to the test.",
    )


# ---- readers that read while the job ran


@given(st.lists(st.integers(0, BATCHES), min_size=PARTITIONS, max_size=PARTITIONS))
def test_a_reader_that_is_further_on_one_partition_than_on_another_sees_no_torn_batch(done: list[int]) -> None:
    rows = {name: rows[: count * SIZE] for (name, rows), count in zip(right().items(), done, strict=True)}
    early = reading(rows, "reader 1", shortfall="It was stopped.")
    assert torn_batches(ALL, [early], [reading(right())]) == {}
    found = account("rows", ALL, reading(right()), [early])
    assert (found.verdict, errors(found)) == (Verdict.UNKNOWN, {})
    assert found.reason == "reader 1 did not read to the end: It was stopped."
    assert (found.lost, found.duplicated, found.torn) == (0, 0, None), "another may have seen a torn batch"
    assert live_findings("rows", ALL, reading(right()), [early]).torn is None


def test_readers_that_came_to_the_end_are_part_of_a_pass() -> None:
    found = account("rows", ALL, reading(right()), [reading(right(), f"reader {number}") for number in range(3)])
    assert found.reason.endswith("in order, and 3 readers saw no torn batch.")


@given(st.integers(0, PARTITIONS - 1), st.integers(0, BATCHES - 2), st.integers(1, SIZE))
def test_a_reader_that_has_a_later_batch_must_have_all_of_the_earlier_one(partition: int, batch: int, few: int) -> None:
    rows = {name: rows[: (BATCHES - 1) * SIZE + 1] for name, rows in right().items()}
    del rows[f"partition-{partition}"][batch * SIZE : batch * SIZE + few]
    early = reading(rows, "reader 1", shortfall="It was stopped.")
    seen = live_findings("rows", ALL, reading(right()), [reading(right(), "reader 0"), early])
    assert (seen.readers, seen.torn) == (2, 1)
    missing = PARTITIONS * SIZE - few
    assert seen.offenders == (f"batch {batch}: reader 1 found {missing} of its rows and missed {few}",)
    assert errors(account("rows", ALL, reading(right()), [early])) == {"torn": 1}


def changed(change: str) -> dict[str, list[OutputRow]]:
    """Return what a reader has that found batch 1 twice, not at all, or with a row that nobody asked for."""
    rows, foreign = right(), {"unexpected": [row(9, 5)]}
    batch = [one for one in rows["partition-0"] if one.batch == 1]
    more = {"duplicated": batch, "lost": [], **foreign}[change]
    for partition, those in rows.items():
        if change == "lost":
            rows[partition] = [one for one in those if one.batch != 1]
        elif partition == "partition-0":
            rows[partition] = [*those, *more]
    return rows


@pytest.mark.parametrize(("change", "count"), [("duplicated", SIZE), ("lost", SIZE * PARTITIONS), ("unexpected", 1)])
def test_what_only_a_reader_saw_that_read_meanwhile_is_wrong_too_and_counts_once(change: str, count: int) -> None:
    final, live = reading(right()), [reading(changed(change), f"reader {number}") for number in (1, 2)]
    found = account("rows", ALL, final, live)
    assert (found.verdict, errors(found)) == (Verdict.FAIL, {change: count})
    assert errors(account("rows", ALL, reading(changed(change)), live)) == {change: count}
    short = [replace(one, shortfall="its broker is gone") for one in live]
    expected = Verdict.UNKNOWN if change == "lost" else Verdict.FAIL
    assert account("rows", ALL, final, short).verdict is expected


def test_a_batch_that_only_an_early_reader_has_seen_is_lost_and_was_not_torn() -> None:
    gone = {name: rows[:SIZE] + rows[2 * SIZE :] for name, rows in right().items()}
    found = account("rows", ALL, reading(gone), [reading(right(), "reader 1")])
    assert errors(found) == {"lost": PARTITIONS * SIZE}


def test_each_torn_batch_counts_once_however_many_readers_saw_it() -> None:
    rows = right()
    del rows["partition-0"][0]
    found = account("rows", ALL, reading(rows), [reading(rows, "reader 1"), reading(rows, "reader 2")])
    assert errors(found) == {"lost": 1, "torn": 1}


# ---- state

COUNTS = Expected(
    frozenset(OutputRow(batch, key, 2 * batch + 2, f"sum={batch}") for batch in range(3) for key in ("a", "b")),
    committed=frozenset(range(3)),
    stateful=True,
)


def counts() -> list[OutputRow]:
    return sorted(COUNTS.attempted)


def test_the_newest_row_of_each_key_is_the_state() -> None:
    found = account("counts", COUNTS, reading({"0": counts()}))
    assert (found.verdict, found.state_equal) == (Verdict.PASS, True)


@pytest.mark.parametrize(
    "rows",
    [
        counts()[:-1],
        [*counts()[:-1], counts()[-1]._replace(content="sum=77")],
        [*counts(), OutputRow(2, "a", 99, "sum=77")],
        [*counts(), OutputRow(2, "c", 1, "sum=1")],
    ],
)
def test_another_newest_row_is_another_state(rows: list[OutputRow]) -> None:
    found = account("counts", COUNTS, reading({"0": rows}))
    assert (found.verdict, found.state_equal) == (Verdict.FAIL, False)
    assert "the final state is not what plain pandas computes" in found.reason


def test_an_older_row_that_is_wrong_leaves_the_state_right() -> None:
    rows = [one._replace(content="sum=77") if one == OutputRow(0, "a", 2, "sum=0") else one for one in counts()]
    found = account("counts", COUNTS, reading({"0": rows}))
    assert (found.state_equal, errors(found)) == (True, {"lost": 1, "unexpected": 1, "torn": 1})


def test_state_that_was_found_wrong_where_it_is_kept_fails() -> None:
    assert account("counts", COUNTS, reading({"0": counts()}), state_equal=False).verdict is Verdict.FAIL
    assert account("counts", COUNTS, reading({"0": counts()}), state_equal=True).verdict is Verdict.PASS


def test_state_is_not_compared_by_half_a_reading() -> None:
    found = account("counts", COUNTS, reading({"0": counts()[:1]}, shortfall="Gone."))
    assert (found.verdict, found.state_equal) == (Verdict.UNKNOWN, None)


def test_a_key_that_moved_to_an_added_partition_is_in_order_on_each() -> None:
    moved = replace(ALL, keys_move=True)
    rows = right()
    rows["partition-9"] = [rows["partition-0"].pop()]
    assert errors(account("rows", moved, reading(rows))) == {}
    here = rows["partition-1"]
    here[0], here[1] = here[1], here[0]
    assert errors(account("rows", moved, reading(rows))) == {"out_of_order": 1}
