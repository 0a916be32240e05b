from __future__ import annotations

import importlib.util
import sys
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest

from eos.schema import json_objects
from eos.schema.json_objects import parsed


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


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1e400", Decimal("1e400")),
        ("1e1000000000000000000", Decimal("1e100000000000000000")),
        ("-2.5E+1000000000000000000", Decimal("-2.5e100000000000000000")),
        ("1e-99999999999999999999", Decimal("1e-100000000000000000")),
        ("0e99999999999999999999", Decimal(0)),
        ("9" * 4300, 10**4300 - 1),
        ("-" + "9" * 4301, Decimal("-" + "9" * 4301)),
    ],
)
def test_no_number_is_too_large_to_be_parsed(text: str, number: Any) -> None:
    found = parsed(f'{{"a": [{text}], "b": 1.5}}'.encode())
    assert found == {"a": [number], "b": Decimal("1.5")}
    assert type(found["a"][0]) is type(number)


@pytest.mark.parametrize("text", ["1e1000000000000000000x", '{"a": 1e1000000000000000000', "9" * 5000 + "]"])
def test_what_is_no_json_is_none_beside_such_a_number(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(Extra data|Expecting)"):
        parsed(text.encode())
