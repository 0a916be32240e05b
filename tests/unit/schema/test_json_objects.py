from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

import pytest

from eos.schema import json_objects


def imported_beside(msgspec: ModuleType | None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module as it is where this msgspec is installed."""
    monkeypatch.setitem(sys.modules, "msgspec", msgspec)
    spec = importlib.util.spec_from_file_location("json_objects_again", json_objects.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("version", "used"),
    [
        ("0.9.1", False),
        ("0.18.6", False),
        ("0.18.6+local", False),
        ("0.19.0", True),
        ("0.20.1.dev0", True),
        ("0.22.0", True),
        ("1.0", True),
        ("0+unknown", False),
        ("", False),
    ],
)
def test_a_msgspec_that_misreads_whole_numbers_counts_as_not_installed(
    version: str, monkeypatch: pytest.MonkeyPatch, *, used: bool
) -> None:
    there = ModuleType("msgspec")
    there.__version__ = version  # type: ignore[attr-defined]
    assert imported_beside(there, monkeypatch).msgspec is (there if used else None)


def test_msgspec_need_not_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert imported_beside(None, monkeypatch).msgspec is None
