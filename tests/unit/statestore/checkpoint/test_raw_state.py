"""Addresses at which Spark finds no state: each call that has it read some refuses them first."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from statestore import bootstrap, read_state, rescale, state_difference
from statestore.checkpoint import difference
from statestore.errors import InvalidInput
from statestore.hadoop.file_systems import Hadoop

SPARK: Any = None
HISTORY: Any = SimpleNamespace(isStreaming=False, sparkSession=None)
CALLS: dict[str, Callable[[str], object]] = {
    "bootstrap": lambda uri: bootstrap(lambda rows: rows, HISTORY, uri),
    "read_state": lambda uri: read_state(uri, spark=SPARK),
    "rescale": lambda uri: rescale("file:///before", uri, 4, spark=SPARK),
    "state_difference": lambda uri: state_difference(uri, "file:///other", spark=SPARK),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", ["a b", "a%20b", "a#b", "a?b", "[a]", "{a,b}", "a\\b"])
def test_what_a_uri_quotes_is_refused(call: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark looks for "a%20b" in place of "a b", and says that no batch was committed."""
    monkeypatch.setattr(Hadoop, "of", lambda *_, **__: SimpleNamespace(qualified=lambda uri: uri))
    monkeypatch.setattr(difference, "check_whole", lambda *_: None)
    with pytest.raises(InvalidInput, match=r"Spark does not find state at such an address\. Name one without it"):
        CALLS[call](f"file:///queries/{name}")


def test_the_history_is_not_read_by_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hadoop, "of", lambda *_, **__: SimpleNamespace(qualified=lambda uri: uri))
    with pytest.raises(InvalidInput, match=r"file:///queries/\* has '\*' in it"):
        bootstrap(lambda rows: rows, HISTORY, "file:///queries/*")
