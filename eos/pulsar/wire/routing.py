"""Which partition a key belongs to: exactly the official clients' choice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eos.config import KeyHash
from eos.pulsar.wire.hashing import hash_keys
from eos.pulsar.wire.keys import wire_keys

NO_PARTITION = -1
"""What `partition_of` gives for a row without a key."""


def partition_of(keys: pa.Array, partitions: int, key_hash: KeyHash) -> npt.NDArray[np.int32]:
    """Return the partition of each key, NO_PARTITION for a null; shape (keys,).

    Args:
        keys: text or binary. A binary key that is not UTF-8 is hashed in base64, as the Java client does.
        partitions: how many the topic has; at least 1.
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
    """Rows by rising partition, each partition's in the order that they had.

    Attributes:
        rows: all of them.
        partitions: those that have rows.
        ends: where in `rows` each one's end; the next one's begin there.
    """

    rows: pa.RecordBatch
    partitions: list[int]
    ends: list[int]


def sort_by_partition(rows: pa.RecordBatch, partitions: npt.NDArray[np.int32]) -> Sorted:
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
