"""The form of a key column on the wire: `partition_key` is text in Pulsar's protocol.

A key that is valid UTF-8 travels as it is. Any other key travels as base64 with
`partition_key_b64_encoded` set, as the Java client's `keyBytes` does; official clients decode it
by that flag. The choice depends on the key alone, never on its neighbours, so one key has one
form for ever: compaction and routing, which look at the form on the wire, stay right.
`undo_base64` is the way back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eos.errors import InvalidInput
from eos.pulsar.wire.varint import binary_array

_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", dtype=np.uint8)
_SIX_BITS = np.full(256, 255, dtype=np.uint8)
_SIX_BITS[_ALPHABET] = np.arange(64)
_SIX_BITS[ord("=")] = 0

# The well-formed byte sequences of UTF-8 (Unicode, table 3-7). Arrow matches binary columns byte by byte.
_UTF8 = (
    r"^(?:[\x00-\x7F]|[\xC2-\xDF][\x80-\xBF]|\xE0[\xA0-\xBF][\x80-\xBF]|[\xE1-\xEC\xEE\xEF][\x80-\xBF]{2}"
    r"|\xED[\x80-\x9F][\x80-\xBF]|\xF0[\x90-\xBF][\x80-\xBF]{2}|[\xF1-\xF3][\x80-\xBF]{3}|\xF4[\x80-\x8F][\x80-\xBF]{2})*\z"
)


@dataclass(frozen=True, slots=True)
class WireKeys:
    """A key column in its form on the wire.

    Attributes:
        text: binary or large_binary, the bytes of `partition_key`; null where a row has no key.
        encoded: boolean, true where `text` is base64; None when no row is.
    """

    text: pa.Array
    encoded: pa.BooleanArray | None


@dataclass(frozen=True, slots=True)
class StickyKey:
    """The key by which a Key_Shared subscription picks the consumer of a whole chunk (Commands.resolveStickyKey).

    Attributes:
        ordering_key: it comes first, where there is one.
        key: as it goes on the wire; `encoded` says whether that is base64.
    """

    ordering_key: bytes | None = None
    key: bytes | None = None
    encoded: bool = False


def as_bytes(column: pa.Array, name: str) -> pa.Array:
    """Return a text or binary column as binary or large_binary, without copying where Arrow allows.

    Raises InvalidInput for any other type.
    """
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return column
    if pa.types.is_string(kind) or pa.types.is_null(kind):
        return column.cast(pa.binary())
    if pa.types.is_large_string(kind) or pa.types.is_binary_view(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.large_binary())
    raise InvalidInput(f'column "{name}" is {kind}. It must be text or binary')


def shown(column: pa.Array, place: int) -> str | None:
    """Return a text or bytes for an error message, None for null. A byte that is not UTF-8 is shown as \\xff.

    Spark lets its strings hold any bytes, and Arrow makes no text of Python's of such a one.
    """
    value: bytes | None = as_bytes(column.slice(place, 1), "text")[0].as_py()
    return None if value is None else value.decode(errors="backslashreplace")


def wire_keys(column: pa.Array) -> WireKeys:
    """Return the keys of a text or binary column as they go on the wire. Raises InvalidInput."""
    text = as_bytes(column, "key")
    # A text column is checked as well.
    if is_text(text):
        return WireKeys(text, None)
    plain = pc.fill_null(pc.match_substring_regex(text, _UTF8), True)
    encoded = pc.invert(plain)
    in_base64 = _base64(pc.if_else(encoded, text, pa.scalar(b"", text.type)))
    return WireKeys(pc.if_else(encoded, in_base64.cast(text.type), text), encoded)


def sticky_key(ordering: pa.Array | None, keys: WireKeys | None, row: int) -> StickyKey | None:
    """Return what a Key_Shared subscription goes by for a row; None for a row with neither.

    Args: the ordering keys, text or binary; the keys; the row.
    """
    if ordering is not None and ordering[row].is_valid:
        return StickyKey(ordering_key=as_bytes(ordering.slice(row, 1), "ordering_key")[0].as_py())
    if keys is not None and keys.text[row].is_valid:
        return StickyKey(key=keys.text[row].as_py(), encoded=keys.encoded is not None and keys.encoded[row].as_py())
    return None


def is_text(column: pa.Array) -> bool:
    """Return whether each row of a binary column is valid UTF-8. Spark lets its strings hold any bytes."""
    try:
        column.cast(pa.large_string() if pa.types.is_large_binary(column.type) else pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def first_not_text(column: pa.Array) -> int | None:
    """Return the first row of a binary column that is not UTF-8. None where all are."""
    if is_text(column):
        return None
    return next(row for row in range(len(column)) if not is_text(column.slice(row, 1)))


def lengths(column: pa.Array) -> npt.NDArray[np.int64]:
    """Return the bytes in each row of a binary column, 0 for a null; shape (rows,)."""
    return np.asarray(pc.fill_null(pc.binary_length(column), 0)).astype(np.int64)


def flat(column: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return a binary column's bytes and its rows' offsets into them, a null row being empty.

    Shapes: (bytes,) and (rows + 1,). Nothing is copied but the offsets, unless a null row has bytes.
    """
    large = pa.types.is_large_binary(column.type)
    if column.null_count:
        column = pc.fill_null(column, b"")
    if len(column) == 0:
        return np.empty(0, dtype=np.uint8), np.zeros(1, dtype=np.int64)
    _, raw_offsets, raw_data = column.buffers()
    stored = np.frombuffer(raw_offsets, dtype=np.int64 if large else np.int32)
    offsets = stored[column.offset : column.offset + len(column) + 1].astype(np.int64)
    start, stop = int(offsets[0]), int(offsets[-1])
    data = np.frombuffer(raw_data, dtype=np.uint8)[start:stop] if start < stop else np.empty(0, dtype=np.uint8)
    return data, offsets - start


def _base64(column: pa.Array) -> pa.Array:
    data, offsets = flat(column)
    sizes = np.diff(offsets)
    groups = -(-sizes // 3)
    group_offsets = np.concatenate(([0], np.cumsum(groups)))
    padded = np.zeros(int(group_offsets[-1]) * 3, dtype=np.uint8)
    shift = np.repeat(group_offsets[:-1] * 3 - offsets[:-1], sizes)
    padded[np.arange(len(data)) + shift] = data
    first, second, third = padded.reshape(-1, 3).T
    out = np.empty((len(first), 4), dtype=np.uint8)
    out[:, 0] = _ALPHABET[first >> 2]
    out[:, 1] = _ALPHABET[(first & 3) << 4 | second >> 4]
    out[:, 2] = _ALPHABET[(second & 15) << 2 | third >> 6]
    out[:, 3] = _ALPHABET[third & 63]
    missing = groups * 3 - sizes
    last = group_offsets[1:] - 1
    out[last[missing >= 1], 3] = ord("=")
    out[last[missing == 2], 2] = ord("=")
    return binary_array(out.reshape(-1), group_offsets * 4, pa.large_binary())


def first_not_base64(column: pa.Array) -> int | None:
    """Return the first row of a binary column that is not base64. None where all are."""
    return next((row for row in range(len(column)) if undo_base64(column.slice(row, 1)) is None), None)


def undo_base64(column: pa.Array) -> pa.Array | None:
    """Return the bytes that a binary column holds in base64, or None when a row is not base64. Nulls become empty.

    A row must have its padding, and no more than that: Python's own decoder takes some that have (3.11 and 3.12).
    """
    data, offsets = flat(column)
    if (np.diff(offsets) % 4).any():
        return None
    padding = (data == ord("=")).reshape(-1, 4)
    six_bits = _SIX_BITS[data]
    inner = np.ones(len(padding), dtype=np.bool_)
    inner[offsets[1:][np.diff(offsets) > 0] // 4 - 1] = False  # all but the last group of a row
    misplaced = padding[:, 0] | padding[:, 1] | (padding[:, 2] & ~padding[:, 3]) | (padding[:, 3] & inner)
    if misplaced.any() or (six_bits > 63).any():
        return None
    first, second, third, fourth = six_bits.reshape(-1, 4).T
    out = np.stack((first << 2 | second >> 4, second << 4 | third >> 2, third << 6 | fourth), axis=1)
    there = np.stack((np.ones(len(padding), dtype=np.bool_), ~padding[:, 2], ~padding[:, 3]), axis=1).reshape(-1)
    ends = np.concatenate(([0], np.cumsum(there)))
    return binary_array(out.reshape(-1)[there], ends[offsets // 4 * 3], column.type)
