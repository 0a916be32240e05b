"""AVRO values of many rows, decoded in step by numpy (`eos.schema.vector_columns` says how, and why it is right).

It takes what `eos.schema.avro_values` takes, column for column, with the same rules. A value that those rules do not
allow raises `Unsure`: that decoder has the last word, and names the row and the field. Fields that the query leaves out
are checked by the same rules, and thrown away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from eos.pulsar.wire.fields import Places
from eos.schema.arrow_numbers import Numbers, decimals, plain, symbols
from eos.schema.avro_defaults import field_value
from eos.schema.avro_text import Node
from eos.schema.conversions import limits
from eos.schema.description import Record
from eos.schema.field_names import matched_by_message
from eos.schema.spark_types import spark_type
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
from eos.spark.pyspark_api import arrow_type

FEWEST = 100
"""Rows from which on numpy takes less time than the decoder of single values."""

_One = Callable[[Cursor], Numbers]
_Read = Callable[[Cursor], None]

_DTYPES: Mapping[str, Any] = {"int": np.int32, "long": np.int64, "float": np.float32, "double": np.float64}
_EXACT = 2**53  # whole numbers up to here are exact in 64 bits of a float
_DECIMAL_BYTES = 16
_NOWHERE = np.empty(0, np.int64)
_U = np.uint64


def vector_column(writer: Node, reader: Node, kind: pa.DataType) -> VectorColumn:
    """Return an empty column for the values of one type.

    Args: what the messages have; what the query has, which goes together with it; the Arrow type.
    """
    inner = _inner(writer, reader, kind)
    if writer.branch is None:
        return inner
    reads: dict[int, _Read] = {writer.branch: inner.read}
    if writer.narrow is not None and isinstance(inner, NumberColumn):
        place, narrow = writer.narrow
        reads[place] = inner.reading(_number(Node(narrow), reader))
    return _Union(inner, reads, writer.null_branch if writer.nullable and reader.nullable else None)


class _Union(OptionalColumn):
    """Values after the place of their type in a union."""

    def __init__(self, column: VectorColumn, reads: Mapping[int, _Read], null: int | None) -> None:
        """Args: the values; what reads them, by the place of their type; the place of null, None where none may be."""
        super().__init__(column)
        self._reads, self._null = reads, null
        self._bytes = {2 * place: read for place, read in reads.items() if place < 64}  # a place as zigzag writes it

    def read(self, cursor: Cursor) -> None:
        start = cursor.at
        first = cursor.bytes_there()
        read = self._bytes.get(int(first[0])) if len(first) else None
        if read is not None and (first == first[0]).all():  # all of one type, as in most columns
            cursor.move(start + 1)
            self.present.add(start, np.ones(len(start), np.bool_))
            read(cursor)
        else:
            self._mixed(cursor)

    def _mixed(self, cursor: Cursor) -> None:
        start = cursor.at
        which = cursor.zigzag()
        present = np.ones(len(which), np.bool_) if self._null is None else which != self._null
        self.present.add(start, present)
        known = len(which) - int(np.count_nonzero(present))
        for place, read in self._reads.items():
            there = np.flatnonzero(which == place)
            known += len(there)
            if len(there) == len(which):
                read(cursor)
            elif len(there):
                some = cursor.only(there)
                read(some)
                cursor.back(there, some)
        if known != len(which):
            raise Unsure


def _inner(writer: Node, reader: Node, kind: pa.DataType) -> VectorColumn:
    if writer.kind == "record":
        return _struct(writer, reader, kind)
    if writer.items is not None and reader.items is not None:
        if writer.kind == "array":
            return _Blocks(vector_column(writer.items, reader.items, kind.value_type), kind, keyed=False)
        return _Blocks(vector_column(writer.items, reader.items, kind.item_type), kind, keyed=True)
    if writer.logical == "decimal":
        written = pa.decimal128(writer.precision, writer.scale)
        return NumberColumn(lambda cursor: _decimal(cursor, writer), np.dtype((_U, 2)), decimals(written, kind))
    if writer.kind in ("string", "bytes"):
        return BytesColumn(Cursor.zigzag, kind, text="string" in (writer.kind, reader.kind))
    if writer.kind == "fixed":
        return BytesColumn(lambda cursor: np.full(len(cursor.at), writer.size), kind, text=False)
    if writer.kind == "boolean":
        return NumberColumn(_boolean, np.bool_, plain(kind))
    if writer.kind == "enum":
        return _enum(writer, reader)
    return NumberColumn(_number(writer, reader), _DTYPES[reader.kind], plain(kind))


def _struct(writer: Node, reader: Node, kind: pa.DataType) -> VectorColumn:
    ours, lacking = matched_by_message(writer.fields, reader.fields)
    defaults = {field.name: field_value(field.node, field.default, field.name) for field in lacking}
    given: list[tuple[str | None, VectorColumn]] = []
    for theirs in writer.fields:
        if theirs.name in ours:
            field = ours[theirs.name]
            given.append((field.name, vector_column(theirs.node, field.node, kind.field(field.name).type)))
        else:
            own = arrow_type(spark_type(Record("AVRO", b"", theirs.node)))
            given.append((None, vector_column(theirs.node, theirs.node, own)))
    return StructColumn(given, defaults, kind)


class _Blocks(ListColumn):
    """Lists: blocks of items, each after the number of its items. A negative number has the block's size after it."""

    def __init__(self, items: VectorColumn, kind: pa.DataType, *, keyed: bool) -> None:
        super().__init__(items, kind, BytesColumn(Cursor.zigzag, pa.string(), text=True) if keyed else None)

    def read(self, cursor: Cursor) -> None:
        counts = np.zeros(len(cursor.at), np.int64)
        self.counts.add(cursor.at, counts)
        going = np.arange(len(counts))  # the lists that have another block
        here = cursor.only(going)
        while True:
            block = here.zigzag()
            sized = np.flatnonzero(block < 0) if block.min(initial=0) < 0 else _NOWHERE
            ends = _ends_of_blocks(here, block, sized)
            least, most = int(block.min(initial=0)), int(block.max(initial=0))
            if least < 0 or (most > 0 and (block > here.end - here.at).any()):
                raise Unsure
            cursor.back(going, here)
            if most == 0:
                return
            if len(going) == len(counts):
                counts += block
            else:
                counts[going] += block
            self._items(here, block)
            if (here.at[sized] != ends).any():
                raise Unsure
            if not block.all():
                more = np.flatnonzero(block)
                going, here = going[more], here.only(more)

    def _items(self, lists: Cursor, block: Places) -> None:
        """Read the first item of each block, then the second of each that has one, and so on."""
        going, taken = np.arange(len(block)), 0
        here = lists.only(going)
        while True:
            each = int(block.min())  # items that each of those which go on has at least
            for _ in range(taken, each):
                here.data.count_step(len(block))
                if self.keys is not None:
                    self.keys.read(here)
                self.items.read(here)
            lists.back(going, here)
            more, taken = np.flatnonzero(block > each), each
            if not len(more):
                return
            going, here, block = going[more], here.only(more), block[more]


def _ends_of_blocks(here: Cursor, block: Places, sized: Places) -> Places:
    """Make the numbers of items positive; return the ends that the blocks name whose numbers were negative."""
    if not len(sized):
        return sized
    block[sized] = -block[sized]  # the least of 64 bits stays negative
    some = here.only(sized)
    sizes = some.zigzag()
    here.back(sized, some)
    return some.at + sizes


def _boolean(cursor: Cursor) -> Numbers:
    found = cursor.bytes_there()
    cursor.move(cursor.at + 1)
    if found.max(initial=0) > 1:
        raise Unsure
    true: Numbers = found != 0
    return true


def _enum(writer: Node, reader: Node) -> VectorColumn:
    """Return the column of an enum. Each symbol of the messages becomes the query's, its `other_symbol`, or nothing."""
    names = writer.symbols
    if names != reader.symbols:
        names = tuple(name if name in reader.symbols else reader.other_symbol for name in names)
    allowed = np.array([name in reader.symbols or name == reader.other_symbol != "" for name in names], np.bool_)

    def one(cursor: Cursor) -> Numbers:
        places = cursor.zigzag()
        if ((places < 0) | (places >= len(names))).any() or not allowed[places].all():
            raise Unsure
        return places

    return NumberColumn(one, np.int64, symbols(names))


def _number(writer: Node, reader: Node) -> _One:
    """Return what reads numbers as the query has them."""
    if writer.kind in ("float", "double"):
        return lambda cursor: _real(cursor, writer.kind).astype(_DTYPES[reader.kind], copy=False)
    least, most, factor = limits(writer)
    to = _DTYPES[reader.kind]
    if reader.kind == "int":
        least, most = max(least, -(2**31)), min(most, 2**31 - 1)
    if reader.kind in ("float", "double"):
        least, most = max(least, -_EXACT), min(most, _EXACT)

    def one(cursor: Cursor) -> Numbers:
        found = cursor.zigzag()
        if found.min(initial=0) < least or found.max(initial=0) > most:
            raise Unsure
        counted = found * factor if factor > 1 else found
        made = counted.astype(to, copy=False)
        if to is np.float32 and (made.astype(np.int64) != counted).any():
            raise Unsure
        return made

    return one


def _real(cursor: Cursor, kind: str) -> Numbers:
    head = cursor.data.eight[cursor.at]
    cursor.move(cursor.at + (4 if kind == "float" else 8))
    return head.astype(np.uint32).view(np.float32) if kind == "float" else head.view(np.float64)


def _decimal(cursor: Cursor, writer: Node) -> Numbers:
    """Read numbers of up to 16 bytes, most significant first; return them in two halves, least significant first."""
    sizes = np.full(len(cursor.at), writer.size) if writer.kind == "fixed" else cursor.zigzag()
    at = cursor.at
    if ((sizes < 0) | (sizes > _DECIMAL_BYTES) | (sizes > cursor.end - at)).any():
        raise Unsure
    raw = cursor.data.raw
    low = np.where((raw[at] > 0x7F) & (sizes > 0), ~_U(0), _U(0))  # the sign, in all bits
    high = low.copy()
    for place in range(int(sizes.max(initial=0))):
        there = place < sizes
        high = np.where(there, high << _U(8) | low >> _U(56), high)
        low = np.where(there, low << _U(8) | raw[at + place], low)
    cursor.at = at + sizes
    return np.stack((low, high), axis=1)
