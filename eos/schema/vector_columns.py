"""Values of many rows decoded by numpy: the first field of all rows, then the second field of all rows, and so on.

A `Cursor` has one place in the bytes for each of its values. A step reads one part of all of them, and moves all places
on. So the cost of Python is paid for each step, and not for each row.

Why the result cannot be wrong:

- Nothing is repaired here and no error is named here. A step that meets anything it is not sure of raises `Unsure`, and
  the values of the whole call are decoded again, one by one, by the decoder that names row and field.
- No step reads past the end of its row and goes on: each move is compared with the row's end. What lies behind the row
  (the header of the next message, its value, or padding) may be looked at before that, and is thrown away.
- A column keeps the place that each of its values was read at. All rows lie one after the other, and no two values of a
  column lie at the same place unless they have no bytes. So the places alone give the order of the values, whatever the
  order of the steps was. Nothing has to be moved to its row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eos.pulsar.wire.fields import MOST_VARINT, Bytes, Flags, Places, varints, window
from eos.pulsar.wire.spans import Payloads, column_bytes, spans
from eos.schema.arrow_numbers import Finish, Numbers
from eos.schema.avro_columns import repeated, structs
from eos.schema.map_keys import first_twice

_MOST_BYTES = 2**31 - 1  # Arrow's binary columns count by 32 bits
_FEW, _MOST_THIN_STEPS = 24, 256  # steps for so few values take longer than a decoder of single values

_U = np.uint64


class Unsure(Exception):
    """Something may be damaged, or is of a kind that is not decoded here."""


class Data:
    """The bytes that hold all rows.

    Attributes:
        raw: the bytes, with others between the rows, and zeros after the last one.
        eight: the eight bytes from each place on, as one number.
    """

    def __init__(self, raw: Bytes) -> None:
        self.raw, self.eight = raw, window(raw)
        self._thin_steps = 0

    def count_step(self, values: int) -> None:
        """Count one more step over items of lists. Args: its items. Raises Unsure for too many steps of few items."""
        self._thin_steps += values < _FEW
        if self._thin_steps > _MOST_THIN_STEPS:
            raise Unsure


class Cursor:
    """One place in the bytes for each of some values, in the order of the bytes.

    Attributes:
        data: the bytes.
        at: the places. An array that was handed out is never changed.
        end: where the row of each value ends.
    """

    __slots__ = ("_looked_at", "at", "data", "end")

    def __init__(self, data: Data, at: Places, end: Places) -> None:
        self.data, self.at, self.end = data, at, end
        self._looked_at: tuple[Places, Bytes] | None = None

    def bytes_there(self) -> Bytes:
        """Return the byte at each place."""
        if self._looked_at is None or self._looked_at[0] is not self.at:
            self._looked_at = self.at, self.data.raw[self.at]
        return self._looked_at[1]

    def only(self, which: Places) -> Cursor:
        """Return a cursor of some of the values, or of all. `which` rises."""
        if len(which) == len(self.at):
            return Cursor(self.data, self.at, self.end)
        return Cursor(self.data, self.at[which], self.end[which])

    def back(self, which: Places, other: Cursor) -> None:
        """Take over where some of the values have got to. Args: as of `only`; the cursor of them."""
        if len(which) == len(self.at):
            self.at = other.at
            return
        self.at = self.at.copy()
        self.at[which] = other.at

    def move(self, at: Places) -> None:
        """Go on at these places."""
        if (at > self.end).any():
            raise Unsure
        self.at = at

    def varint(self) -> npt.NDArray[np.uint64]:
        """Read numbers of up to 64 bits, in groups of seven."""
        at, raw = self.at, self.data.raw
        number, size, _ = varints(raw, at, self.bytes_there())
        self.move(at + size)
        if size.max(initial=0) == MOST_VARINT:
            tenth = raw[at + (MOST_VARINT - 1)]  # has one bit of the 64, and none that says that another byte follows
            if ((size == MOST_VARINT) & (tenth > 1)).any():
                raise Unsure
        return number

    def zigzag(self) -> Places:
        """Read signed numbers as AVRO and protobuf's `sint` have them."""
        first = self.bytes_there()
        if first.max(initial=0) < 0x80:  # most sizes and counts: less work than with eight bytes each
            self.move(self.at + 1)
            return ((first >> 1) ^ -(first & 1)).view(np.int8).astype(np.int64)
        number = self.varint()
        return ((number >> _U(1)) ^ -(number & _U(1))).view(np.int64)


class VectorColumn(Protocol):
    """The values of one field, or of one part of it, in a call."""

    def read(self, cursor: Cursor) -> None:
        """Read one value at each place. Raises Unsure."""
        ...

    def taken(self, present: Flags | None) -> pa.Array:
        """Return all values that were read, in the order of their rows, with nulls between them.

        Args: where a value that was read belongs, and where a null; None where there are no nulls. Raises Unsure.
        """
        ...


def decode(
    values: pa.Array | Payloads,
    column: VectorColumn,
    data: Callable[[Bytes, Places, Places], Data] = lambda raw, at, ends: Data(raw),
) -> pa.Array:
    """Return the values.

    Args: the bytes, with nulls; an empty column that reads them; their holder, made of all bytes and where each value
    begins and ends. Raises Unsure.
    """
    given = Payloads.of(values)
    if len(given.data) > _MOST_BYTES:
        raise Unsure
    present = None if given.missing is None else ~given.missing
    at, sizes = (given.at, given.sizes) if present is None else (given.at[present], given.sizes[present])
    ends = at + sizes
    cursor = Cursor(data(given.data, at, ends), at, ends)
    column.read(cursor)
    if (cursor.at != ends).any():
        raise Unsure
    try:
        return column.taken(present)
    except pa.ArrowInvalid as error:
        raise Unsure from error


class Pieces:
    """The values that steps have read, and their places: brought into the order of the bytes at the end."""

    __slots__ = ("_at", "_values")

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._at: list[Places] = [np.empty(0, np.int64)]
        self._values: list[Numbers] = [np.empty(0, dtype)]

    def add(self, at: Places, values: Numbers) -> None:
        """Take what one step has read: the places, which rise, and the values."""
        self._at.append(at)
        self._values.append(values)

    def ordered(self) -> tuple[Places, Numbers]:
        """Return the places and the values."""
        steps = self._at[1:]
        if len(steps) == 1:
            return steps[0], self._values[1]
        if len({len(step) for step in steps}) == 1:  # such as the items of lists that all have as many
            at = np.stack(steps, axis=1).ravel()
            if (at[1:] > at[:-1]).all():
                return at, np.stack(self._values[1:], axis=1).reshape(-1, *self._values[0].shape[1:])
        at, values = np.concatenate(self._at), np.concatenate(self._values)
        order = np.argsort(at, kind="stable")  # quick for some runs that rise
        return at[order], values[order]


class NumberColumn:
    """Values of one width."""

    def __init__(
        self, one: Callable[[Cursor], Numbers], dtype: npt.DTypeLike, finish: Finish, zero: int | None = 0
    ) -> None:
        """Args: reads one number at each place; numpy's type of them; makes the Arrow array; the number that stands
        for 0, None where there is none."""
        self.read = self.reading(one)
        self._pieces, self._dtype, self._zero = Pieces(dtype), dtype, zero
        self._finish = finish

    def reading(self, one: Callable[[Cursor], Numbers]) -> Callable[[Cursor], None]:
        """Return another `read`, for values that are written in another way."""

        def read(cursor: Cursor) -> None:
            at = cursor.at
            self._pieces.add(at, one(cursor))

        return read

    def add_zeros(self, data: Data, at: Places) -> None:
        """Take a 0 at each place, where nothing was written. Raises Unsure where none stands for it."""
        if self._zero is None:
            raise Unsure
        zeros = np.zeros(len(at), self._dtype)
        self._pieces.add(at, zeros + self._zero if self._zero else zeros)

    def taken(self, present: Flags | None) -> pa.Array:
        """Return all values, as of VectorColumn."""
        _, values = self._pieces.ordered()
        if present is None:
            return self._finish(values, None)
        return self._finish(spread(values, present), ~present)


class BytesColumn:
    """Texts and bytes: their places and sizes are kept, and they are copied once, at the end."""

    def __init__(self, sizes: Callable[[Cursor], Places], kind: pa.DataType, *, text: bool) -> None:
        """Args: moves to where each value begins, and returns its size; the Arrow type; whether they must be UTF-8."""
        self._sizes, self._kind, self._text = sizes, kind, text
        self._pieces = Pieces(np.int64)
        self._raw = np.empty(0, np.uint8)

    def read(self, cursor: Cursor) -> None:
        """Read one value at each place, as of VectorColumn."""
        sizes = self._sizes(cursor)
        at = cursor.at
        if (sizes.view(_U) > (cursor.end - at).view(_U)).any():  # one below 0 is a large one then
            raise Unsure
        self._raw = cursor.data.raw
        self._pieces.add(at, sizes)
        cursor.at = at + sizes

    def add_zeros(self, data: Data, at: Places) -> None:
        """Take a value without bytes at each place, where nothing was written."""
        self._raw = data.raw
        self._pieces.add(at, np.zeros(len(at), np.int64))

    def taken(self, present: Flags | None) -> pa.Array:
        """Return all values, as of VectorColumn."""
        at, sizes = self._pieces.ordered()
        if present is not None:  # a null lies, without bytes, where the value before it ends
            ends = np.concatenate(([0], at + sizes))[np.cumsum(present)]
            ends[present] = at
            at, sizes = ends, spread(sizes, present)
        found = self._parts(at, sizes, None if present is None else ~present)
        return (_text(found) if self._text else found).cast(self._kind)

    def _parts(self, at: Places, sizes: Places, missing: Flags | None) -> pa.Array:
        """Return the values as they are written."""
        return spans(self._raw, at, sizes, missing)


def _text(values: pa.Array) -> pa.Array:
    """Return bytes as texts. Raises pa.ArrowInvalid for what is not UTF-8. Bytes below 0x80 are."""
    plain = np.frombuffer(column_bytes(values), np.uint8).max(initial=0) < 0x80
    return values.view(pa.string()) if plain else values.cast(pa.string())


class StructColumn:
    """Records."""

    def __init__(
        self, given: Sequence[tuple[str | None, VectorColumn]], defaults: Mapping[str, Any], kind: pa.DataType
    ) -> None:
        """Args: the columns in the order of the bytes, by their names in the query, None for those that it leaves out;
        the values of what the messages do not have; the Arrow type."""
        self._reads = [column.read for _, column in given]
        self._columns = {name: column for name, column in given if name is not None}
        self._dropped = [column for name, column in given if name is None]
        self._defaults, self._kind = defaults, kind
        self._count = 0

    def read(self, cursor: Cursor) -> None:
        """Read one value at each place, as of VectorColumn."""
        self._count += len(cursor.at)
        for read in self._reads:
            read(cursor)

    def taken(self, present: Flags | None) -> pa.Array:
        """Return all values, as of VectorColumn."""
        for column in self._dropped:
            column.taken(None)  # a text that is none is an error, whether or not it is asked for
        mask = np.zeros(self._count, np.bool_) if present is None else ~present
        parts = [self._part(field, len(mask), present) for field in self._kind]
        return structs(parts, list(self._kind), pa.array(mask))

    def _part(self, field: pa.Field, rows: int, present: Flags | None) -> pa.Array:
        if field.name in self._columns:
            return self._columns[field.name].taken(present)
        return repeated(self._defaults[field.name], rows, field.type)


class OptionalColumn:
    """Values with some nulls: `present` takes which are not null, and the column has only those."""

    def __init__(self, column: VectorColumn) -> None:
        """Args: the values that are there."""
        self.column = column
        self.present = Pieces(np.bool_)

    def read(self, cursor: Cursor) -> None:
        """Read one value at each place, as of VectorColumn."""
        self.column.read(cursor)

    def taken(self, present: Flags | None) -> pa.Array:
        """Return all values, as of VectorColumn."""
        _, own = self.present.ordered()
        if own.all():
            return self.column.taken(present)
        return self.column.taken(own if present is None else spread(own, present))


class ListColumn:
    """Lists; with keys maps. `counts` takes what steps have read of their sizes, and the columns take the items."""

    def __init__(self, items: VectorColumn, kind: pa.DataType, keys: BytesColumn | None = None) -> None:
        """Args: the items; the Arrow type: a list, or a map of texts; the keys of a map."""
        self.counts = Pieces(np.int64)
        self.items, self._kind, self.keys = items, kind, keys

    def read(self, cursor: Cursor) -> None:
        """Read one item at each place."""
        self.items.read(cursor)

    def taken(self, present: Flags | None) -> pa.Array:
        """Return all values, as of VectorColumn."""
        _, counts = self.counts.ordered()
        mask = None
        if present is not None:
            counts, mask = spread(counts, present), pa.array(~present)
        offsets = pa.array(np.concatenate(([0], np.cumsum(counts))).astype(np.int32))
        items = self.items.taken(None)
        if self.keys is None:
            return pa.ListArray.from_arrays(offsets, items, type=self._kind, mask=mask)
        keys = self.keys.taken(None)
        if first_twice(keys, counts) is not None:
            raise Unsure
        return pa.MapArray.from_arrays(offsets, keys, items, type=self._kind, mask=mask)


def spread(values: Numbers, present: Flags) -> Numbers:
    """Return the values at their places among nulls, which are 0; shape (rows, …)."""
    whole = np.zeros((len(present), *values.shape[1:]), values.dtype)
    whole[present] = values
    return whole
