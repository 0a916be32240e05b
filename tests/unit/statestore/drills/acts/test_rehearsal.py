"""What a rehearsal says of two states: nothing is called the same that was not read."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import Any, cast

import pytest

from statestore.checkpoint.findings import CheckpointFinding, Severity
from statestore.checkpoint.verification import VerificationReport
from statestore.drills.acts import rehearsal
from statestore.drills.acts.acts import Acts
from statestore.drills.acts.rehearsal import Live, compare
from statestore.drills.acts.same_state import Content, Stores
from statestore.drills.journal import CheckEvent, Event, NotTested
from statestore.errors import Damaged, Unavailable

ROWS = {"operator 0": Content(3, 77)}
UNREAD = {"operator 1": "give the name of a state variable"}


@pytest.mark.parametrize(
    ("restored", "live", "outcome"),
    [
        (Stores(ROWS, {}), Stores(ROWS, {}), "same"),
        (Stores(ROWS, UNREAD), Stores(ROWS, UNREAD), "same"),
        (Stores({}, {}), Stores({}, {}), "same"),
        (Stores({"operator 0": Content(2, 77)}, {}), Stores(ROWS, {}), "different"),
        (Stores({}, {}), Stores(ROWS, {}), "different"),
        (Stores({}, UNREAD), Stores(ROWS, UNREAD), "different"),
        (Stores(ROWS, {}), Stores({}, UNREAD), "different"),
        (Stores({}, UNREAD), Stores({}, UNREAD), "unreadable"),
        (Stores(ROWS, {}), Stores({}, dict.fromkeys(ROWS, "its file can't be read now")), "unreadable"),
        (Stores({}, dict.fromkeys(ROWS, "its file can't be read now")), Stores(ROWS, {}), "unreadable"),
        (Stores(ROWS | {"operator 1": Content(1, 1)}, {}), Stores(ROWS, UNREAD), "same"),
    ],
)
def test_only_what_was_read_of_both_is_the_same(
    restored: Stores, live: Stores, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[Event] = []
    states = {"bk://zk:2181/.rehearsals/1": restored, "bk://zk:2181/q": live}
    monkeypatch.setattr(rehearsal, "read_stores", lambda _, uri, *__: states[uri])
    whose = Live("bk://zk:2181/q", cast(Any, None))
    assert compare(whose, Acts(said.append), "a cut", "bk://zk:2181/.rehearsals/1", 7) == outcome
    checks = [one.passed for one in said if isinstance(one, CheckEvent)]
    assert checks == {"same": [True], "different": [False], "unreadable": []}[outcome]
    untold = [one.what for one in said if isinstance(one, NotTested)]
    assert untold == [f"the rows of {store}" for store in {**live.unread, **restored.unread}] + (
        ["a cut against the live state"] if outcome == "unreadable" else []
    )


@pytest.mark.parametrize(
    ("restored", "live", "error"),
    [
        (None, Unavailable("purged"), None),
        (None, Damaged("not what was written"), Damaged),
        (Unavailable("the restored state lacks its batch"), None, Unavailable),
    ],
)
def test_only_a_live_state_that_is_gone_is_no_finding(
    restored: Exception | None, live: Exception | None, error: type[Exception] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[Event] = []

    def read_stores(_: object, uri: str, *__: object) -> Stores:
        if failure := restored if "rehearsals" in uri else live:
            raise failure
        return Stores(ROWS, {})

    monkeypatch.setattr(rehearsal, "read_stores", read_stores)
    whose = Live("bk://zk:2181/q", cast(Any, None))
    with nullcontext() if error is None else pytest.raises(error):
        assert compare(whose, Acts(said.append), "a cut", "bk://zk:2181/.rehearsals/1", 7) == "gone"
        assert [one.why for one in said if isinstance(one, NotTested)] == ["purged"]


@pytest.mark.parametrize("compared", ["same", "different", "gone", "unreadable"])
def test_a_rehearsal_whose_cut_could_not_be_compared_has_no_verdict(
    compared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where Spark can't give a state as a table, another try would not tell more: what was not tested says so."""
    looked = []

    def look(_: object, __: object, what: str, *___: object) -> str:
        looked.append(what)
        return compared

    monkeypatch.setattr(rehearsal, "_look", look)
    monkeypatch.setattr(rehearsal, "cut_of", lambda *_: nullcontext(("scratch", 7)))
    monkeypatch.setattr(rehearsal, "read_query_id", lambda _: "id")
    monkeypatch.setattr(Live, "hadoop", None)
    said: list[Event] = []
    with (
        pytest.raises(Unavailable, match="no longer had the state of batch 7") if compared == "gone" else nullcontext()
    ):
        rehearsal.rehearse(Live("file:/q", cast(Any, None)), Acts(said.append))
    assert looked == ["a cut of the checkpoint"]
    assert [one.what for one in said if isinstance(one, NotTested)] == ["savepoints"], "they were looked for"


@pytest.mark.parametrize(("severity", "checks"), [("unknown", []), ("error", [False])])
def test_a_checkpoint_whose_copies_do_not_answer_is_not_said_to_be_bad(
    severity: Severity, checks: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[Event] = []
    found = CheckpointFinding(severity, "replica", "its copies could not be asked for", "Verify again")
    report = VerificationReport("u", None, (), 0, 0, None, (found,))
    monkeypatch.setattr(rehearsal, "verify", lambda *_, **__: report)
    monkeypatch.setattr(rehearsal, "operator_ids", lambda _: ())
    monkeypatch.setattr(rehearsal, "compare", lambda *_: "same")
    monkeypatch.setattr(Live, "hadoop", None)
    with suppress(Unavailable):
        rehearsal._look(Live("q", cast(Any, None)), Acts(said.append), "a cut", "id", "scratch", 7)
    assert [one.passed for one in said if isinstance(one, CheckEvent)] == checks
