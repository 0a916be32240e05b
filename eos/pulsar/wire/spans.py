"""Parts of one array of bytes: a column of them, and the values of messages where they lie."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eos.pulsar.wire.fields import Bytes, Flags, Places, joined


def spans(data: Bytes, at: Places, sizes: Places, missing: Flags | None) -> pa.Array:
    """Return these parts of `data` as a binary column. No part begins before the one before it ends."""
    count = len(at)
    if count == 0:
        return pa.array([], pa.binary())
    offsets = np.empty(2 * count, dtype=np.int32)
    offsets[0::2] = at
    offsets[1::2] = at + sizes
    with_gaps = pa.Array.from_buffers(
        pa.binary(), 2 * count - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)], null_count=0
    )
    parts = pa.array(np.arange(0, 2 * count, 2), mask=missing)
    return pc.take(with_gaps, parts, boundscheck=False)  # they are all there


def column_bytes(values: pa.Array) -> memoryview:
    """Return the bytes of a binary column, those of nulls among them, one after the other; nothing is copied."""
    if len(values) == 0:
        return memoryview(b"")
    _, places, data = values.buffers()
    offsets = np.frombuffer(places, dtype=np.int32)[values.offset : values.offset + len(values) + 1]
    return memoryview(data if data is not None else b"")[offsets[0] : offsets[-1]]


class Payloads:
    """The values of messages, between other bytes. They are copied only for a column of them.

    Attributes:
        data: all bytes, with PADDING after the last value.
        at: where each value begins, none before the one before it ends; shape (values,).
        sizes: its bytes; shape (values,).
        missing: which are null; None where none is.
    """

    def __init__(self, data: Bytes, at: Places, sizes: Places, missing: Flags | None) -> None:
        """Args: as of the attributes."""
        self.data, self.at, self.sizes, self.missing = data, at, sizes, missing

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.at)

    @classmethod
    def of(cls, values: pa.Array | Payloads) -> Payloads:
        """Return values that are a column of bytes, perhaps with nulls; what is Payloads already stays as it is."""
        if isinstance(values, Payloads):
            return values
        values = values.cast(pa.binary())
        sizes = pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        data, _ = joined([column_bytes(values.drop_null())])
        missing = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
        return cls(data, np.cumsum(sizes) - sizes, sizes, missing)

    @cached_property
    def column(self) -> pa.Array:
        """The values as a binary column."""
        return spans(self.data, self.at, self.sizes, self.missing)

    def only(self, rows: Places) -> Payloads:
        """Return only these values. `rows` rises."""
        missing = None if self.missing is None else self.missing[rows]
        return Payloads(self.data, self.at[rows], self.sizes[rows], missing)


def as_column(values: pa.Array | Payloads) -> pa.Array:
    """Return values as a column of bytes; one stays as it is."""
    return values.column if isinstance(values, Payloads) else values
