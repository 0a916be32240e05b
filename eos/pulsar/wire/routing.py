"""Which partition a key belongs to: exactly the official clients' choice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eos.config import KeyHash
from eos.errors import InvalidInput
from eos.pulsar.wire.hashing import hash_keys
from eos.pulsar.wire.keys import as_bytes, wire_keys

NO_PARTITION = -1
"""The value of `partition_of` for a row without a key."""


def partition_of(keys: pa.Array, partitions: int | npt.NDArray[np.int64], key_hash: KeyHash) -> npt.NDArray[np.int32]:
    """Return the partition of each key, NO_PARTITION for a null; shape (keys,).

    Args:
        keys: text or binary. A binary key that is not UTF-8 is hashed in base64, as the Java client does.
        partitions: how many the topic has, or that of each key; at least 1.
        key_hash: the hash that the other producers of the topic use.

    Raises InvalidInput for keys of another type.
    """
    text = wire_keys(keys).text
    chosen = (hash_keys(text, key_hash) % partitions).astype(np.int32)
    if text.null_count:
        chosen[np.asarray(text.is_null())] = NO_PARTITION
    return chosen


@dataclass(frozen=True, slots=True)
class Sorted:
    """Rows in parts, by rising partition; those of one part are in the order that they had.

    Attributes:
        rows: all of them.
        partitions: of each part; more than once where its rows were parted by keys.
        ends: where in `rows` each part ends; the next one begins there.
    """

    rows: pa.RecordBatch
    partitions: list[int]
    ends: list[int]


def sort_by_partition(rows: pa.RecordBatch, partitions: npt.NDArray[np.integer]) -> Sorted:
    """Sort rows by their partitions; shape of `partitions`: (rows,)."""
    if rows.num_rows == 0:
        return Sorted(rows, [], [])
    if (partitions == partitions[0]).all():
        return Sorted(rows, [int(partitions[0])], [rows.num_rows])
    # Numbers of 16 bits are sorted by their digits, several times faster.
    sortable = partitions.astype(np.int16) if partitions.max() < 2**15 else partitions
    order = np.argsort(sortable, kind="stable")
    chosen = partitions[order]
    ends = [*(np.flatnonzero(np.diff(chosen)) + 1).tolist(), len(chosen)]
    return Sorted(rows.take(pa.array(order)), [int(chosen[end - 1]) for end in ends], ends)


def part_by_sticky_key(parts: Sorted) -> Sorted:
    """Part the rows of each partition by what a Key_Shared subscription goes by: the ordering key, else the key.

    Rows with neither stay together. Rows of one such key keep their order; its parts begin with those that came first.
    """
    rows = parts.rows
    names = [name for name in ("ordering_key", "key") if name in rows.schema.names]
    if not names or rows.num_rows == 0:
        return parts
    keys = [as_bytes(rows.column(name), name).cast(pa.large_binary()) for name in names]
    return _part_by(parts, pc.coalesce(*keys))


def part_by_delivery_time(parts: Sorted) -> Sorted:
    """Part the rows further by the column `deliver_at`, ms since 1970, since a frame has one time of delivery.

    Rows of one time keep their order. A time that is not after 1970 is none. About another time in the past the broker
    decides: so that the same rows are parted alike whenever that is.

    Raises InvalidInput for a column of another type.
    """
    rows = parts.rows
    place = rows.schema.get_field_index("deliver_at")
    if place < 0 or rows.num_rows == 0:
        return parts
    times = rows.column(place)
    if not pa.types.is_int64(times.type):
        raise InvalidInput(f'column "deliver_at" is {times.type}. It must be int64, in milliseconds since 1970')
    times = pc.if_else(pc.greater(times, 0), times, pa.scalar(None, pa.int64()))
    if times.null_count == len(times):
        return Sorted(rows.remove_column(place), parts.partitions, parts.ends)
    return _part_by(Sorted(rows.set_column(place, "deliver_at", times), parts.partitions, parts.ends), times)


def _part_by(parts: Sorted, column: pa.Array) -> Sorted:
    """Part the rows of each part by a column of theirs; those that are alike in it keep their order."""
    rows = parts.rows
    codes = column.dictionary_encode(null_encoding="encode").indices
    in_partition = np.repeat(np.arange(len(parts.ends)), np.diff([0, *parts.ends]))
    order = np.lexsort((np.asarray(codes), in_partition))
    partition, code = in_partition[order], np.asarray(codes)[order]
    ends = [*(np.flatnonzero((np.diff(partition) != 0) | (np.diff(code) != 0)) + 1).tolist(), rows.num_rows]
    return Sorted(rows.take(pa.array(order)), [parts.partitions[partition[end - 1]] for end in ends], ends)
