"""What a rehearsal says of two states: nothing is called the same that was not read."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast

import pytest

from statestore.checkpoint.findings import CheckpointFinding, Severity
from statestore.checkpoint.verification import VerificationReport
from statestore.drills.acts import rehearsal
from statestore.drills.acts.acts import Acts
from statestore.drills.acts.rehearsal import Live, compare
from statestore.drills.acts.same_state import Content, Stores
from statestore.drills.journal import CheckEvent, Event, NotTested
from statestore.errors import Unavailable

ROWS = {"operator 0": Content(3, 77)}
UNREAD = {"operator 1": "give the name of a state variable"}


@pytest.mark.parametrize(
    ("restored", "live", "same"),
    [
        (Stores(ROWS, {}), Stores(ROWS, {}), True),
        (Stores(ROWS, UNREAD), Stores(ROWS, UNREAD), True),
        (Stores({}, {}), Stores({}, {}), True),
        (Stores({"operator 0": Content(2, 77)}, {}), Stores(ROWS, {}), False),
        (Stores({}, {}), Stores(ROWS, {}), False),
        (Stores({}, UNREAD), Stores(ROWS, UNREAD), False),
        (Stores(ROWS, {}), Stores({}, UNREAD), False),
        (Stores({}, UNREAD), Stores({}, UNREAD), None),
        (Stores(ROWS, {}), Stores({}, dict.fromkeys(ROWS, "its file can't be read now")), None),
        (Stores({}, dict.fromkeys(ROWS, "its file can't be read now")), Stores(ROWS, {}), None),
        (Stores(ROWS | {"operator 1": Content(1, 1)}, {}), Stores(ROWS, UNREAD), True),
    ],
)
def test_only_what_was_read_of_both_is_the_same(
    restored: Stores, live: Stores, same: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[Event] = []
    states = {"bk://zk:2181/.rehearsals/1": restored, "bk://zk:2181/q": live}
    monkeypatch.setattr(rehearsal, "read_stores", lambda _, uri, *__: states[uri])
    whose = Live("bk://zk:2181/q", cast(Any, None))
    assert compare(whose, Acts(said.append), "a cut", "bk://zk:2181/.rehearsals/1", 7) is same
    assert [one.passed for one in said if isinstance(one, CheckEvent)] == ([] if same is None else [same])
    untold = [one.what for one in said if isinstance(one, NotTested)]
    assert untold == [f"the rows of {store}" for store in {**live.unread, **restored.unread}] + (
        ["a cut against the live state"] if same is None else []
    )


@pytest.mark.parametrize(("severity", "checks"), [("unknown", []), ("error", [False])])
def test_a_checkpoint_whose_copies_do_not_answer_is_not_said_to_be_bad(
    severity: Severity, checks: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[Event] = []
    found = CheckpointFinding(severity, "replica", "its copies could not be asked for", "Verify again")
    report = VerificationReport("u", None, (), 0, 0, None, (found,))
    monkeypatch.setattr(rehearsal, "verify", lambda *_, **__: report)
    monkeypatch.setattr(rehearsal, "operator_ids", lambda _: ())
    monkeypatch.setattr(rehearsal, "compare", lambda *_: True)
    monkeypatch.setattr(Live, "hadoop", None)
    with suppress(Unavailable):
        rehearsal._look(Live("q", cast(Any, None)), Acts(said.append), "a cut", "id", "scratch", 7)
    assert [one.passed for one in said if isinstance(one, CheckEvent)] == checks
