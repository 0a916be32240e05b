"""The records of `eos local` about its instances between two commands: one state file for each, found by its name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eos.local import checks
from eos.local.places import cache

LOCK = "instances"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def check_name(name: str) -> None:
    """Raise `LocalError` for a text that is not the name of an instance."""
    if not _NAME.fullmatch(name):
        raise checks.LocalError(
            f"{name!r} is not a name for an instance. Use letters, digits, _ . - and at most 64 of them"
        )


def folder(name: str) -> Path:
    """The instance's folder in the cache folder, there or not."""
    return _root() / name


def names() -> list[str]:
    """The names of all instances, in order."""
    return [path.parent.name for path in sorted(_root().glob("*/state.json"))]


def read(name: str) -> dict[str, Any] | None:
    """The record that `write` has kept for this name. None when there is no such instance.

    Raises LocalError where the record is damaged, as after a power failure.
    """
    path = folder(name) / "state.json"
    try:
        held = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except ValueError:
        held = None
    if not isinstance(held, dict) or not {"name", "data", "data_is_ours"} <= held.keys():
        raise checks.LocalError(
            f"The record of the instance {name} is damaged, so its processes are not known. End those that run in "
            f"{path.parent}, if there are any. Then delete {path}"
        )
    return held


def write(name: str, state: Mapping[str, Any]) -> None:
    """Keep an instance's state, whole or not at all."""
    path = folder(name) / "state.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".new")
    scratch.write_text(json.dumps(state, default=str, indent=1))
    scratch.replace(path)


def forget(name: str) -> None:
    """Forget an instance; its folder stays when something is in it."""
    place = folder(name)
    (place / "state.json").unlink(missing_ok=True)
    if place.exists() and not any(place.iterdir()):
        place.rmdir()


def _root() -> Path:
    return cache() / "local"
