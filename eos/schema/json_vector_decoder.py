"""JSON values of many rows, decoded in step by numpy (`eos.schema.vector_columns` says how, and why it is right).

Values may differ in the order of their fields, in white space, and in which fields they have. A step takes the key that
the first value has next, and all values that have the same key next; the others wait for a step of their own. Since a
column keeps where each value lay, the order of the steps decides nothing. Decimals are not read here, since the text
decides their digits, nor types that were written as others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eos.pulsar.wire.fields import Flags, Places
from eos.pulsar.wire.spans import column_bytes
from eos.schema.arrow_numbers import Numbers, plain
from eos.schema.avro_columns import repeated
from eos.schema.avro_text import Node
from eos.schema.conversions import BITS, limits, unwritten
from eos.schema.errors import Wrong
from eos.schema.json_fields import field_value
from eos.schema.json_text import (
    ARRAY,
    COLON,
    COMMA,
    FALSE,
    NULL,
    OBJECT,
    QUOTE,
    TRUE,
    JsonData,
    boolean,
    expect,
    following,
    quoted,
    real,
    starting_with,
    whole,
)
from eos.schema.vector_columns import (
    BytesColumn,
    Cursor,
    ListColumn,
    NumberColumn,
    OptionalColumn,
    StructColumn,
    Unsure,
    VectorColumn,
)

_KEY = re.compile(rb'[ \t\r\n]*"([^"\\\x00-\x1f]*)"[ \t\r\n]*:')  # with an escape it may be another way to write a name
_NEXT_KEY = re.compile(rb"[ \t\r\n]*," + _KEY.pattern)
_LONGEST_KEY = 1_000
_LAST_CONTROL = 0x1F  # a text may have none as it is
_MOST_SPLITS = 64  # keys in an order of their own in each value take longer than a parser
_DTYPES: dict[str, Any] = {"int": np.int32, "long": np.int64}


def top_column(node: Node, kind: pa.DataType) -> VectorColumn:
    """Return an empty column for whole values; any may be null. Args, Raises: as of `vector_column`."""
    return _Nullable(_inner(node, kind))


def vector_column(node: Node, kind: pa.DataType) -> VectorColumn:
    """Return an empty column for the values of one type.

    Args: what messages and query have; the Arrow type. Raises Unsure for a type that is not read here.
    """
    inner = _inner(node, kind)
    return _Nullable(inner) if node.nullable else inner


def _inner(node: Node, kind: pa.DataType) -> VectorColumn:
    if node.written is not None or node.logical == "decimal":
        raise Unsure
    if node.kind == "record":
        return _Record(node, kind)
    if node.items is not None:
        items = vector_column(node.items, kind.value_type if node.kind == "array" else kind.item_type)
        return _Items(items, kind, keyed=node.kind == "map")
    if node.kind in BITS:
        return NumberColumn(_whole(node), _DTYPES[node.kind], plain(kind))
    if node.kind in ("float", "double"):
        return NumberColumn(_real(kind.to_pandas_dtype()), kind.to_pandas_dtype(), plain(kind))
    if node.kind == "boolean":
        return NumberColumn(boolean, np.bool_, plain(kind))
    return _Text(kind, node.symbols if node.kind == "enum" else None)


def _whole(node: Node) -> Callable[[Cursor], Numbers]:
    least, most, factor = limits(node)

    def one(cursor: Cursor) -> Numbers:
        found = whole(cursor)
        if found.min(initial=0) < least or found.max(initial=0) > most:
            raise Unsure
        return (found * factor if factor > 1 else found).astype(_DTYPES[node.kind], copy=False)

    return one


def _real(dtype: Any) -> Callable[[Cursor], Numbers]:
    def one(cursor: Cursor) -> Numbers:
        with np.errstate(over="ignore"):
            found = real(cursor).astype(dtype, copy=False)
        if not np.isfinite(found).all():
            raise Unsure
        return found

    return one


class _Nullable(OptionalColumn):
    """Values, and null in place of some."""

    def read(self, cursor: Cursor) -> None:
        """Read one value at each place, as of VectorColumn."""
        present = following(cursor) != NULL[0]
        self.present.add(cursor.at, present)
        if present.all():
            self.column.read(cursor)
            return
        null, there = cursor.only(np.flatnonzero(~present)), np.flatnonzero(present)
        if not starting_with(null, NULL).all():
            raise Unsure
        some = cursor.only(there)
        self.column.read(some)
        cursor.at = cursor.at + len(NULL)
        cursor.back(there, some)
        cursor.move(cursor.at)


class _Text(BytesColumn):
    """Texts, and symbols of an enum."""

    def __init__(self, kind: pa.DataType, symbols: tuple[str, ...] | None = None) -> None:
        """Args: the Arrow type; the symbols of an enum, which may have none; None for any text."""
        super().__init__(quoted, kind, text=True)
        self._symbols = None if symbols is None else pa.array(symbols, pa.string())
        self._slashes = np.empty(0, np.int64)

    def read(self, cursor: Cursor) -> None:
        """Read one value at each place, and the quote after it."""
        super().read(cursor)
        assert isinstance(cursor.data, JsonData)
        self._slashes = cursor.data.slashes
        cursor.move(cursor.at + 1)

    def _parts(self, at: Places, sizes: Places, missing: Flags | None) -> pa.Array:
        """Return the values; those with a backslash as a parser reads them."""
        found = super()._parts(at, sizes, missing)
        if np.frombuffer(column_bytes(found), np.uint8).min(initial=0xFF) <= _LAST_CONTROL:
            raise Unsure
        escaped = np.searchsorted(self._slashes, at) != np.searchsorted(self._slashes, at + sizes)
        if not escaped.any():
            return found
        try:
            texts = [json.loads(b'"%s"' % text).encode() for text in found.filter(pa.array(escaped)).to_pylist()]
        except ValueError as error:
            raise Unsure from error
        return pc.replace_with_mask(found, pa.array(escaped), pa.array(texts, pa.binary()))

    def taken(self, present: Flags | None) -> pa.Array:
        """Return all values, as of VectorColumn."""
        found = super().taken(present)
        if self._symbols is not None and pc.is_in(found.drop_null(), self._symbols).false_count:
            raise Unsure
        return found


class _Items(ListColumn):
    """Lists, and maps of texts."""

    def __init__(self, items: VectorColumn, kind: pa.DataType, *, keyed: bool) -> None:
        super().__init__(items, kind, _Text(pa.string()) if keyed else None)
        self._opens, self._closes = OBJECT if keyed else ARRAY

    def read(self, cursor: Cursor) -> None:
        """Read the first item of each list, then the second of each that has one, and so on."""
        expect(cursor, self._opens)
        counts = np.zeros(len(cursor.at), np.int64)
        self.counts.add(cursor.at, counts)
        empty = following(cursor) == self._closes
        cursor.move(cursor.at + empty)
        going = np.flatnonzero(~empty)
        here = cursor.only(going)
        while len(going):
            here.data.count_step(len(going))
            if self.keys is not None:
                self.keys.read(here)
                expect(here, COLON)
            self.items.read(here)
            counts[going] += 1
            going, here = _going_on(cursor, going, here, self._closes)


def _going_on(cursor: Cursor, going: Any, here: Cursor, closes: int) -> tuple[Any, Cursor]:
    """Move over the comma or the bracket that follows; return which of the values go on, and a cursor of them.

    Args: all values; which of them `here` is of; where those have got to; the bracket at their end.
    """
    found = following(here)
    here.move(here.at + 1)
    more = found == COMMA
    if more.all():
        return going, here
    if not (more | (found == closes)).all():
        raise Unsure
    cursor.back(going, here)
    on = np.flatnonzero(more)
    return going[on], here.only(on)


class _Record(StructColumn):
    """Records. Each field is optional: whether a value has it is known once the value is read."""

    def __init__(self, node: Node, kind: pa.DataType) -> None:
        """Args: the schema; the Arrow type. Raises Unsure where a default is wrong."""
        self._names = {(field.given or field.name).encode(): field.name for field in node.fields}
        self._nullable = {field.name for field in node.fields if field.node.nullable}
        self._members = {
            field.name: OptionalColumn(vector_column(field.node, kind.field(field.name).type)) for field in node.fields
        }
        given = {field.name: (field.node, field.default) for field in node.fields if field.default is not None}
        try:
            defaults = {name: field_value(unwritten(of), default, name) for name, (of, default) in given.items()}
        except Wrong as error:
            raise Unsure from error
        super().__init__(list(self._members.items()), defaults, kind)
        self._splits = 0

    def read(self, cursor: Cursor) -> None:
        """Read one value at each place, as of VectorColumn."""
        expect(cursor, OBJECT[0])
        start = cursor.at
        self._count += len(start)
        seen = {name: np.zeros(len(start), np.bool_) for name in self._members}
        empty = following(cursor) == OBJECT[1]
        cursor.move(cursor.at + empty)
        going = np.flatnonzero(~empty)
        here = cursor.only(going)
        while len(going):
            going, here = self._next_member(cursor, going, here, seen)
        for name, flags in seen.items():
            self._members[name].present.add(start, flags)

    def _next_member(self, cursor: Cursor, going: Any, here: Cursor, seen: dict[str, Flags]) -> tuple[Any, Cursor]:
        """Read the key that the first record has next, with its value, in all that have it next.

        As long as they all go on with the same key, so does this.
        """
        key, name = _first_key(here)
        same = starting_with(here, key)
        rest: tuple[Any, Cursor] | None = None
        if not same.all():
            self._splits += 1
            if self._splits > _MOST_SPLITS:
                raise Unsure
            others, those = np.flatnonzero(~same), np.flatnonzero(same)
            rest = going[others], here.only(others)
            going, here = going[those], here.only(those)
        while True:
            here.data.count_step(len(going))
            here.move(here.at + len(key))
            self._value(name, going, here, seen)
            found = _next_key(here)
            if found is None:
                break
            key, name = found
        going, here = _going_on(cursor, going, here, OBJECT[1])
        return (going, here) if rest is None else _both(cursor, (going, here), rest)

    def _value(self, name: bytes, going: Any, here: Cursor, seen: dict[str, Flags]) -> None:
        """Read the value of a member. Args: its name; as of `_next_member`."""
        ours = self._names.get(name)
        if ours is None:
            self._pass_over(here)
            return
        flags = seen[ours]
        if flags.any() and flags[going].any():
            raise Unsure  # twice in one record: the last one counts
        flags[going if len(going) < len(flags) else slice(None)] = True
        self._members[ours].read(here)

    def _pass_over(self, cursor: Cursor) -> None:
        """Read a field that the query does not know, if it has one value, of one type in all records."""
        column = _unknown_column(int(following(cursor)[0]))
        column.read(cursor)
        self._dropped.append(column)

    def _part(self, field: pa.Field, rows: int, present: Flags | None) -> pa.Array:
        """Return a field in all records: null or its default where it is missing."""
        member = self._members[field.name]
        _, own = member.present.ordered()
        if not own.all():
            if field.name in self._defaults and not own.any():
                return repeated(self._defaults[field.name], rows, field.type)
            if field.name in self._defaults or field.name not in self._nullable:
                raise Unsure
        return member.taken(present)


def _unknown_column(first: int) -> VectorColumn:
    """Return a column for values of the type that begins with this byte. Records and lists are no numbers: Unsure."""
    if first == QUOTE:
        return _Text(pa.string())
    if first == NULL[0]:
        return _Nullable(_Text(pa.string()))
    if first in (TRUE[0], FALSE[0]):
        return NumberColumn(boolean, np.bool_, plain(pa.bool_()))
    return NumberColumn(real, np.float64, plain(pa.float64()))


def _first_key(cursor: Cursor) -> tuple[bytes, bytes]:
    """Return the key that the first value has next: from the white space before it to its colon, and alone."""
    found = _key_there(cursor, _KEY)
    if found is None:
        raise Unsure
    return found


def _next_key(cursor: Cursor) -> tuple[bytes, bytes] | None:
    """Return the same, from the comma before it on, where all values have it next, written alike; else None."""
    found = _key_there(cursor, _NEXT_KEY)
    return found if found is not None and starting_with(cursor, found[0]).all() else None


def _key_there(cursor: Cursor, pattern: re.Pattern[bytes]) -> tuple[bytes, bytes] | None:
    at = int(cursor.at[0])
    text = cursor.data.raw[at : min(at + _LONGEST_KEY, int(cursor.end[0]))].tobytes()
    found = pattern.match(text)
    if found is None:
        return None
    try:
        found[1].decode()
    except UnicodeDecodeError as error:
        raise Unsure from error
    return found[0], found[1]


def _both(cursor: Cursor, one: tuple[Any, Cursor], other: tuple[Any, Cursor]) -> tuple[Any, Cursor]:
    """Return the values of two cursors as one, in their order."""
    for going, here in (one, other):
        cursor.back(going, here)
    going = np.sort(np.concatenate((one[0], other[0])))
    return going, cursor.only(going)
