"""Any rows, cut and compressed in any way, come back as they were."""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eos.config import COMPRESSIONS, Compression
from eos.pulsar.wire.batch import BatchEncoder, unpack
from eos.pulsar.wire.frames import FrameDecoder
from eos.pulsar.wire.sending import send_frame

LARGE = {"value": 200_000, "key": 20_000}
LONGEST_EVENT_TIME = 2**63 - 1


def bytes_or_null(name: str) -> st.SearchStrategy[bytes | None]:
    # Lengths on both sides of the sizes at which a varint grows.
    lengths = st.sampled_from([0, 1, 127, 128, 16_383, 16_384])
    grown = lengths.map(lambda length: b"g" * min(length, LARGE.get(name, 200)))
    return st.none() | st.binary(max_size=40) | st.text(max_size=20).map(str.encode) | grown


TEXT = st.text(max_size=10) | st.sampled_from(["y" * 127, "y" * 128])
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "value": (pa.binary(), bytes_or_null("value")),
    "key": (pa.binary(), bytes_or_null("key")),
    "ordering_key": (pa.large_binary(), bytes_or_null("ordering_key")),
    "event_time": (pa.int64(), st.none() | st.integers(0, LONGEST_EVENT_TIME)),
    "properties": (
        pa.map_(pa.string(), pa.string()),
        st.none() | st.dictionaries(TEXT, TEXT, max_size=2).map(lambda pairs: list(pairs.items())),
    ),
}


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    names = ["value", *draw(st.sets(st.sampled_from(list(COLUMNS)[1:])))]
    count = draw(st.integers(0, 8))
    columns = {
        name: pa.array(draw(st.lists(COLUMNS[name][1], min_size=count, max_size=count)), COLUMNS[name][0])
        for name in names
    }
    batch = pa.RecordBatch.from_pydict(columns)
    start = draw(st.integers(0, count))
    return batch.slice(start, draw(st.integers(0, count - start)))


def as_sent(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row.get(name) for name in COLUMNS} | {"properties": row.get("properties") or []}


@given(batches(), st.sampled_from(COMPRESSIONS), st.integers(1, 50_000), st.sets(st.integers(1, 20)))
def test_rows_come_back(batch: pa.RecordBatch, compression: Compression, target_bytes: int, cuts: set[int]) -> None:
    seen: list[dict[str, Any]] = []
    ends = [*sorted(cut for cut in cuts if cut < batch.num_rows), batch.num_rows]
    for part, chunk in BatchEncoder(compression, target_bytes=target_bytes).chunks_of_parts(batch, ends):
        assert len(seen) + chunk.messages <= ends[part]
        assert chunk.messages == 1 or chunk.uncompressed_size <= target_bytes
        buffers = send_frame(
            chunk, producer_id=1, producer_name="p", sequence_id=len(seen), publish_time_ms=1, txn=None
        )
        (frame,) = FrameDecoder().feed(b"".join(buffers))
        assert frame.metadata is not None
        assert frame.payload is not None
        for own, data in unpack(frame.metadata, frame.payload):
            key = base64.b64decode(own.partition_key) if own.partition_key_b64_encoded else own.partition_key
            seen.append(
                {
                    "value": None if own.null_value else data,
                    "key": key if own.HasField("partition_key") else None,
                    "ordering_key": own.ordering_key if own.HasField("ordering_key") else None,
                    "event_time": own.event_time if own.HasField("event_time") else None,
                    "properties": [(pair.key, pair.value) for pair in own.properties],
                }
            )
    assert seen == [as_sent(row) for row in batch.to_pylist()]
