"""What `eos.catalog` is, whatever was imported before it."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

import eos


@pytest.mark.parametrize("name", [name for name in eos.__all__ if not name.startswith("__")])
def test_no_room_has_the_name_of_something_public(name: str) -> None:
    """Importing a package would put the package in its place."""
    assert find_spec(f"eos.{name}") is None
