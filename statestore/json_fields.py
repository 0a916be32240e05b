"""Results and savepoints as JSON, printed and on disk, where a batch's number is `batch`; in Python it is `batch_id`.

The jar, savepoints that were written before, and scripts that read what the command line prints know that key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_BATCH_ID, _BATCH = "batch_id", "batch"


def key_of(name: str) -> str:
    """Return the key in JSON of a field."""
    return _BATCH if name == _BATCH_ID else name


def to_json(one: DataclassInstance) -> dict[str, Any]:
    """Return the fields of a dataclass, and of dataclasses in it, by their keys in JSON. The order stays."""
    return asdict(one, dict_factory=lambda fields: {key_of(name): value for name, value in fields})


def from_json(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what JSON says by the names of fields."""
    # The two change places: a key `batch_id`, which nobody writes, stays one that no dataclass has.
    names = {_BATCH: _BATCH_ID, _BATCH_ID: _BATCH}
    return {names.get(key, key): value for key, value in said.items()}
