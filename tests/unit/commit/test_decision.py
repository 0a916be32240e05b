from __future__ import annotations

import pytest

from eos.commit.decision import (
    DECISION,
    Action,
    Case,
    Identity,
    Known,
    Past,
    check_ownership,
    decide,
    digest,
)
from eos.errors import (
    DamagedLog,
    EosError,
    IdentityMismatch,
    InvalidInput,
    StaleBatch,
)

OURS = Identity("query", "run-2", "offsets", principal="us")
EMPTY = Known()


def known(marker: int | None = None, intent: int | None = None, offsets: str = "offsets", ended: bool = True) -> Known:
    """What a log of our own query says."""
    return Known(
        "query",
        None if marker is None else Past(marker, "query", digest(offsets)),
        None if intent is None else Past(intent, "query", principal="us", ended=ended),
    )


# (row of the table, what the log says, batch, what follows)
ROWS: list[tuple[str, Known, int, Action | type[EosError]]] = [
    ("write", EMPTY, 0, Action.WRITE),
    ("write", EMPTY, 17, Action.WRITE),
    ("write", known(marker=4, intent=4), 5, Action.WRITE),
    ("write", known(marker=4, intent=4), 9, Action.WRITE),  # a gap
    ("write", known(marker=4, intent=5, ended=False), 5, Action.WRITE),  # begun, and not committed
    ("write", known(intent=0, ended=False), 0, Action.WRITE),
    ("hole", known(marker=4, intent=5, ended=False), 6, InvalidInput),
    ("hole", known(intent=0, ended=False), 3, InvalidInput),
    ("replay", known(marker=5, intent=5), 5, Action.SKIP),
    ("replay", known(marker=5, intent=6, ended=False), 5, Action.SKIP),
    ("other input", known(marker=5, intent=5, offsets="others"), 5, IdentityMismatch),
    ("stale", known(marker=5, intent=5), 4, StaleBatch),
    ("stale", known(marker=5, intent=5), 0, StaleBatch),
    ("damaged", known(intent=7), 6, DamagedLog),
    ("damaged", known(marker=4, intent=7), 6, DamagedLog),
    ("another query", Known("other", Past(5, "other", digest("offsets"))), 5, IdentityMismatch),
    ("another query", Known("other"), 0, IdentityMismatch),
    ("another query", Known("other", intent=Past(3, "other")), 9, IdentityMismatch),
    ("another principal", Known("query", intent=Past(3, "query", principal="them", ended=False)), 3, InvalidInput),
    # With its MARKER there the other principal's transaction has ended: nothing is left to be ended.
    ("write", Known("query", Past(3, "query", "d"), Past(3, "query", principal="them")), 4, Action.WRITE),
    # Not known is not different.
    ("write", Known("query", intent=Past(3, "query", principal=None, ended=False)), 3, Action.WRITE),
]


def retained(batch: int, offsets: str = "offsets") -> Past:
    return Past(batch, "query", digest(offsets))


# The same in a checkpoint that is being rolled forward, with the MARKER that is retained of the batch.
FORWARD: list[tuple[str, Known, Past | None, int, Action | type[EosError]]] = [
    ("in step", known(marker=5, intent=5), retained(3), 3, Action.SKIP),
    ("in step", known(marker=5, intent=6, ended=False), retained(4), 4, Action.SKIP),
    ("out of step", known(marker=5, intent=5), retained(3, "others"), 3, IdentityMismatch),
    ("stale", known(marker=5, intent=5), None, 3, StaleBatch),  # no longer kept
    ("replay", known(marker=5, intent=5), retained(5), 5, Action.SKIP),
    ("write", known(marker=5, intent=5), None, 6, Action.WRITE),
    ("another query", Known("other", Past(5, "other")), retained(3), 3, IdentityMismatch),
]


# The same in a checkpoint whose state was rewritten in the place of batches 5 and 6: 7 is the next.
JUMPED: list[tuple[str, Known, int, Action | type[EosError]]] = [
    ("write", known(marker=4, intent=4), 7, Action.WRITE),
    ("write", known(marker=4, intent=5, ended=False), 7, Action.WRITE),  # 5 was begun, and is not in the output
    ("hole", known(marker=3, intent=4, ended=False), 7, InvalidInput),
    ("hole", known(marker=4, intent=7, ended=False), 8, InvalidInput),
    ("rewritten before the output's batch", known(marker=5, intent=5), 7, StaleBatch),
    ("rewritten before the output's batch", known(marker=6, intent=6), 7, StaleBatch),
    ("other input", known(marker=7, intent=7, offsets="others"), 7, IdentityMismatch),
    ("stale", known(marker=8, intent=8), 7, StaleBatch),
    ("replay", known(marker=7, intent=7), 7, Action.SKIP),
    ("write", known(marker=7, intent=7), 8, Action.WRITE),
    ("another query", Known("other", Past(5, "other")), 7, IdentityMismatch),
]


# Batches up to this one were begun without the log, as with guarantee="at-least-once".
UNLOGGED: list[tuple[str, Known, int, Action | type[EosError]]] = [
    ("write", known(marker=4, intent=5, ended=False), 8, Action.WRITE),
    ("write", known(marker=4, intent=7, ended=False), 8, Action.WRITE),
    ("hole", known(marker=4, intent=8, ended=False), 9, InvalidInput),  # begun with the log again
]


def expect(row: str, case: Case, follows: Action | type[EosError], words: str | None = None) -> None:
    """Expect that this row of the table is the first that applies, and what follows from it."""
    assert next(rule for rule in DECISION if rule.applies(case)).name == row
    if isinstance(follows, Action):
        assert decide(*case) is follows
        return
    with pytest.raises(follows, match=words) as raised:
        decide(*case)
    assert type(raised.value) is follows
    assert "{" not in str(raised.value)


@pytest.mark.parametrize(("row", "log", "batch", "follows"), UNLOGGED)
def test_the_table_for_a_query_that_has_written_without_the_log(
    row: str, log: Known, batch: int, follows: Action | type[EosError]
) -> None:
    words = r"would be missing from the output.*`eos sink skip NAME --batch 8`"
    expect(row, Case(log, batch, OURS, unlogged=7), follows, words)


@pytest.mark.parametrize(("row", "log", "batch", "follows"), JUMPED)
def test_the_table_for_a_checkpoint_that_was_rescaled(
    row: str, log: Known, batch: int, follows: Action | type[EosError]
) -> None:
    expect(row, Case(log, batch, OURS, jumped=(5, 6)), follows)


@pytest.mark.parametrize(("row", "log", "batch", "follows"), ROWS)
def test_the_table(row: str, log: Known, batch: int, follows: Action | type[EosError]) -> None:
    expect(row, Case(log, batch, OURS), follows)


@pytest.mark.parametrize(("row", "log", "marker", "batch", "follows"), FORWARD)
def test_the_table_for_a_checkpoint_that_is_rolled_forward(
    row: str, log: Known, marker: Past | None, batch: int, follows: Action | type[EosError]
) -> None:
    expect(row, Case(log, batch, OURS, marker), follows)


def test_each_row_of_the_table_is_tested() -> None:
    assert {row for row, *_ in (*ROWS, *FORWARD, *JUMPED)} == {rule.name for rule in DECISION}


def test_a_refusal_names_both_sides() -> None:
    with pytest.raises(StaleBatch, match=r"holds batch 5, and Spark hands over batch 4"):
        decide(known(marker=5, intent=5), 4, OURS)
    with pytest.raises(IdentityMismatch, match=r"belongs to the query other, and this is the query query"):
        decide(Known("other"), 4, OURS)
    with pytest.raises(InvalidInput, match=r"batch 3 was opened by them, and to us"):
        check_ownership(Known("query", intent=Past(3, "query", principal="them", ended=False)), OURS)


def test_ownership_says_nothing_about_batches() -> None:
    check_ownership(EMPTY, OURS)
    check_ownership(known(marker=5, intent=9), OURS)


def test_the_same_offsets_means_every_byte_of_the_file() -> None:
    assert (
        Identity("q", "r", 'v1\n{"batchTimestampMs":1}').digest
        != Identity("q", "r", 'v1\n{"batchTimestampMs":2}').digest
    )
