"""What the judge asks of its readers; tests/integration/drills has it read a real topic."""

from __future__ import annotations

from typing import Any, cast

import pytest

from statestore.drills.judge import oracle
from statestore.drills.judge.accounting import Expected, OutputRow, Reading
from statestore.drills.judge.findings import Verdict
from statestore.drills.judge.oracle import LiveReaders

ROW = OutputRow(0, "k", 0)


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [([ROW], Verdict.PASS), ([ROW, ROW], Verdict.FAIL), ([], Verdict.FAIL)],
    ids=["right", "twice", "never"],
)
def test_readers_that_read_meanwhile_come_to_the_end_before_the_last_one_and_are_judged_too(
    seen: list[OutputRow], verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = []

    class Live:
        def finish(self, patience_s: float) -> list[Reading]:
            order.append("live")
            return [Reading("reader 1", {"p": seen})]

    def read_all(*_: Any) -> Reading:
        order.append("last")
        return Reading("the last reader", {"p": [ROW]})

    monkeypatch.setattr(oracle, "read_all", read_all)
    expected = Expected(frozenset({ROW}), committed=frozenset({0}))
    account, readers = oracle.judge("rows", "pulsar://h:1", "t", expected, cast(LiveReaders, Live()))
    assert order == ["live", "last"]
    assert (account.verdict, readers.readers) == (verdict, 1)
