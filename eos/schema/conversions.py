"""Which type of a message's schema version is read as which type of the query's: one table for all formats.

A broker compares the versions of a schema by Avro's rules, which know nothing of logical types: it takes a plain number
for a time, and an older version's milliseconds for microseconds. JSON values do not even say which version is meant. So
each pair of types is looked up here before any value is read. A pair that the table does not have is refused.

A pair that it has keeps the meaning of every value. A value that the query's type has no place for is an error of its
own: a number that is no longer exact, a symbol that the enum does not have, a decimal with more digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any

import numpy as np

from eos.errors import InvalidInput
from eos.schema.avro_text import DAYS, MILLIS, AvroField, Node, below
from eos.schema.errors import Wrong
from eos.schema.field_names import matched

Leaf = tuple[str, str]
"""A type without parts, and its logical type."""

_ALL = frozenset({"AVRO", "JSON", "PROTOBUF_NATIVE"})
_BY_NAME = frozenset({"AVRO", "JSON"})
_AVRO = frozenset({"AVRO"})

CONVERTED: Mapping[tuple[Leaf, Leaf], frozenset[str]] = {
    (("int", ""), ("long", "")): _ALL,
    (("long", ""), ("int", "")): _ALL,
    (("uint32", ""), ("uint64", "")): _ALL,
    (("uint64", ""), ("uint32", "")): _ALL,
    (("int", ""), ("float", "")): _BY_NAME,
    (("int", ""), ("double", "")): _BY_NAME,
    (("long", ""), ("float", "")): _BY_NAME,
    (("long", ""), ("double", "")): _BY_NAME,
    (("float", ""), ("double", "")): _BY_NAME,
    (("long", "timestamp-millis"), ("long", "timestamp-micros")): _BY_NAME,
    (("long", "timestamp-micros"), ("long", "timestamp-millis")): _BY_NAME,
    (("long", "local-timestamp-millis"), ("long", "local-timestamp-micros")): _BY_NAME,
    (("long", "local-timestamp-micros"), ("long", "local-timestamp-millis")): _BY_NAME,
    # In JSON both are texts, and nobody knows whether they are base64.
    (("string", ""), ("bytes", "")): _AVRO,
    (("bytes", ""), ("string", "")): _AVRO,
}
"""{(type of the message, type of the query): formats in which it is converted}; equal types need no entry."""

MOST_MILLIS = 2**63 // 1000
"""Milliseconds, before and after 1970, that Spark has moments for."""

BITS: Mapping[str, int] = {"int": 31, "long": 63}
"""{type: bits of its numbers, but for the sign}."""
_TEXTS = ("bytes", "string")


def limits(node: Node) -> tuple[int, int, int]:
    """Return the least and the most that a whole number of this type may be, and how many of Spark's units one is."""
    if node.logical in DAYS:
        return 0, DAYS[node.logical] - 1, 1
    if node.logical in MILLIS:
        return -MOST_MILLIS, MOST_MILLIS, 1000
    return -(2 ** BITS[node.kind]), 2 ** BITS[node.kind] - 1, 1


def check(form: str, writer: Node, reader: Node, path: str = "") -> None:
    """Raise InvalidInput for a pair of types that is refused, and for a field that the query can't do without.

    Args: the format; the schema of the messages; that of the query; where both lie.
    """
    if writer.kind in ("record", "array", "map") or reader.kind in ("record", "array", "map"):
        if writer.kind != reader.kind:
            raise _refused(writer, reader, path)
        if writer.items is not None and reader.items is not None:
            check(form, writer.items, reader.items, f"{path}[]")
        found = matched(writer.fields, reader.fields)
        for field in reader.fields:
            at = below(path, field.name)
            if field.name in found:
                check(form, found[field.name].node, field.node, at)
            elif form == "AVRO" and not field.has_default:
                raise InvalidInput(
                    f"field {at!r} is not in the schema of the messages, and the schema of the query has no default "
                    "for it. Give it a default, or read the topic as bytes, without valueFormat"
                )
        return
    check_leaf(form, writer, reader, path)


def check_leaf(form: str, writer: Node, reader: Node, path: str) -> None:
    """Raise InvalidInput for two types without parts whose values do not mean the same."""
    theirs, ours = (writer.kind, writer.logical), (reader.kind, reader.logical)
    if "decimal" in (writer.logical, reader.logical):
        if theirs != ours:
            raise _refused(writer, reader, path)
        return
    if theirs == ours and (writer.kind != "fixed" or writer.size == reader.size or form == "JSON"):
        return
    if form not in CONVERTED.get((theirs, ours), ()):
        raise _refused(writer, reader, path)


def as_written(writer: Node, reader: Node) -> Node:
    """Return the query's schema, with `written` at each type that the messages have in another one.

    For values that name their fields; a field that the schema of the messages does not have stays as the query has it.
    """
    if reader.items is not None and writer.items is not None:
        return replace(reader, items=as_written(writer.items, reader.items))
    if reader.kind == "record":
        found = matched(writer.fields, reader.fields)
        taken = {theirs.name for theirs in found.values()}
        fields = (_as_written(field, found.get(field.name), field.name in taken) for field in reader.fields)
        return replace(reader, fields=tuple(fields))
    same = (writer.kind, writer.logical) == (reader.kind, reader.logical)
    return reader if same else replace(reader, written=writer)


def _as_written(field: AvroField, theirs: AvroField | None, taken: bool) -> AvroField:
    """Args: the query's field; the messages'; whether another field of the query has the value of this name."""
    if theirs is None:
        return replace(field, given=f"-{field.name}") if taken else field  # no name of a field of messages
    given = "" if theirs.name == field.name else theirs.name
    return replace(field, node=as_written(theirs.node, field.node), given=given)


def unwritten(node: Node) -> Node:
    """Return the query's schema itself: its defaults are values of its own types."""
    fields = tuple(replace(field, node=unwritten(field.node), given="") for field in node.fields)
    items = None if node.items is None else unwritten(node.items)
    return replace(node, written=None, fields=fields, items=items)


def converted(writer: Node, reader: Node, value: Any, path: str) -> Any:
    """Return a value as the query has it. Args: the two types without parts; the value; where it lies.

    Raises Wrong where the query's type has no place for it.
    """
    if reader.kind == "enum":
        if value in reader.symbols:
            return value
        if reader.other_symbol:
            return reader.other_symbol
        raise Wrong(path, f"{value!r}, which is none of the enum's symbols, {', '.join(reader.symbols)}")
    if reader.logical:
        return value  # a moment, which Spark counts in microseconds whatever its type counts
    if reader.kind in BITS and not -(2 ** BITS[reader.kind]) <= value < 2 ** BITS[reader.kind]:
        raise Wrong(path, f"{value}, which is beyond {reader.kind}")
    if reader.kind in ("float", "double") and isinstance(value, int):
        number = float(np.float32(value)) if reader.kind == "float" else float(value)
        if number != value:
            raise Wrong(path, f"{value}, which is not exact as a {reader.kind}")
        return number
    if writer.kind in _TEXTS and reader.kind in _TEXTS and writer.kind != reader.kind:
        return value.encode() if reader.kind == "bytes" else text(value, path)
    return value


def decimal(node: Node, given: Decimal | int, path: str) -> Decimal:
    """Return a decimal with the digits of its type. Raises Wrong where the type has no place for it."""
    try:
        exact = Context(prec=node.precision, traps=[Inexact, InvalidOperation])
        return Decimal(given).quantize(Decimal(1).scaleb(-node.scale), context=exact)
    except (Inexact, InvalidOperation):
        raise Wrong(path, f"{shown(given)}, which is beyond decimal({node.precision}, {node.scale})") from None


def shown(given: Any) -> str:
    """Return a value for an error's words; the beginning of a long one."""
    text = repr(given) if not isinstance(given, Decimal) else str(given)
    return text if len(text) <= 60 else f"{text[:60]}…"


def time_of_day(node: Node, number: int, path: str) -> int:
    """Return a number that is a time of a day. Raises Wrong for one that no day has."""
    if not 0 <= number < DAYS[node.logical]:
        raise Wrong(path, f"{number}, which is no {node.logical} of a day")
    return number


def from_millis(number: int, path: str) -> int:
    """Return a moment in microseconds. Args: it in milliseconds. Raises Wrong for one that Spark has no place for."""
    if not -MOST_MILLIS <= number <= MOST_MILLIS:
        raise Wrong(path, f"{number} milliseconds since 1970, which Spark has no moment for")
    return number * 1000


def text(value: bytes, path: str) -> str:
    """Return bytes as a text. Raises Wrong where they are none in UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise Wrong(path, f"not valid UTF-8: {error}") from None


def _refused(writer: Node, reader: Node, path: str) -> InvalidInput:
    theirs, ours = (_named(node) for node in (writer, reader))
    field = f"field {path!r}" if path else "the value"
    return InvalidInput(
        f"{field} was written as {theirs}, and the query reads it as {ours}: the two do not mean the same. Read the "
        "topic as bytes, without valueFormat, or the older messages by a query with their own schema"
    )


def _named(node: Node) -> str:
    return (
        f"{node.kind} of {node.size} bytes" if node.kind == "fixed" and not node.logical else node.logical or node.kind
    )
