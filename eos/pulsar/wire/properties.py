"""The properties of many messages at once: a map column becomes repeated `KeyValue` fields."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eos.errors import InvalidInput
from eos.pulsar.wire.keys import as_bytes, first_not_text, lengths, shown
from eos.pulsar.wire.varint import HeaderField, binary_array, header, width

# Tags of SingleMessageMetadata.properties and of KeyValue: field number * 8 + 2 (bytes).
_PROPERTIES = 1 << 3 | 2
_KEY = 1 << 3 | 2
_VALUE = 2 << 3 | 2


class Properties:
    """A column of properties.

    Args:
        column: map of text to text; a null map is an empty one.
        row_name: from an index in the column to the row's name in error messages.

    Attributes:
        sizes: bytes that each row's properties take on the wire; shape (rows,).
        data_sizes: bytes of their names and values alone; shape (rows,).

    Raises InvalidInput for another type, for a property without a value, and for one that is not UTF-8, which Spark
    lets its strings hold: Pulsar has no such things.
    """

    def __init__(self, column: pa.Array, row_name: Callable[[int], str]) -> None:
        if not pa.types.is_map(column.type):
            raise InvalidInput(f'column "properties" is {column.type}. It must be a map of text to text')
        if column.null_count:
            # Arrow lets a null map have entries. Taking the rows again drops them.
            column = pc.take(column, np.arange(len(column)))
        offsets = np.asarray(column.offsets).astype(np.int64)
        start, stop = int(offsets[0]), int(offsets[-1])
        keys, values = column.keys.slice(start, stop - start), column.items.slice(start, stop - start)
        self._offsets: npt.NDArray[np.int64] = offsets - start
        if values.null_count:
            entry = int(np.argmax(np.asarray(values.is_null())))
            row = row_name(self._row_of(entry))
            raise InvalidInput(
                f"{row} has no value for the property '{shown(keys, entry)}'. Drop the property with map_filter"
            )
        self._keys, self._values = as_bytes(keys, "properties"), as_bytes(values, "properties")
        for name, texts in (("name", self._keys), ("value", self._values)):
            if (wrong := first_not_text(texts)) is not None:
                raise InvalidInput(
                    f"{row_name(self._row_of(wrong))} has a property whose {name} is not valid UTF-8, "
                    f"{texts[wrong].as_py()!r}. Pulsar's properties are texts. Write bytes as text, by base64(...) or "
                    "hex(...)"
                )
        key_sizes, value_sizes = lengths(self._keys), lengths(self._values)
        key, value = HeaderField(_KEY, key_sizes), HeaderField(_VALUE, value_sizes)
        data_sizes = key_sizes + value_sizes
        entry_sizes = data_sizes + width([key, value])
        outer = HeaderField(_PROPERTIES, entry_sizes)
        self._before_key, self._before_value = [outer, key], [value]
        self._ends = _running(entry_sizes + width([outer]))
        self.sizes: npt.NDArray[np.int64] = np.diff(self._ends[self._offsets])
        self.data_sizes: npt.NDArray[np.int64] = np.diff(_running(data_sizes)[self._offsets])

    def _row_of(self, entry: int) -> int:
        return int(np.searchsorted(self._offsets, entry, side="right")) - 1

    def encoded(self, rows: slice, kind: pa.DataType) -> pa.Array:
        """Return the rows' fields as an array of type `kind`, binary or large_binary."""
        entries = slice(int(self._offsets[rows.start]), int(self._offsets[rows.stop]))
        offsets = self._ends[self._offsets[rows.start : rows.stop + 1]]
        if entries.start == entries.stop:
            return binary_array(np.empty(0, dtype=np.uint8), np.zeros_like(offsets), kind)
        joined = pc.binary_join_element_wise(
            header(self._before_key, entries, kind),
            self._keys[entries].cast(kind),
            header(self._before_value, entries, kind),
            self._values[entries].cast(kind),
            pa.scalar(b"", kind),
        )
        data = np.frombuffer(joined.buffers()[2], dtype=np.uint8)
        return binary_array(data, offsets - offsets[0], kind)


def _running(sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes, dtype=np.int64)))
