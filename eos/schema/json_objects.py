"""Parsers of JSON values, and how the columns of `eos.schema.json_columns` come out of what they make.

Python's parser makes dictionaries. That of msgspec, an optional package, is told the schema: it makes objects with an
attribute for each field, refuses what is of another type, and passes over fields that the schema does not know. It is
stricter than Python's in all but one thing: it does not look at the text of what it passes over. So text that is not
UTF-8 is found before. Whatever it refuses goes to Python's parser, which has the last word.

Python's parser has two limits of its own. An exponent beyond any of Decimal's, and a whole number of more than 4,300
digits, are errors there, also in a field that the schema does not know. Such a value is parsed once more, with numbers
of any size.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from operator import attrgetter
from typing import Any, Protocol

import pyarrow as pa

from eos.schema.avro_text import AvroField, Node
from eos.schema.vector_columns import Unsure

_FIRST_RIGHT = (0, 19)
"""msgspec's first version that is right about whole numbers: before, one of 20 digits became another in silence."""


def _is_right(version: str) -> bool:
    """Return whether msgspec of this version can be used. One that does not tell its version can't."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and (int(found[1]), int(found[2])) >= _FIRST_RIGHT


try:
    import msgspec
except ImportError:  # the extra `json`
    msgspec = None  # type: ignore[assignment]
else:
    if not _is_right(msgspec.__version__):
        msgspec = None  # type: ignore[assignment]

_PLAIN: dict[str, Any] = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "string": str,
    "enum": str,
    "bytes": str,
    "fixed": str,
}
_PARSER = json.JSONDecoder(parse_float=Decimal)
_REQUIRED = object()
_HUGE = 10**17
"""An exponent that Decimal has with any number of digits, and that is beyond all types of a schema."""


def _whole(text: str) -> int | Decimal:
    """Return a whole number; as a Decimal where it has more digits than Python reads as an int."""
    try:
        return int(text)
    except ValueError:
        return Decimal(text)


def _broken(text: str) -> Decimal:
    """Return a number; with the largest exponent here, or the least, where its own is beyond any of Decimal's."""
    try:
        return Decimal(text)
    except InvalidOperation:
        digits, _, exponent = text.lower().partition("e")
        return Decimal(f"{digits}e{'-' if exponent.startswith('-') else ''}{_HUGE}")


_OF_ANY_SIZE = json.JSONDecoder(parse_float=_broken, parse_int=_whole)


Fields = Callable[[list[Any]], list[list[Any]]]
"""Takes the fields out of records: for each field its values in all of them."""


class Objects(Protocol):
    """What one parser makes of values with one schema.

    Attributes:
        record: the class of its records.
    """

    record: type

    def rows(self, values: pa.Array) -> list[Any]:
        """Return an object for each value, None for null. Args: bytes, with nulls. Raises Unsure or ValueError."""
        ...

    def fields(self, node: Node) -> Fields:
        """Return what takes the fields out of records. Args: their schema. It raises Unsure where one is missing."""
        ...


def parsed(value: bytes) -> Any:
    """Return a value as `json.loads` does, which makes a parser for each, its fractions as Decimal.

    Raises ValueError for what is not JSON, and RecursionError for what is too deep. No number is an error.
    """
    encoding = "utf-8" if value.startswith(b'{"') else json.detect_encoding(value)
    text = value.decode(encoding, "surrogatepass")
    try:
        return _PARSER.decode(text)
    except json.JSONDecodeError:
        raise
    except (InvalidOperation, ValueError):  # a number beyond Python's limits
        return _OF_ANY_SIZE.decode(text)


class Dictionaries:
    """What Python's parser makes."""

    record: type = dict

    def rows(self, values: pa.Array) -> list[Any]:
        """Return a dictionary for each value."""
        return _each(values, parsed)

    def fields(self, node: Node) -> Fields:
        """Return what takes the fields out of records."""
        names = [(field.given or field.name, _missing(field)) for field in node.fields]
        return lambda records: [_values(records, name, missing) for name, missing in names]


def _each(values: pa.Array, parse: Callable[[bytes], Any]) -> list[Any]:
    return [None if value is None else parse(value) for value in values.to_pylist()]


def _values(records: list[Any], name: str, missing: Any) -> list[Any]:
    try:
        return [one[name] for one in records]
    except KeyError:
        if missing is _REQUIRED:
            raise Unsure from None
        return [one.get(name, missing) for one in records]


class Structs:
    """What msgspec makes."""

    def __init__(self, node: Node) -> None:
        """Args: the schema. Raises Unsure where msgspec is not installed, or does not know a type of the schema."""
        if msgspec is None:
            raise Unsure
        self.record: type = msgspec.Struct
        try:
            self._decode = msgspec.json.Decoder(_type(node) | None).decode
        except (TypeError, ValueError, msgspec.MsgspecError) as error:  # a default of another type
            raise Unsure from error

    def rows(self, values: pa.Array) -> list[Any]:
        """Return a struct for each value."""
        values.cast(pa.string())  # raises ArrowInvalid, a ValueError, where it is not UTF-8
        try:
            return _each(values, self._decode)
        except msgspec.MsgspecError as error:
            raise Unsure from error

    def fields(self, node: Node) -> Fields:
        """Return what takes the fields out of records."""
        values = [attrgetter(_attribute(place)) for place in range(len(node.fields))]
        return lambda records: [list(map(value, records)) for value in values]


def _missing(field: AvroField) -> Any:
    """Return the value of a field that a message does not have."""
    if field.has_default:
        return _with_given_names(field.node, field.default)
    return None if field.node.nullable else _REQUIRED


def _with_given_names(node: Node, default: Any) -> Any:
    """Return a default, which has the query's names of fields, with the names that the messages have them by."""
    if node.items is not None and isinstance(default, list):
        return [_with_given_names(node.items, item) for item in default]
    if node.items is not None and isinstance(default, dict):
        return {key: _with_given_names(node.items, item) for key, item in default.items()}
    if node.kind != "record" or not isinstance(default, dict):
        return default
    ours = [field for field in node.fields if field.name in default]
    return {field.given or field.name: _with_given_names(field.node, default[field.name]) for field in ours}


def _type(node: Node) -> Any:
    """Return the type of a value that is not null, as msgspec wants it."""
    if node.kind == "record":
        names = {_attribute(place): field.given or field.name for place, field in enumerate(node.fields)}
        fields = [_described(field, place) for place, field in enumerate(node.fields)]
        return msgspec.defstruct("Record", fields, kw_only=True, rename=names, gc=False)
    if node.items is not None:
        items = _nullable(node.items)
        return list[items] if node.kind == "array" else dict[str, items]  # type: ignore[valid-type]
    if node.logical == "decimal":
        raise Unsure  # its digits are the text's, which a text would have, too: that is refused
    return _PLAIN[node.kind]


def _nullable(node: Node) -> Any:
    return _type(node) | None if node.nullable else _type(node)


def _described(field: AvroField, place: int) -> Any:
    kind = _nullable(field.node)
    if field.has_default:
        text = json.dumps(_with_given_names(field.node, field.default), default=float)
        default = msgspec.json.decode(text, type=kind)
        return _attribute(place), kind, msgspec.field(default_factory=lambda: default)
    return (_attribute(place), kind, None) if field.node.nullable else (_attribute(place), kind)


def _attribute(place: int) -> str:
    """Return the name of a field in Python: those of a schema may be words that Python keeps for itself."""
    return f"f{place}"
