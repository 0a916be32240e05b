"""Columns that are filled value by value from the bytes of AVRO, and become Arrow arrays.

Each column reads its own part of a value: `read` takes the bytes and a place, and returns the place after that part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eos.schema.errors import Wrong

One = Callable[[bytes, int], tuple[Any, int]]
"""Reads one value. Returns it, and the place after it. Raises IndexError or struct.error where the bytes end."""


class Column(Protocol):
    """The part of one field, or of a part of it, in each value."""

    def read(self, data: bytes, at: int) -> int:
        """Take the value that begins at a place. Return the place after it. Raises Wrong, IndexError, struct.error."""
        ...

    def absent(self) -> None:
        """Take a null."""
        ...

    def taken(self) -> pa.Array:
        """Return all values that were taken."""
        ...


def varint(data: bytes, at: int, path: str) -> tuple[int, int]:
    """Return a whole number of up to 64 bits, and the place after it. Raises Wrong for one with more."""
    byte = data[at]
    at += 1
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), at
    number, shift = byte & 0x7F, 7
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise Wrong(path, "it is a number of more than ten bytes, and AVRO's have up to 64 bits")
    if number >> 64:
        raise Wrong(path, "it is a number of more than 64 bits")
    return number >> 1 ^ -(number & 1), at


def sized(data: bytes, at: int, path: str) -> tuple[bytes, int]:
    """Return bytes that begin with their size, and the place after them. Raises Wrong where they are not there."""
    size, at = varint(data, at, path)
    end = at + size
    if size < 0 or end > len(data):
        raise Wrong(path, f"it has {size} bytes by its size, and {len(data) - at} are left of the value")
    return data[at:end], end


class Leaf:
    """Values without parts."""

    def __init__(self, one: One, target: pa.DataType | None) -> None:
        """Args: reads a value as Arrow takes it; the Arrow type, None where the column is left out."""
        self._target = target
        self._values: list[Any] = []
        self._append = self._values.append

        self.read = self.reading(one)

    def reading(self, one: One) -> Callable[[bytes, int], int]:
        """Return another `read`, for values that are written in another way. Args: reads a value, as Arrow takes it."""

        def read(data: bytes, at: int) -> int:
            value, at = one(data, at)
            self._append(value)
            return at

        return read

    def absent(self) -> None:
        """Take a null."""
        self._append(None)

    def taken(self) -> pa.Array:
        """Return all values that were taken."""
        return pa.array(self._values, self._target)


class Union:
    """Values of a type, or null, each after the place of its type in the union."""

    def __init__(
        self,
        column: Column,
        reads: Mapping[int, Callable[[bytes, int], int]],
        null: int | None,
        nullable: bool,
        path: str,
    ) -> None:
        """Args: the values; what reads them, by the place of their type; the place of null; whether the query has null;
        where it lies."""
        self._column, self._reads = column, reads
        self._null, self._nullable, self._path = null, nullable, path

    def read(self, data: bytes, at: int) -> int:
        """Take a value, as of Column."""
        place, at = varint(data, at, self._path)
        if place == self._null:
            if not self._nullable:
                raise Wrong(self._path, "null, where the schema of the query has no null")
            self._column.absent()
            return at
        read = self._reads.get(place)
        if read is None:
            places = sorted({*self._reads, *(() if self._null is None else (self._null,))})
            raise Wrong(self._path, f"it names type {place} of its union, which has {places}")
        return read(data, at)

    def absent(self) -> None:
        """Take a null."""
        self._column.absent()

    def taken(self) -> pa.Array:
        """Return all values that were taken."""
        return self._column.taken()


class Struct:
    """Records."""

    def __init__(
        self, given: Sequence[tuple[str | None, Column]], defaults: Mapping[str, Any], target: pa.DataType | None
    ) -> None:
        """Args: the columns in the order of the bytes, by their names in the query, None for those that it leaves out;
        the values of what the messages do not have; the Arrow type."""
        self._reads = [column.read for _, column in given]
        self._columns = {name: column for name, column in given if name is not None}
        self._defaults, self._target = defaults, target
        self._nulls: list[bool] = []

    def read(self, data: bytes, at: int) -> int:
        """Take a value, as of Column."""
        for read in self._reads:
            at = read(data, at)
        self._nulls.append(False)
        return at

    def absent(self) -> None:
        """Take a null."""
        self._nulls.append(True)
        for column in self._columns.values():
            column.absent()

    def taken(self) -> pa.Array:
        """Return all values that were taken."""
        fields = list(self._target or ())
        parts = [
            self._columns[field.name].taken()
            if field.name in self._columns
            else repeated(self._defaults[field.name], len(self._nulls), field.type)
            for field in fields
        ]
        return structs(parts, fields, pa.array(self._nulls, pa.bool_()))


def repeated(value: Any, count: int, kind: pa.DataType) -> pa.Array:
    """Return a default once for each row."""
    return pa.array([value], kind).take(pa.array(np.zeros(count, dtype=np.int64)))


def structs(parts: Sequence[pa.Array], fields: Sequence[pa.Field], nulls: pa.Array) -> pa.Array:
    """Return records, perhaps without fields. Args: a column for each field; the fields; which rows are null."""
    if fields:
        return pa.StructArray.from_arrays(parts, fields=list(fields), mask=nulls)
    return pa.StructArray.from_buffers(pa.struct([]), len(nulls), [pc.invert(nulls).buffers()[1]])


class Items:
    """Lists: blocks of items, each after the number of its items. A negative number has the block's size after it."""

    def __init__(self, items: Column, target: pa.DataType | None, path: str) -> None:
        """Args: the items, each of at least one byte; the Arrow type; where they lie."""
        self._items, self._target, self._path = items, target, path
        self._ends: list[int | None] = []
        self._count = 0

    def read(self, data: bytes, at: int) -> int:
        """Take a value, as of Column."""
        self._ends.append(self._count)
        while True:
            count, at = varint(data, at, self._path)
            if count == 0:
                self._begin()
                return at
            end = None
            if count < 0:
                size, at = varint(data, at, self._path)
                count, end = -count, at + size
            if count > len(data) - at:
                raise Wrong(self._path, f"it has {count} items by its size, and {len(data) - at} bytes are left")
            at = self._block(data, at, count)
            self._count += count
            if end is not None and at != end:
                raise Wrong(self._path, f"a block of its items ends {end - at} bytes before the end that it names")

    def _begin(self) -> None:
        """Prepare for the next list."""

    def _block(self, data: bytes, at: int, count: int) -> int:
        read = self._items.read
        for _ in range(count):
            at = read(data, at)
        return at

    def absent(self) -> None:
        """Take a null."""
        self._ends.append(None)

    def _offsets(self) -> pa.Array:
        return pa.array([*self._ends, self._count], pa.int32())

    def taken(self) -> pa.Array:
        """Return all values that were taken."""
        return pa.ListArray.from_arrays(self._offsets(), self._items.taken(), type=self._target)


class Pairs(Items):
    """Maps, whose keys are texts."""

    def __init__(self, items: Column, target: pa.DataType | None, path: str) -> None:
        """Args: as of Items."""
        super().__init__(items, target, path)
        self._keys: list[str] = []
        self._known: set[str] = set()

    def _begin(self) -> None:
        self._known = set()

    def _block(self, data: bytes, at: int, count: int) -> int:
        read = self._items.read
        for _ in range(count):
            raw, at = sized(data, at, self._path)
            try:
                key = raw.decode()
            except UnicodeDecodeError as error:
                raise Wrong(self._path, f"a key that is not valid UTF-8: {error}") from None
            if key in self._known:
                raise Wrong(self._path, f"the key {key!r} twice")
            self._known.add(key)
            self._keys.append(key)
            at = read(data, at)
        return at

    def taken(self) -> pa.Array:
        """Return all values that were taken."""
        return pa.MapArray.from_arrays(self._offsets(), pa.array(self._keys, pa.string()), self._items.taken()).cast(
            self._target
        )
