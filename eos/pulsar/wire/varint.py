"""Headers of many rows at once, as one array: tags, and varints padded to one width.

A varint is a number in groups of 7 bits, lowest first, each byte but the last with its top bit set.
Groups of zeros may be appended, so numbers of different size can have the same width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

# Any integer type; numbers are never negative.
Numbers = npt.NDArray[Any]

# `compacted_out = false` says nothing, in a varint of any width.
_FILLER_TAG = 4 << 3


@dataclass(frozen=True, slots=True)
class HeaderField:
    """A tag and a varint that every row's header has.

    Attributes:
        tag: field number * 8 + wire type.
        numbers: one for each row; 0 where the field is missing.
        missing: rows without this field, or None; a filler of the same width takes its place.
            Only for fields of SingleMessageMetadata.
        width: bytes of the varint; that of the largest number.
    """

    tag: int
    numbers: Numbers
    missing: npt.NDArray[np.bool_] | None = None
    width: int = 0

    def __post_init__(self) -> None:
        largest = int(self.numbers.max()) if len(self.numbers) else 0
        object.__setattr__(self, "width", max(1, -(-largest.bit_length() // 7)))


def width(fields: Sequence[HeaderField]) -> int:
    """Return the bytes that each row's header of these fields has."""
    return sum(1 + field.width for field in fields)


def header(fields: Sequence[HeaderField], rows: slice, kind: pa.DataType, sizes: Numbers | None = None) -> pa.Array:
    """Return the rows' headers as an array of type `kind`, binary or large_binary.

    `sizes`, where given, stand before the fields as 4 bytes each, big-endian.
    """
    count = rows.stop - rows.start
    at = 0 if sizes is None else 4
    row_bytes = at + width(fields)
    out = np.empty((count, row_bytes), dtype=np.uint8)
    if sizes is not None:
        out[:, :4] = sizes[rows].astype(">u4").view(np.uint8).reshape(count, 4)
    for field in fields:
        out[:, at] = field.tag if field.missing is None else np.where(field.missing[rows], _FILLER_TAG, field.tag)
        _put_varint(out[:, at + 1 : at + 1 + field.width], field.numbers[rows])
        at += 1 + field.width
    return binary_array(out.reshape(-1), np.arange(0, out.size + 1, row_bytes), kind)


def binary_array(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    """Return an array without nulls of type `kind`, binary or large_binary; shapes (bytes,), (rows + 1,)."""
    width = np.int64 if pa.types.is_large_binary(kind) else np.int32
    buffers = [None, pa.py_buffer(offsets.astype(width, copy=False)), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers)


def _put_varint(out: npt.NDArray[np.uint8], numbers: Numbers) -> None:
    last = out.shape[1] - 1
    for group in range(last):
        out[:, group] = (numbers >> (7 * group)) & 0x7F | 0x80
    out[:, last] = numbers >> (7 * last)
