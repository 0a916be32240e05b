"""The columns of message rows as parts of a batch's payload: headers of one width, and the bytes between them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eos.errors import InvalidInput
from eos.pulsar.wire.checksum import Buffer
from eos.pulsar.wire.keys import StickyKey, WireKeys, as_bytes, lengths, shown, sticky_key, wire_keys
from eos.pulsar.wire.large_messages import alone
from eos.pulsar.wire.properties import Properties
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata, SingleMessageMetadata
from eos.pulsar.wire.varint import HeaderField, Numbers, header, width

_SHOWN = 40  # characters of a key, in the name of a row
_SIZE_BYTES = 4  # before each message of a batch: the size of its metadata

LATEST_DELIVERY_MS = 253_402_300_799_999
"""The end of the year 9999: a later time of delivery is a mistake, such as microseconds."""

# Tags of SingleMessageMetadata: field number * 8 + wire type (0: varint, 2: bytes).
_PARTITION_KEY = 2 << 3 | 2
_PAYLOAD_SIZE = 3 << 3
_EVENT_TIME = 5 << 3
_KEY_B64_ENCODED = 6 << 3
_ORDERING_KEY = 7 << 3 | 2
_NULL_VALUE = 9 << 3


class PayloadColumns:
    """The columns of one record batch as parts of the payload: headers, and the bytes between them."""

    def __init__(self, rows: pa.RecordBatch, first_row: int) -> None:
        if "value" not in rows.schema.names:
            raise InvalidInput('there is no column "value"')
        self._rows = rows
        self._first_row = first_row
        value = as_bytes(rows.column("value"), "value")
        value_sizes = lengths(value)
        self._value_sizes = self._data_sizes = value_sizes
        self._fields = [HeaderField(_PAYLOAD_SIZE, value_sizes)]
        self._parts: list[list[HeaderField] | pa.Array | Properties] = []
        if value.null_count:
            self._fields.append(HeaderField(_NULL_VALUE, _ones(value.is_null())))
        if (column := self._times("event_time")) is not None:
            self._fields.append(self._event_time(column))
        self._deliver_at = self._times("deliver_at")
        if self._deliver_at is not None:
            self._check_deliver_at(self._deliver_at)
        self._keys: WireKeys | None = None
        if (column := self._present("key")) is not None:
            self._keys = keys = wire_keys(column)
            if keys.encoded is not None:
                self._fields.append(HeaderField(_KEY_B64_ENCODED, _ones(keys.encoded)))
            self._add_bytes(_PARTITION_KEY, keys.text)
        if (column := self._present("ordering_key")) is not None:
            self._add_bytes(_ORDERING_KEY, as_bytes(column, "ordering_key"))
        headers = [part for part in self._parts if isinstance(part, list)]
        if self._fields:
            headers.append(self._fields)
            self._parts.append(self._fields)
        metadata_sizes = self._data_sizes - value_sizes + sum(width(fields) for fields in headers)
        if (column := self._present("properties")) is not None:
            properties = Properties(column, self.row_name)
            self._parts.append(properties)
            self._data_sizes = self._data_sizes + properties.data_sizes
            metadata_sizes = metadata_sizes + properties.sizes
        self._parts.append(value)
        self._metadata_sizes = metadata_sizes
        self.sizes = _SIZE_BYTES + metadata_sizes + value_sizes
        """Bytes of each message on the wire; shape (rows,)."""
        large = any(pa.types.is_large_binary(part.type) for part in self._parts if isinstance(part, pa.Array))
        self._kind = pa.large_binary() if large else pa.binary()

    def row_name(self, index: int) -> str:
        """Name a row for an error message."""
        return row_name(self._rows, index, self._first_row)

    def join(self, rows: slice) -> memoryview:
        """Return the payload of these rows."""
        sizes: Numbers | None = self._metadata_sizes
        columns = []
        for part in self._parts:
            if isinstance(part, list):
                columns.append(header(part, rows, self._kind, sizes))
                sizes = None
            elif isinstance(part, Properties):
                columns.append(part.encoded(rows, self._kind))
            else:
                columns.append(part.slice(rows.start, rows.stop - rows.start).cast(self._kind))
        empty = pa.scalar(b"", self._kind)
        joined = pc.binary_join_element_wise(*columns, empty, null_handling="replace", null_replacement=b"")
        return memoryview(joined.buffers()[2]).cast("B")[: int(self.sizes[rows].sum())]

    def sticky(self, row: int) -> StickyKey | None:
        """Return what a Key_Shared subscription goes by for a row; None for a row without."""
        return sticky_key(self._present("ordering_key"), self._keys, row)

    def sticky_sizes(self) -> npt.NDArray[np.int64]:
        """Return the bytes of what `sticky` returns for each row, at most; shape (rows,)."""
        ordering = self._present("ordering_key")
        sizes = np.zeros(self._rows.num_rows, dtype=np.int64)
        for column in (ordering, None if self._keys is None else self._keys.text):
            if column is not None:
                sizes = np.maximum(sizes, lengths(as_bytes(column, "ordering_key")))
        return sizes

    def value_bytes(self, row: int) -> int:
        """Return the bytes of a row's value."""
        return int(self._value_sizes[row])

    def alone(self, row: int) -> tuple[MessageMetadata, Buffer]:
        """Return a row as a message that stands alone: what describes it, and the bytes of its value."""
        one = self._rows.slice(row, 1)
        place = one.schema.get_field_index("value")
        value = as_bytes(one.column(place), "value")[0]
        bare = one.set_column(place, "value", pa.array([b"" if value.is_valid else None], pa.binary()))
        own = SingleMessageMetadata.FromString(bytes(PayloadColumns(bare, 0).join(slice(0, 1))[_SIZE_BYTES:]))
        return alone(own), memoryview(value.as_buffer()) if value.is_valid else b""

    def each_alone(self, rows: slice) -> Iterator[tuple[MessageMetadata, Buffer]]:
        """Yield these rows as `alone` returns them; many small ones in a fraction of its time."""
        joined, end = self.join(rows), 0
        for row in range(rows.start, rows.stop):
            start = end + _SIZE_BYTES
            value = start + int(self._metadata_sizes[row])
            end = start + int(self.sizes[row]) - _SIZE_BYTES
            yield alone(SingleMessageMetadata.FromString(bytes(joined[start:value]))), joined[value:end]

    def deliver_at_ms(self, row: int) -> int | None:
        """Return when a row is to be delivered; None: at once."""
        return None if self._deliver_at is None else self._deliver_at[row].as_py()

    def data_bytes(self, rows: slice) -> int:
        """Return the bytes of these rows' own data."""
        return int(self._data_sizes[rows].sum())

    def _present(self, name: str) -> pa.Array | None:
        if name not in self._rows.schema.names:
            return None
        column = self._rows.column(name)
        return None if column.null_count == len(column) else column

    def _add_bytes(self, tag: int, column: pa.Array) -> None:
        sizes = lengths(column)
        missing = np.asarray(column.is_null()) if column.null_count else None
        self._parts += [[*self._fields, HeaderField(tag, sizes, missing)], column]
        self._fields = []
        self._data_sizes = self._data_sizes + sizes

    def _times(self, name: str) -> pa.Array | None:
        column = self._present(name)
        if column is not None and not pa.types.is_int64(column.type):
            raise InvalidInput(f'column "{name}" is {column.type}. It must be int64, in milliseconds since 1970')
        return column

    def _check_deliver_at(self, column: pa.Array) -> None:
        times = np.asarray(pc.fill_null(column, 0))
        latest = int(times.argmax())
        if times[latest] > LATEST_DELIVERY_MS:
            raise InvalidInput(
                f"{self.row_name(latest)} is to be delivered at {times[latest]} ms, which is after the year 9999. Give "
                "milliseconds since 1970, or a timestamp"
            )

    def _event_time(self, column: pa.Array) -> HeaderField:
        times = np.asarray(pc.fill_null(column, 0))
        earliest = int(times.argmin())
        if times[earliest] < 0:
            raise InvalidInput(
                f"{self.row_name(earliest)} has the event time {times[earliest]}. Pulsar has none before 1970"
            )
        return HeaderField(_EVENT_TIME, times, np.asarray(column.is_null()) if column.null_count else None)


def _ones(flags: pa.BooleanArray) -> npt.NDArray[np.uint8]:
    return np.asarray(flags).astype(np.uint8)


def row_name(rows: pa.RecordBatch, index: int, first_row: int = 0) -> str:
    """Return 'row 7 (key "abc")': its number, by which the rows of a batch differ, and its key, which a user can find.

    Args: the rows; which of them; the number of the first, unless the column `row` has the numbers.
    """
    names = rows.schema.names
    number = rows.column("row")[index].as_py() if "row" in names else first_row + index
    text = shown(rows.column("key"), index) if "key" in names else None
    if text is None:
        return f"row {number}"
    return f'row {number} (key "{text if len(text) <= _SHOWN else text[:_SHOWN] + "…"}")'
