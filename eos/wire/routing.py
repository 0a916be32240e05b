"""Which partition a key belongs to: exactly the official clients' choice."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eos.config import KeyHash
from eos.wire.hashing import hash_keys
from eos.wire.keys import wire_keys

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


def split_by_partition(rows: pa.RecordBatch, partitions: npt.NDArray[np.int32]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield each partition's rows, in their order, by rising partition; partitions without rows are left out."""
    if rows.num_rows == 0:
        return
    if (partitions == partitions[0]).all():
        yield int(partitions[0]), rows
        return
    # Numbers of 16 bits are sorted by their digits, several times faster.
    sortable = partitions.astype(np.int16) if partitions.max() < 2**15 else partitions
    order = np.argsort(sortable, kind="stable")
    chosen = partitions[order]
    sorted_rows = rows.take(pa.array(order))
    starts = np.flatnonzero(np.diff(chosen, prepend=chosen[0] - 1))
    for start, stop in zip(starts, [*starts[1:], len(chosen)], strict=True):
        yield int(chosen[start]), sorted_rows.slice(start, stop - start)
