"""Avro's schema text as a tree. JSON schemas of Pulsar are written in it too.

A schema without a counterpart in Spark is refused with the path of its field: a union of several types (but for null,
and for two numbers, one of them wide enough for both), a record that contains itself, and null alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from eos.errors import InvalidInput
from eos.pickling import PickledByName

LOGICAL: Mapping[str, frozenset[str]] = {
    "int": frozenset({"date", "time-millis"}),
    "long": frozenset(
        {
            "time-micros",
            "timestamp-millis",
            "timestamp-micros",
            "local-timestamp-millis",
            "local-timestamp-micros",
        }
    ),
    "bytes": frozenset({"decimal"}),
    "fixed": frozenset({"decimal"}),
}
"""{type: its logical types that count}. As Avro wants it, any other is read as the type below it."""

MILLIS = frozenset({"timestamp-millis", "local-timestamp-millis"})
"""Those that count milliseconds; other moments are counted in microseconds, as Spark's are."""

DAYS: Mapping[str, int] = {"time-millis": 86_400_000, "time-micros": 86_400_000_000}
"""{logical type of a time of day: what a day has of its units}."""

MAX_PRECISION = 38
"""Digits of Spark's largest decimal."""

_PLAIN = frozenset({"boolean", "int", "long", "float", "double", "bytes", "string"})
_NULLS: tuple[Any, ...] = ("null", {"type": "null"})
_WIDER = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}


@dataclass(frozen=True, slots=True)
class Node(PickledByName):
    """One type in a schema.

    Attributes:
        kind: "boolean", "int", "long", "float", "double", "bytes", "string", "enum", "fixed", "array", "map", "record";
            in protobuf also "uint32" and "uint64".
        logical: one of LOGICAL, or "".
        nullable: whether null may stand in its place.
        fields: of a record.
        items: of an array or a map; its keys are strings.
        precision, scale: of a decimal.
        symbols: of an enum.
        size: bytes of a fixed.
        branch: the place of the type in its union; None outside of one. Two types that differ in it alone are equal.
        null_branch: the place of null in that union, where it is nullable.
        narrow: in a union of two numbers the place and the type of the smaller one; None elsewhere.
        other_symbol: of an enum: the symbol that stands for those that it does not have; "" where there is none.
        written: the type that the values were written in, where it is read as this one (`eos.schema.conversions`).
    """

    kind: str
    logical: str = ""
    nullable: bool = False
    fields: tuple[AvroField, ...] = ()
    items: Node | None = None
    precision: int = 0
    scale: int = 0
    symbols: tuple[str, ...] = ()
    size: int = 0
    branch: int | None = field(default=None, compare=False)
    null_branch: int = field(default=0, compare=False)
    narrow: tuple[int, str] | None = field(default=None, compare=False)
    other_symbol: str = field(default="", compare=False)
    written: Node | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class AvroField(PickledByName):
    """One field of a record.

    Attributes:
        name: of the field.
        node: its type.
        has_default: whether a value stands for one that is missing.
        default: that value, as JSON has it.
        aliases: the names that it had in earlier versions.
        given: the name that the messages have it by, where that is another one.
    """

    name: str
    node: Node
    has_default: bool = False
    default: Any = None
    aliases: tuple[str, ...] = field(default=(), compare=False)
    given: str = field(default="", compare=False)


def parse_avro(text: bytes, where: str) -> Node:
    """Return the tree of a schema's text. Args: the text; whose it is, for messages. Raises InvalidInput."""
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where} is not an Avro schema: {error}") from error
    try:
        return _Parser(where).node(schema, "", "")
    except (KeyError, TypeError, AttributeError, RecursionError, UnicodeEncodeError) as error:
        raise InvalidInput(f"{where} is not an Avro schema: {error!r} in {text.decode(errors='replace')}") from error


class _Parser:
    def __init__(self, where: str) -> None:
        self._where = where
        self._named: dict[str, Node | None] = {}

    def node(self, schema: Any, path: str, namespace: str) -> Node:
        if isinstance(schema, list):
            return self._union(schema, path, namespace)
        if isinstance(schema, str):
            return self._by_name(schema, path, namespace)
        kind = schema["type"]
        if isinstance(kind, list | dict):
            return self.node(kind, path, namespace)
        if kind in ("array", "map"):
            inner, name = ("items", "element") if kind == "array" else ("values", "value")
            return Node(kind, items=self.node(schema[inner], below(path, name), namespace))
        if kind in ("record", "error", "enum", "fixed"):
            return self._new_name(schema, kind, path, namespace)
        return self._with_logical(self._by_name(kind, path, namespace), schema, path)

    def _union(self, branches: list[Any], path: str, namespace: str) -> Node:
        present = [branch for branch in branches if branch not in _NULLS]
        nodes = [self.node(branch, path, namespace) for branch in present]
        nullable = len(present) < len(branches)
        if len(nodes) == 1:
            place = branches.index(present[0])
            return replace(nodes[0], nullable=nullable or nodes[0].nullable, branch=place, null_branch=_null(branches))
        wider = _WIDER.get(frozenset(node.kind for node in nodes))
        if wider is not None and not any(node.logical for node in nodes):
            kinds = [node.kind for node in nodes]
            place, other = (branches.index(present[at]) for at in (kinds.index(wider), 1 - kinds.index(wider)))
            narrow = other, kinds[1 - kinds.index(wider)]
            return Node(wider, nullable=nullable, branch=place, null_branch=_null(branches), narrow=narrow)
        raise self._refused(path, f"a union of {', '.join(node.kind for node in nodes) or 'null alone'}")

    def _by_name(self, name: str, path: str, namespace: str) -> Node:
        if name in _PLAIN:
            return Node(name)
        if name == "null":
            raise self._refused(path, "null alone")
        full = _full(name, namespace)
        if full not in self._named:
            raise InvalidInput(f"{self._where} is not an Avro schema: {_at(path)} has the unknown type {name!r}")
        known = self._named[full]
        if known is None:
            raise self._refused(path, f"the record {name} inside itself")
        return known

    def _new_name(self, schema: Mapping[str, Any], kind: str, path: str, namespace: str) -> Node:
        full = _full(schema["name"], schema.get("namespace", namespace))
        inside = full.rpartition(".")[0]
        if kind in ("enum", "fixed"):
            if kind == "enum":
                symbols, other = tuple(map(_in_unicode, schema["symbols"])), schema.get("default")
                named = Node(kind, symbols=symbols, other_symbol=_in_unicode(other) if isinstance(other, str) else "")
            else:
                named = Node(kind, size=_size(schema["size"]))
            node = self._with_logical(named, schema, path)
        else:
            self._named[full] = None
            node = Node("record", fields=tuple(self._field(field, path, inside) for field in schema["fields"]))
            twice = {field.name.lower() for field in node.fields}
            if len(twice) < len(node.fields):
                raise self._refused(path, "a record with two fields whose names differ in case alone")
        self._named[full] = node
        return node

    def _field(self, field: Mapping[str, Any], path: str, namespace: str) -> AvroField:
        name = _in_unicode(field["name"])
        node = self.node(field["type"], below(path, name), namespace)
        aliases = tuple(field.get("aliases", ()))
        return AvroField(name, node, "default" in field, field.get("default"), aliases)

    def _with_logical(self, node: Node, schema: Mapping[str, Any], path: str) -> Node:
        logical = str(schema.get("logicalType"))
        if logical not in LOGICAL.get(node.kind, ()):
            return node
        if logical != "decimal":
            return replace(node, logical=logical)
        precision: Any = schema.get("precision")
        scale = schema.get("scale", 0)
        if not _is_decimal(node, precision, scale):
            return node
        if precision > MAX_PRECISION:
            raise self._refused(path, f"decimal({precision}, {scale}), which has more than {MAX_PRECISION} digits")
        return replace(node, logical=logical, precision=precision, scale=scale)

    def _refused(self, path: str, what: str) -> InvalidInput:
        return InvalidInput(f"{self._where} can't be read as Spark's types: {_at(path)} is {what}")


def _is_decimal(node: Node, precision: Any, scale: Any) -> bool:
    """Return whether Avro allows such a decimal. Of another one it reads the type below, as Java does."""
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision or precision == 0:
        return False
    return node.kind == "bytes" or precision <= math.log10(2) * (8 * node.size - 1)


def _null(branches: list[Any]) -> int:
    return next((place for place, branch in enumerate(branches) if branch in _NULLS), 0)


def _in_unicode(name: str) -> str:
    """Return a name. Raises UnicodeEncodeError for half a surrogate, which no column has a place for."""
    name.encode()
    return name


def _size(given: Any) -> int:
    if type(given) is not int or given < 0:
        raise TypeError(f"the size {given!r}")
    return given


def _full(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def below(path: str, name: str) -> str:
    """Return where a field of this name lies, in the record that lies at `path`; "" is the whole value."""
    return f"{path}.{name}" if path else name


def _at(path: str) -> str:
    return f"field {path!r}" if path else "it"
