"""The brokers of a plan are asked again where an answer may come later, and not where none will."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from eos.errors import Refused, RefusedForGood
from eos.pulsar.wire.message_id import EntryId
from eos.source.brokers import PulsarBrokers

TOPIC = "persistent://public/default/t"
LAST = EntryId(3, 7)


class Cursor:
    """Answers with these, one for each question."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def last_message_id(self) -> tuple[EntryId | None, EntryId | None]:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer, EntryId(0, -1)


def brokers(cursor: Cursor) -> PulsarBrokers:
    made = PulsarBrokers.__new__(PulsarBrokers)
    made._cursors = {TOPIC: cursor}  # type: ignore[dict-item]
    made._options = SimpleNamespace(subscription="s")  # type: ignore[assignment]
    return made


def test_a_bookie_that_is_away_for_a_moment_does_not_end_the_query() -> None:
    away = Refused("ask for the last message id", "MetadataError", "Bookie handle is not available")
    assert brokers(Cursor(away, away, LAST)).last(TOPIC) == LAST


def test_what_is_refused_for_good_is_asked_once() -> None:
    cursor = Cursor(RefusedForGood("ask", "AuthorizationError", "no right"), LAST)
    with pytest.raises(RefusedForGood):
        brokers(cursor).last(TOPIC)
    assert cursor.answers == [LAST]
