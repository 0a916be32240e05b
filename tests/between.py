"""Values that lie between other bytes, as those of messages lie between their headers."""

from __future__ import annotations

from random import Random

import pyarrow as pa

from eos.pulsar.wire.fields import joined
from eos.pulsar.wire.spans import Payloads

MISLEADING = b'\0\1\2\x7f\x80\xff"\\{}[]:,-.0123456789eE aflnrstu'


def between(values: pa.Array, seed: int = 0) -> Payloads:
    """Return values, a binary column, after bytes that would mean something where a reader left its own value."""
    random = Random(seed)
    parts: list[bytes] = []
    for value in values.to_pylist():
        parts += [bytes(random.choices(MISLEADING, k=random.choice([0, 1, 2, 9, 24]))), value or b""]
    data, bounds = joined([*parts, bytes(random.choices(MISLEADING, k=3))])
    missing = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    at = bounds[1 : 2 * len(values) : 2]
    return Payloads(data, at, bounds[2 : 2 * len(values) + 1 : 2] - at, missing)
