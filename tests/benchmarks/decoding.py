"""What it costs to make columns of entries: python -m tests.benchmarks.decoding.

CPU of the process, nanoseconds a row, the median of five rounds; value and key, 100 bytes a value. Headers found
at once and messages read one by one alternate, so that both meet the same noise.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

import pyarrow as pa

from eos.pulsar.wire.batch import BatchEncoder
from eos.pulsar.wire.decoding import decode
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata

ROWS = 100_000
ROUNDS = 5
VALUE_BYTES = 100


def entries(messages: int) -> list[Entry]:
    """Return ROWS rows in entries of so many messages."""
    random.seed(messages)
    values = [random.randbytes(VALUE_BYTES) for _ in range(messages)]
    rows = pa.record_batch({"value": values, "key": [b"key-%d" % (row % 100) for row in range(messages)]})
    (chunk,) = BatchEncoder(target_bytes=4 * 1024 * 1024).chunks(rows)
    payload = bytes(chunk.payload)
    described = MessageMetadata(producer_name="p", publish_time=1, num_messages_in_batch=messages)
    return [Entry(EntryId(1, place), described, payload, len(payload)) for place in range(ROWS // messages)]


@contextmanager
def one_by_one() -> Iterator[None]:
    """Find no headers at once."""
    with patch("eos.pulsar.wire.rows.find", return_value=None):
        yield


def cost(group: Sequence[Entry]) -> float:
    """Return nanoseconds of CPU a row."""
    begin = time.process_time_ns()
    assert decode(group, ["value", "key"]).num_rows == ROWS
    return (time.process_time_ns() - begin) / ROWS


def main() -> None:
    """Measure and print."""
    for messages in (1000, 10):
        group = entries(messages)
        found, read = [], []
        for _ in range(ROUNDS):
            found.append(cost(group))
            with one_by_one():
                read.append(cost(group))
        print(
            f"entries of {messages:>4}: headers found at once {statistics.median(found):6.0f} ns a row "
            f"(lowest {min(found):.0f}), read one by one {statistics.median(read):6.0f} ns (lowest {min(read):.0f})"
        )


if __name__ == "__main__":
    main()
