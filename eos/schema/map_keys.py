"""The keys of maps: a map of Arrow's may have one twice, and what readers make of it differs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eos.pulsar.wire.fields import Places
from eos.schema.errors import Wrong


def first_twice(keys: pa.Array, counts: Places) -> int | None:
    """Return the place of a key that its map has before, None where there is none.

    Args: the keys of all maps, one map after the other; how many each map has.
    """
    most, uniform = int(counts.max(initial=0)), bool((counts == counts[:1]).all())
    if most < 2:
        return None
    if uniform and most < 4:  # so that each pair of a map's keys is one key and the next, round and round
        sizes = pc.binary_length(keys).to_numpy().reshape(-1, most)
        if not (sizes == np.roll(sizes, 1, axis=1)).any():
            return None
    if uniform and pc.all(pc.equal(keys[most:], keys[:-most])).as_py():  # all have those of the first
        keys, counts = keys[:most], counts[:1]
    codes = keys.dictionary_encode().indices.to_numpy().astype(np.int64)
    both = np.repeat(np.arange(len(counts)), counts) * (int(codes.max()) + 1) + codes
    ordered = np.sort(both)
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    return int(np.flatnonzero(both == again[0])[1]) if len(again) else None


def refuse_twice(keys: pa.Array, counts: Places, path: str) -> None:
    """Raise Wrong for a map that has a key twice: readers refuse it, or take one of the two values in silence.

    Spark's from_json makes such a map of an object that has a name twice, and Parquet files and functions in Python may
    hold one. Args: as of `first_twice`; where the maps lie.
    """
    if (place := first_twice(keys, counts)) is not None:
        raise Wrong(path, f"the key {keys[place].as_py()!r} twice")
