"""Nothing was published since a time only where nothing can have been deleted since; the topic is faked."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from eos.config import Cluster
from eos.errors import Refused, TopicMissing
from eos.inspect import deletions
from eos.inspect.deletions import Published, published_since
from eos.pulsar.net.admin import LedgerList
from eos.source.errors import lost

T = 1_000
TOPIC = "persistent://public/default/t"
LOST = lost("t", "its ledger is gone")


class Store:
    """One partition: when each of its messages was published, and its list of ledgers at each question."""

    def __init__(self, published: list[int], ledgers: list[LedgerList | Exception], lost: bool = False) -> None:
        self.published, self._ledgers, self.lost = published, iter(ledgers), lost

    def ledger_list(self, topic: str) -> LedgerList:
        told = next(self._ledgers)
        if isinstance(told, Exception):
            raise told
        return told


def ask(monkeypatch: pytest.MonkeyPatch, store: Store, *, admin: bool = True) -> Published:
    class Rows:
        def __init__(self, cluster: Cluster, topic: str, start: str, lose: Any, **asked: Any) -> None:
            self._from, self._lose = 0 if start == "earliest" else int(start), lose

        def partitions(self) -> list[str]:
            return [TOPIC]

        def entries(self) -> Iterator[tuple[str, list[Any]]]:
            if store.lost:
                self._lose(LOST)
            for at_ms in store.published:
                if at_ms >= self._from:
                    yield TOPIC, [SimpleNamespace(num_messages=2, metadata=SimpleNamespace(publish_time=at_ms))]

    monkeypatch.setattr(deletions, "TopicRows", Rows)
    api: Any = store if admin else None
    return published_since(Cluster("pulsar://nowhere"), api, TOPIC, T)


def listed(changed_ms: int, *ids: int) -> LedgerList:
    return LedgerList(changed_ms, frozenset(ids))


OLD, LOADED = listed(T - 1, 3), listed(T + 5, 3, 4)


@pytest.mark.parametrize(
    ("store", "stored"),
    [
        (Store([T - 1], [listed(T + 5, 3)]), 0),
        (Store([T - 1, T, T + 1], [listed(T + 5, 3)]), 4),
        (Store([], [OLD, OLD]), 0),
        (Store([], [OLD, LOADED]), 0),
        (Store([T + 2], [OLD, LOADED]), 2),
    ],
    ids=["an older message", "older and newer", "unchanged", "loaded by the question itself", "first after it"],
)
def test_nothing_was_deleted_where_older_data_or_the_list_of_ledgers_prove_it(
    monkeypatch: pytest.MonkeyPatch, store: Store, stored: int
) -> None:
    assert ask(monkeypatch, store) == Published(stored, ())


@pytest.mark.parametrize(
    ("store", "words"),
    [
        (Store([], [LOADED, LOADED]), "stores no message, and its list of ledgers changed at 1970-01-01T00:00:01.005Z"),
        (Store([], [listed(T, 3), listed(T, 3)]), "its list of ledgers changed"),
        (Store([], [OLD, listed(T + 5, 4)]), "its list of ledgers changed"),
        (Store([T + 1], [LOADED, LOADED]), "was published at 1970-01-01T00:00:01.001Z, and its list of ledgers"),
        (Store([T], [LOADED, LOADED]), "its list of ledgers changed"),
        (Store([], [TopicMissing("t is missing")] * 2), "when its ledgers changed cannot be known (t is missing"),
        (Store([], [Refused("GET", "403", "no")] * 2), "when its ledgers changed cannot be known"),
        (Store([T - 1], [OLD], lost=True), "data of t was lost: its ledger is gone"),
    ],
    ids=["changed since", "at once", "deleted by loading", "newer", "as old", "missing", "not allowed", "lost"],
)
def test_what_may_have_been_deleted_is_in_doubt(monkeypatch: pytest.MonkeyPatch, store: Store, words: str) -> None:
    found = ask(monkeypatch, store)
    assert len(found.doubts) == 1
    assert words in found.doubt
    assert "failOnDataLoss" not in found.doubt


def test_without_an_admin_api_only_older_messages_prove_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(monkeypatch, Store([T - 1], []), admin=False) == Published(0, ())
    assert "only the admin API tells" in ask(monkeypatch, Store([], []), admin=False).doubt


def test_many_doubts_are_counted() -> None:
    assert Published(0, tuple("abcde")).doubt == "a; b; c; and so on for 2 more"
