"""What a rehearsal says of two states: nothing is called the same that was not read."""

from __future__ import annotations

from typing import Any, cast

import pytest

from statestore.drills.acts import rehearsal
from statestore.drills.acts.acts import Acts
from statestore.drills.acts.rehearsal import Live, compare
from statestore.drills.acts.same_state import Content, Stores
from statestore.drills.journal import CheckEvent, Event, NotTested

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
    assert untold == [f"the rows of {store}" for store in restored.unread] + (
        ["a cut against the live state"] if same is None else []
    )
