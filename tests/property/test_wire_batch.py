"""Any rows, cut and compressed in any way, come back as they were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, get_args

import pyarrow as pa
from hypothesis import event, given
from hypothesis import strategies as st

from eos.config import COMPRESSION_OPTIONS, COMPRESSIONS, Compression, CompressionOption
from eos.errors import DamagedFrame, InvalidInput
from eos.pulsar.wire.batch import FRAME_RESERVE, BatchEncoder, Chunk, unpack
from eos.pulsar.wire.chunks import ChunkAssembler
from eos.pulsar.wire.decoding import Column, decode
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.frames import Frame, FrameDecoder
from eos.pulsar.wire.pulsar_pb2 import BaseCommand
from tests.vectors.frames import frames
from tests.wire import as_row, received, stored

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


def read(chunks: Iterable[Chunk], max_message_size: int) -> list[dict[str, Any]]:
    """Send the chunks as one producer does, and read them as the source does; no entry may be larger than the limit."""
    assembler, whole, sequence_id = ChunkAssembler(), [], 0
    for place, chunk in enumerate(chunks):
        entry = stored(chunk, place, sequence_id=sequence_id)
        assert len(received(entry)) <= max_message_size
        sequence_id += chunk.messages
        taken = assembler.take(entry)
        whole += [] if taken is None else [taken]
    rows: list[dict[str, Any]] = decode(whole, list(get_args(Column))).select(list(COLUMNS)).to_pylist()
    return rows


@given(batches(), st.sampled_from(COMPRESSION_OPTIONS), st.integers(500, 20_000), st.integers(1, 30_000), st.booleans())
def test_messages_that_are_too_large_come_back_whole(
    batch: pa.RecordBatch, compression: CompressionOption, room: int, cut_above: int, keyed: bool
) -> None:
    largest = FRAME_RESERVE + room
    encoder = BatchEncoder(compression, largest, keyed=keyed, cut_above=cut_above)
    sizes = [len(row["value"] or b"") for row in batch.to_pylist()]
    ends = range(1, batch.num_rows + 1) if keyed else [batch.num_rows]
    try:
        chunks = [chunk for _, chunk in encoder.chunks_of_parts(batch, ends)]
    except InvalidInput:  # too much of keys and properties for each piece
        assert max(len(str(row)) for row in batch.to_pylist()) > room // 4
        return
    event("in pieces" if any(chunk.piece is not None for chunk in chunks) else "in batches alone")
    assert sum(chunk.messages for chunk in chunks) == batch.num_rows
    assert sum(chunk.rows_bytes for chunk in chunks) >= sum(sizes)
    assert read(chunks, largest) == [as_sent(row) for row in batch.to_pylist()]


def as_sent(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row.get(name) for name in COLUMNS} | {"properties": row.get("properties") or []}


@given(batches(), st.sampled_from(COMPRESSIONS), st.integers(1, 50_000), st.sets(st.integers(1, 20)))
def test_rows_come_back(batch: pa.RecordBatch, compression: Compression, target_bytes: int, cuts: set[int]) -> None:
    seen: list[dict[str, Any]] = []
    ends = [*sorted(cut for cut in cuts if cut < batch.num_rows), batch.num_rows]
    for part, chunk in BatchEncoder(compression, target_bytes=target_bytes).chunks_of_parts(batch, ends):
        assert len(seen) + chunk.messages <= ends[part]
        assert chunk.messages == 1 or chunk.uncompressed_size <= target_bytes
        one = stored(chunk, sequence_id=len(seen))
        seen += [as_row(*message) for message in unpack(one.metadata, one.packed)]
    assert seen == [as_sent(row) for row in batch.to_pylist()]


# ---- frames


FRAMES = list(frames().values())
MESSAGE = frames()["message"]


@given(st.lists(st.one_of(st.sampled_from(FRAMES), st.just(MESSAGE)), max_size=6), st.sampled_from([1, 6]), st.data())
def test_cuts_change_nothing(chosen: list[bytes], times: int, data: st.DataObject) -> None:
    chosen *= times  # with many frames the decoder looks for those of one form
    stream = b"".join(chosen)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    decoder = FrameDecoder()
    received: list[Frame] = []
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        received += decoder.feed(stream[start:stop])
    assert list(parts(received)) == list(parts(FrameDecoder().feed(frame)[0] for frame in chosen))


def parts(received: Iterable[Frame]) -> Iterator[BaseCommand | Entry]:
    """Yield commands and entries, one after the other: messages in a row come as one frame, or cut into several."""
    for frame in received:
        if frame.entries:
            yield from frame.entries
        else:
            yield frame.command


@given(st.binary(max_size=200))
def test_noise_is_read_or_refused_and_nothing_else(noise: bytes) -> None:
    framed = len(noise).to_bytes(4, "big") + noise
    try:
        received = FrameDecoder().feed(framed)
    except DamagedFrame:
        return
    assert len(received) == 1
