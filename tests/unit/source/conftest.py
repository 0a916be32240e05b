"""Waits that end at once."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import pytest


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each wait of a retry end after three tries."""
    clock = count(0, 20)
    monkeypatch.setattr("eos.backoff.time", SimpleNamespace(sleep=lambda _: None, monotonic=lambda: next(clock)))
