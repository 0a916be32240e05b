"""Copies of entries on bookies: each entry is asked for once, and what is wrong is told by how much it matters."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from statestore.bk.replicas import LostLedger, check_copies
from statestore.bk.tree import FileRecord
from statestore.checkpoint.verification import VerificationReport, _bad, _lost
from statestore.errors import NotFound, StateStoreError, Unavailable


def record(ledger: int, first: int, last: int) -> FileRecord:
    return FileRecord("/f", "w", 0, ledger, first, last, 1024, 10, 0, 0)


class Bookies:
    """Three bookies that have all entries, but for what is said otherwise."""

    def __init__(self, wrong: Mapping[tuple[int, int, str], str] | None = None) -> None:
        self.wrong = wrong or {}
        self.asked: list[tuple[int, int, int]] = []

    def ask(self, ledger: int, first: int, last: int) -> str:
        self.asked.append((ledger, first, last))
        return "".join(
            f"{entry} {bookie} {self.wrong.get((ledger, entry, bookie), 'good')}\n"
            for entry in range(first, last + 1)
            for bookie in ("a:1", "b:1", "c:1")
        )


def test_each_entry_is_asked_for_once_in_runs() -> None:
    bookies = Bookies()
    files = {
        "p": record(7, 0, 2),
        "q": record(7, 2, 3),
        "r": record(7, 9, 9),
        "s": record(8, 0, 0),
        "empty": record(-1, 0, -1),
    }
    copies, bad, lost = check_copies(files, lambda _: True, bookies.ask)
    assert bookies.asked == [(7, 0, 3), (7, 9, 9), (8, 0, 0)]
    assert (copies, bad, lost) == (18, [], [])


def test_long_runs_are_asked_for_in_parts() -> None:
    bookies = Bookies()
    told: list[tuple[int, int, str]] = []
    check_copies({"p": record(7, 5, 604)}, lambda _: True, bookies.ask, lambda *now: told.append(now))
    assert bookies.asked == [(7, 5, 260), (7, 261, 516), (7, 517, 604)]
    assert told == [(0, 600, "ledger 7"), (256, 600, "ledger 7"), (512, 600, "ledger 7")]


@pytest.mark.parametrize(
    ("says", "sealed", "others", "severity", "remedy"),
    [
        ("Entry digest does not match", True, 2, "error", "Recover the bookie"),
        ("No such entry", True, 2, "error", "Recover the bookie"),
        ("No such entry", False, 2, "warning", "on its way"),
        ("Entry digest does not match", False, 2, "error", "Recover the bookie"),
        ("Bookie handle is not available", True, 2, "warning", "Start the bookie"),
        ("Bookie handle is not available", True, 0, "error", "No bookie has a good copy"),
        ("No such entry", False, 0, "error", "No bookie has a good copy"),
    ],
)
def test_how_much_a_bad_copy_matters(says: str, sealed: bool, others: int, severity: str, remedy: str) -> None:
    wrong = {(7, 3, "a:1"): says}
    if not others:
        wrong |= {(7, 3, "b:1"): says, (7, 3, "c:1"): says}
    copies, bad, _ = check_copies({"p": record(7, 3, 3), "q": record(7, 3, 4)}, lambda _: sealed, Bookies(wrong).ask)
    assert copies == 6
    assert len(bad) == (1 if others else 3)
    finding = next(_bad(bad))
    assert (finding.severity, finding.kind) == (severity, "replica")
    assert (finding.file, finding.ledger, finding.entry, finding.bookie) == ("p", 7, 3, "a:1")
    assert remedy in finding.remedy
    assert f"{others} other good" in finding.message
    assert "p, q" in finding.message


@pytest.mark.parametrize(
    ("error", "severity", "answer"),
    [(NotFound("BookKeeper has no ledger 7"), "error", "no"), (Unavailable("no answer"), "unknown", "unknown")],
)
def test_a_ledger_is_lost_only_if_bookkeeper_says_so(error: StateStoreError, severity: str, answer: str) -> None:
    def ask(ledger: int, first: int, last: int) -> str:
        raise error

    copies, bad, lost = check_copies({"p": record(7, 0, 0), "q": record(7, 5, 5)}, lambda _: True, ask)
    assert (copies, bad, lost) == (0, [], [LostLedger(7, str(error), ("p", "q"), answer == "no")])
    found = tuple(_lost(lost))
    assert [(one.severity, one.ledger, one.file) for one in found] == [(severity, 7, "p"), (severity, 7, "q")]
    assert all(str(error) in one.message for one in found)
    assert VerificationReport("bk://z:1/q", "id", (3,), 1, 10, 0, found).answer == answer


def test_an_answer_that_is_none() -> None:
    with pytest.raises(StateStoreError, match="can't be read"):
        check_copies({"p": record(7, 0, 0)}, lambda _: True, lambda *_: "nonsense\n")
