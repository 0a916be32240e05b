"""One function restores a savepoint of either kind."""

from __future__ import annotations

from typing import Any

import pytest

import statestore
from statestore.errors import InvalidInput
from statestore.savepoints import bookkeeper, pulsar_topic

TOPIC = "pulsar://h:6650/public/default/savepoints"


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[Any, ...]]]:
    """What was asked of either kind of place."""
    found: list[tuple[str, tuple[Any, ...]]] = []
    for module in (bookkeeper, pulsar_topic):
        kind = module.__name__.rpartition(".")[2]
        monkeypatch.setattr(module, "restore", lambda *given, kind=kind, **_: found.append((kind, given)))
    return found


def test_a_name_is_on_bookkeeper_and_a_topic_has_savepoints(calls: list[tuple[str, tuple[Any, ...]]]) -> None:
    statestore.restore("nightly", "bk://z:1/new")
    statestore.restore(TOPIC, "file:///new", name="nightly")
    assert calls == [
        ("bookkeeper", ("nightly", "bk://z:1/new")),
        ("pulsar_topic", (TOPIC, "file:///new", "nightly")),
    ]


def test_a_second_name_is_refused_before_anything_is_done(calls: list[tuple[str, tuple[Any, ...]]]) -> None:
    with pytest.raises(InvalidInput, match="is not a topic"):
        statestore.restore("nightly", "bk://z:1/new", name="other")
    assert calls == []
