"""Protobuf values of many rows, decoded by numpy (`eos.schema.vector_columns` says how, and why it is right).

A message is read in passes over the schema's fields, in the order of their numbers: each pass takes a field from all
messages where its tag comes next. Libraries write fields in this order, so that one pass does. A message in another
order takes more passes. Where no known tag comes next, an unknown field is skipped.

It takes what `eos.schema.protobuf_decoder` takes, with the same rules. Any other value raises `Unsure`, and that
decoder has the last word. So does a value that is right but rare: a field that comes twice without being a list, two
members of a oneof, groups, and a pair of a map without its message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from eos.pulsar.wire.fields import Flags, Places
from eos.schema.arrow_numbers import plain
from eos.schema.protobuf_numbers import EIGHT, FOUR, SIZED, VARINT, enum_column, number_column
from eos.schema.protobuf_schema import FIRST_SECOND, LAST_SECOND, TIMESTAMP, entry_of, is_repeated, is_required
from eos.schema.vector_columns import (
    BytesColumn,
    Cursor,
    Data,
    ListColumn,
    NumberColumn,
    OptionalColumn,
    StructColumn,
    Unsure,
    VectorColumn,
    spread,
)

FEWEST = 200
"""Rows from which on numpy takes less time than Google's library."""

_MICROS, _NANOS = 1_000_000, 1_000_000_000
_MOST_PASSES = 64
_MOST_PREFIX = 5  # bytes of a tag or of a size, the most that protobuf's own libraries take
_U = np.uint64

_Leaf = NumberColumn | BytesColumn
_EnumNames = Callable[[EnumDescriptor | None, EnumDescriptor], Mapping[int, str]]
"""Returns the name of each number. Args: the enum as it was written, None where it is new; the query's."""


class Absent(Enum):
    """The value of a field that a message does not have."""

    NULL = auto()
    ZERO = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class _Way:
    """One way in which a field lies in a message.

    Attributes:
        place: of the field among those of its message.
        tag, mask: the bytes that it begins with, as one number, and those of eight bytes that count.
        size: how many bytes the tag has.
        many: whether it may come again.
        take: reads the bytes after the tag. Returns the number of values for each message.
    """

    place: int
    tag: int
    mask: Any
    size: int
    many: bool
    take: Callable[[Cursor], Any]


@dataclass(frozen=True, slots=True)
class _Field:
    """A field: its number, its column, and what it is where it does not come; None for a list."""

    number: int
    name: str
    column: VectorColumn
    ways: Sequence[tuple[int, Callable[[Cursor], Any]]]
    absent: Absent | None


def vector_message(
    theirs: Descriptor | None, ours: Descriptor, kind: pa.DataType, enum_names: _EnumNames
) -> VectorColumn:
    """Return an empty column of messages.

    Args: the message as it was written, None where it is new; as it is read; the Arrow type; the names of enums.
    """
    known = {} if theirs is None else theirs.fields_by_number
    fields = []
    for field in ours.fields:
        before = known.get(field.number)
        inner = kind.field(field.name).type
        fields.append(_field(before, field, inner, enum_names, _absent(before, field)))
    return _Message(fields, kind, [[member.number for member in group.fields] for group in ours.oneofs])


def _absent(theirs: FieldDescriptor | None, ours: FieldDescriptor) -> Absent:
    if not (ours if theirs is None else theirs).has_presence:
        return Absent.ZERO
    return Absent.NULL if ours.has_presence and not is_required(ours) else Absent.REFUSED


class _Message(StructColumn):
    """Messages."""

    def __init__(
        self, fields: Sequence[_Field], kind: pa.DataType, groups: Sequence[Sequence[int]] = (), *, strict: bool = False
    ) -> None:
        """Args: the fields; the Arrow type; the numbers of each oneof; whether unknown fields are not skipped."""
        super().__init__([(field.name, field.column) for field in fields], {}, kind)
        self._fields = fields
        numbers = [field.number for field in fields]
        self._numbers = np.array(numbers, np.uint64)
        self._groups = [[numbers.index(member) for member in group] for group in groups if len(group) > 1]
        self._strict = strict
        ways = [
            (field.number, wire, place, field.absent is None, take)
            for place, field in enumerate(fields)
            for wire, take in field.ways
        ]
        self._ways = [_way(*way) for way in sorted(ways, key=lambda way: way[:2])]

    def read(self, cursor: Cursor) -> None:
        """Read one message at each place, up to the cursor's ends."""
        starts = cursor.at
        self._count += len(starts)
        counts = np.zeros((len(self._fields), len(starts)), np.int64)
        here, who = cursor, np.arange(len(starts))
        for _ in range(_MOST_PASSES):
            going = np.flatnonzero(here.at < here.end)
            here, who = here.only(going), who[going]
            if not len(who):
                break
            before = here.at
            for way in self._ways:
                _take(way, here, who, counts[way.place])
            stuck = np.flatnonzero(here.at == before)
            if len(stuck):
                here.data.count_step(len(stuck))
                self._skip(here, stuck)
        else:
            raise Unsure
        cursor.at = cursor.end
        self._note(cursor.data, starts, counts)

    def _note(self, data: Data, starts: Places, counts: npt.NDArray[np.int64]) -> None:
        for group in self._groups:
            if (counts[group].sum(axis=0) > 1).any():
                raise Unsure
        for field, count in zip(self._fields, counts, strict=True):
            if isinstance(field.column, ListColumn):
                field.column.counts.add(starts, count)
                continue
            if (count > 1).any():
                raise Unsure
            if isinstance(field.column, OptionalColumn):
                field.column.present.add(starts, count != 0)
            elif not count.all():
                if field.absent is not Absent.ZERO or not isinstance(field.column, _Leaf):
                    raise Unsure
                # A message begins before all its fields, so that a 0 there is in its order.
                field.column.add_zeros(data, starts[count == 0])

    def _skip(self, here: Cursor, stuck: Places) -> None:
        """Skip a field that the schema does not have, in some of the messages."""
        some = here.only(stuck)
        tags = _prefix(some)
        numbers, wires = tags >> _U(3), tags & _U(7)
        if self._strict or ((numbers == 0) | (numbers >= 1 << 29)).any() or np.isin(numbers, self._numbers).any():
            raise Unsure
        for wire in np.unique(wires).tolist():
            there = np.flatnonzero(wires == wire)
            one = some.only(there)
            if wire == VARINT:
                one.varint()
            elif wire == SIZED:
                _inside(one)
            elif wire in (EIGHT, FOUR):
                one.move(one.at + (8 if wire == EIGHT else 4))
            else:
                raise Unsure
            some.back(there, one)
        here.back(stuck, some)


def _way(number: int, wire: int, place: int, many: bool, take: Callable[[Cursor], Any]) -> _Way:
    left, tag = number << 3 | wire, bytearray()
    while left > 0x7F:
        tag.append(left & 0x7F | 0x80)
        left >>= 7
    tag.append(left)
    return _Way(place, int.from_bytes(tag, "little"), _U(256 ** len(tag) - 1), len(tag), many, take)


def _take(way: _Way, here: Cursor, who: Places, counts: Places) -> None:
    """Read a field from all messages where it comes next; a list as often as it comes."""
    which: Places | None = None
    some = here
    while True:
        head = some.bytes_there() if way.size == 1 else some.data.eight[some.at] & way.mask
        fits = (head == way.tag) & (some.at < some.end)
        if not fits.all():
            there = np.flatnonzero(fits)
            if not len(there):
                return
            some, which = some.only(there), there if which is None else which[there]
        if way.many:
            some.data.count_step(len(some.at))
        some.move(some.at + way.size)
        found = way.take(some)
        if which is None:
            counts[who] += found
        else:
            counts[who[which]] += found
            here.back(which, some)
        if not way.many:
            return


def _prefix(cursor: Cursor) -> npt.NDArray[np.uint64]:
    at = cursor.at
    found = cursor.varint()
    if (cursor.at - at > _MOST_PREFIX).any() or (found >> _U(32)).any():
        raise Unsure
    return found


def _size(cursor: Cursor) -> Places:
    return _prefix(cursor).view(np.int64)


def _inside(cursor: Cursor) -> Cursor:
    """Return a cursor of the bytes after its size. The given one goes on after them."""
    size = _size(cursor)
    at = cursor.at
    cursor.move(at + size)
    return Cursor(cursor.data, at, cursor.at)


def _field(
    theirs: FieldDescriptor | None, ours: FieldDescriptor, kind: pa.DataType, enum_names: _EnumNames, absent: Absent
) -> _Field:
    if entry := entry_of(ours):
        before = (theirs and entry_of(theirs)) or {}
        pair = [
            _field(before.get("key"), entry["key"], kind.key_type, enum_names, Absent.ZERO),
            _field(before.get("value"), entry["value"], kind.item_type, enum_names, Absent.ZERO),
        ]
        pairs = _Message(pair, pa.struct([("key", kind.key_type), ("value", kind.item_type)]), strict=True)
        key = pair[0].column
        assert isinstance(key, BytesColumn)
        return _Field(ours.number, ours.name, ListColumn(pair[1].column, kind, key), [(SIZED, _nested(pairs))], None)
    many = is_repeated(ours)
    wire, column = _one(theirs, ours, kind.value_type if many else kind, enum_names)
    take = _nested(column) if isinstance(column, StructColumn) else _single(column)
    if many:
        ways = [(wire, take)] if wire == SIZED else [(wire, take), (SIZED, _packed(wire, column))]
        return _Field(ours.number, ours.name, ListColumn(column, kind), ways, None)
    if absent is Absent.NULL:
        return _Field(ours.number, ours.name, OptionalColumn(column), [(wire, take)], absent)
    return _Field(ours.number, ours.name, column, [(wire, take)], absent)


def _single(column: VectorColumn) -> Callable[[Cursor], int]:
    def take(cursor: Cursor) -> int:
        column.read(cursor)
        return 1

    return take


def _nested(column: VectorColumn) -> Callable[[Cursor], int]:
    def take(cursor: Cursor) -> int:
        column.read(_inside(cursor))
        return 1

    return take


def _packed(wire: int, column: VectorColumn) -> Callable[[Cursor], Places]:
    """Return a function that reads many numbers after their size."""

    def take(cursor: Cursor) -> Places:
        block = _inside(cursor)
        sizes = block.end - block.at
        before = np.cumsum(sizes) - sizes
        places = np.repeat(block.at - before, sizes) + np.arange(int(sizes.sum()))  # of each byte
        if wire == VARINT:
            last = cursor.data.raw[places] < 0x80
            ends = np.cumsum(last)
            after = np.concatenate(([0], ends))
            counts = after[before + sizes] - after[before]
            if not last[(before + sizes - 1)[sizes > 0]].all():
                raise Unsure
            first = np.concatenate(([True], last[:-1])) if len(last) else last
        else:
            width = 8 if wire == EIGHT else 4
            if (sizes % width).any():
                raise Unsure
            counts = sizes // width
            first = np.arange(len(places)) % width == 0
        column.read(Cursor(cursor.data, places[first], np.repeat(block.end, counts)))
        return np.asarray(counts)

    return take


def _one(
    theirs: FieldDescriptor | None, ours: FieldDescriptor, kind: pa.DataType, enum_names: _EnumNames
) -> tuple[int, VectorColumn]:
    """Return the wire type of a field's values, and their column."""
    if ours.message_type is not None:
        before = None if theirs is None else theirs.message_type
        if ours.message_type.full_name == TIMESTAMP:
            return SIZED, _Moments(ours.message_type, kind)
        return SIZED, vector_message(before, ours.message_type, kind, enum_names)
    if ours.enum_type is not None:
        names = enum_names(None if theirs is None else theirs.enum_type, ours.enum_type)
        return VARINT, enum_column(
            {number: name for number, name in names.items() if name in ours.enum_type.values_by_name}
        )
    if ours.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
        return SIZED, BytesColumn(_size, kind, text=ours.type == FieldDescriptor.TYPE_STRING)
    return number_column(ours.type, kind)


class _Moments(_Message):
    """Moments, which are messages of seconds and nanoseconds."""

    def __init__(self, descriptor: Descriptor, kind: pa.DataType) -> None:
        fields = []
        for field in descriptor.fields:
            column = NumberColumn(lambda cursor: cursor.varint().view(np.int64), np.int64, plain(pa.int64()))
            fields.append(_Field(field.number, field.name, column, [(VARINT, _single(column))], Absent.ZERO))
        super().__init__(fields, kind)

    def taken(self, present: Flags | None) -> pa.Array:
        """Return all values, as of VectorColumn."""
        seconds, nanos = (self._columns[name].taken(None).to_numpy() for name in ("seconds", "nanos"))
        if not (((seconds >= FIRST_SECOND) & (seconds <= LAST_SECOND)) & ((nanos >= 0) & (nanos < _NANOS))).all():
            raise Unsure
        micros = seconds * _MICROS + nanos // 1000
        finish = plain(self._kind)
        return finish(micros, None) if present is None else finish(spread(micros, present), ~present)
