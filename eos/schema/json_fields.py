"""One field of a JSON value, checked against its schema."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from eos.schema.avro_text import DAYS, MILLIS, AvroField, Node, below
from eos.schema.conversions import BITS, converted, decimal, from_millis, shown, time_of_day, unwritten
from eos.schema.errors import Wrong

_LARGEST_FLOAT = 3.4028235677973366e38  # what is larger rounds to infinity in 32 bits
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""As the Java client writes them: as texts."""


def field_value(node: Node, given: Any, path: str = "") -> Any:
    """Return a value as Arrow takes it. Args: its schema; what JSON says; where it lies. Raises Wrong."""
    if given is None:
        if not node.nullable:
            raise Wrong(path, "null, where the schema has no null")
        return None
    if node.kind == "record":
        return _record(node, given, path)
    if node.items is not None:
        return _items(node, node.items, given, path)
    theirs = node.written or node
    kind, make = _READ[theirs.kind]
    if not isinstance(given, kind) or isinstance(given, bool) != (theirs.kind == "boolean"):
        raise Wrong(path, f"{shown(given)}, where the schema has {theirs.logical or theirs.kind}")
    value = make(theirs, given, path)
    return value if theirs is node else converted(theirs, node, value, path)


def _record(node: Node, given: Any, path: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise Wrong(path, f"{shown(given)}, where the schema has a record")
    found = {}
    for field in node.fields:
        at = below(path, field.name)
        name = field.given or field.name
        if name in given:
            found[field.name] = field_value(field.node, given[name], at)
        elif field.has_default:
            found[field.name] = _default(field, at)
        elif field.node.nullable:
            found[field.name] = None
        else:
            raise Wrong(at, "it is missing, and the schema has neither a default for it nor null")
    return found


def _default(field: AvroField, path: str) -> Any:
    try:
        return field_value(unwritten(field.node), field.default, path)
    except Wrong as wrong:
        raise Wrong(wrong.path, f"it is missing, and its default in the schema is wrong: {wrong.why}") from None


def _items(node: Node, items: Node, given: Any, path: str) -> Any:
    if node.kind == "array" and isinstance(given, list):
        return [field_value(items, item, f"{path}[{place}]") for place, item in enumerate(given)]
    if node.kind == "map" and isinstance(given, dict):
        return [(_text(node, key, path), field_value(items, item, f"{path}[{key}]")) for key, item in given.items()]
    raise Wrong(path, f"{shown(given)}, where the schema has {node.kind}")


def _whole(node: Node, given: int, path: str) -> Any:
    most = 2 ** BITS[node.kind]
    if not -most <= given < most:
        raise Wrong(path, f"{shown(given)}, which is beyond {node.kind}")
    if node.logical in DAYS:
        return time_of_day(node, given, path)
    return from_millis(given, path) if node.logical in MILLIS else given


def _broken(node: Node, given: int | Decimal | float | str, path: str) -> float:
    if isinstance(given, str):
        if given not in _NOT_FINITE:
            raise Wrong(path, f"{shown(given)}, where the schema has {node.kind}")
        return _NOT_FINITE[given]
    number = _rounded(given)
    most = _LARGEST_FLOAT if node.kind == "float" else math.inf
    if not isinstance(given, float) and abs(number) >= most:  # a float is what JSON itself calls NaN or Infinity
        raise Wrong(path, f"{shown(given)}, which is beyond {node.kind}")
    return float(np.float32(number)) if node.kind == "float" else number  # as it was written, however wide it is read


def _rounded(given: int | Decimal | float) -> float:
    try:
        return float(given)
    except OverflowError:
        return math.inf


def _text(node: Node, given: str, path: str) -> str:
    try:
        given.encode()
    except UnicodeEncodeError:
        raise Wrong(path, f"{given!r}, which is not a text in Unicode") from None
    return given


def _symbol(node: Node, given: str, path: str) -> str:
    return str(converted(node, node, _text(node, given, path), path))


def _bytes(node: Node, given: Any, path: str) -> Any:
    if node.logical == "decimal":
        return _decimal(node, given, path)
    if not isinstance(given, str):
        raise Wrong(path, f"{shown(given)}, where the schema has {node.kind}")
    return _text(node, given, path)


def _decimal(node: Node, given: Any, path: str) -> Decimal:
    if isinstance(given, str):
        raise Wrong(path, f"{shown(given)}, where the schema has a decimal, which is a number in JSON")
    return decimal(node, given, path)


def _as_given(node: Node, given: Any, path: str) -> Any:
    return given


_READ: Mapping[str, tuple[Any, Callable[[Node, Any, str], Any]]] = {
    "boolean": (bool, _as_given),
    "int": (int, _whole),
    "long": (int, _whole),
    "float": ((int, float, Decimal, str), _broken),
    "double": ((int, float, Decimal, str), _broken),
    "string": (str, _text),
    "enum": (str, _symbol),
    "bytes": ((str, int, Decimal), _bytes),
    "fixed": ((str, int, Decimal), _bytes),
}
