"""Messages that are larger than one entry: their pieces, and what puts them together again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from eos.errors import InvalidInput
from eos.pulsar.wire.batch import FRAME_RESERVE, BatchEncoder, Chunk
from eos.pulsar.wire.chunks import ChunkAssembler
from eos.pulsar.wire.decoding import decode
from eos.pulsar.wire.pulsar_pb2 import CompressionType, MessageMetadata
from eos.pulsar.wire.sending import send_frame
from eos.pulsar.wire.txn import TxnId
from tests.wire import frame_of, stored

MAX = FRAME_RESERVE + 1_000
TXN = TxnId(1 << 48, 9)
ALL: dict[str, Any] = {
    "key": [b"\xff"],
    "ordering_key": [b"order"],
    "event_time": [7],
    "properties": pa.array([[("a", "b")]], pa.map_(pa.string(), pa.string())),
    "deliver_at": [1_790_000_060_000],
}


def frames(chunks: Sequence[Chunk]) -> list[MessageMetadata]:
    """Send the chunks as one producer does; return what the entries' metadata say."""
    found, sequence_id = [], 40
    for chunk in chunks:
        frame = frame_of(chunk, TXN, sequence_id)
        (sent,) = frame.entries
        assert frame.command.send.is_chunk == sent.chunked == sent.metadata.HasField("uuid")
        assert frame.command.send.sequence_id == sequence_id
        assert frame.command.send.num_messages == 1 or not sent.metadata.HasField("uuid")
        sequence_id += chunk.messages
        found.append(sent.metadata)
    return found


def test_a_message_that_is_too_large_is_cut_and_the_others_are_batches() -> None:
    values = [b"a", b"x" * 2_500, b"b", b"c"]
    chunks = list(BatchEncoder(max_message_size=MAX, cut_above=MAX).chunks(pa.record_batch({"value": values})))
    assert [chunk.messages for chunk in chunks] == [1, 0, 0, 1, 2]
    assert [chunk.rows_bytes for chunk in chunks] == [1, 0, 0, 2_500, 2]
    assert b"".join(chunk.payload for chunk in chunks[1:4]) == values[1]
    described = frames(chunks)
    assert [one.sequence_id for one in described] == [40, 41, 41, 41, 42]
    assert [one.HasField("num_messages_in_batch") for one in described] == [True, False, False, False, True]
    assert [(one.uuid, one.chunk_id, one.num_chunks_from_msg, one.total_chunk_msg_size) for one in described[1:4]] == [
        ("p-1-41", number, 3, 2_500) for number in range(3)
    ]
    assert not any(one.HasField("highest_sequence_id") for one in described[1:4])
    assert {one.txnid_least_bits for one in described} == {TXN.least}


def test_each_piece_says_all_of_the_message() -> None:
    rows = pa.record_batch({"value": [b"x" * 2_500]} | ALL)
    chunks = list(BatchEncoder(max_message_size=MAX, cut_above=MAX).chunks(rows))
    assert len(chunks) == 3
    for one in frames(chunks):
        assert (one.partition_key, one.partition_key_b64_encoded) == (b"/w==", True)
        assert (one.ordering_key, one.event_time, one.deliver_at_time) == (b"order", 7, 1_790_000_060_000)
        assert [(pair.key, pair.value) for pair in one.properties] == [("a", "b")]
        assert not one.null_value


def test_no_entry_is_larger_than_the_limit() -> None:
    largest = FRAME_RESERVE + 20_000
    rows = pa.record_batch({"value": [b"x" * 95_000]} | ALL | {"key": [b"k" * 6_000]})
    for chunk in BatchEncoder(max_message_size=largest, cut_above=largest).chunks(rows):
        numbers: dict[str, Any] = {"producer_id": 2**63, "sequence_id": 2**62, "publish_time_ms": 2**62}
        buffers = send_frame(chunk, producer_name="n" * 500, txn=TXN, **numbers)
        assert sum(map(len, buffers)) <= largest


def test_it_is_compressed_before_it_is_cut() -> None:
    rows = pa.record_batch({"value": [b"x" * 1_000_000]})
    (chunk,) = BatchEncoder("zstd", max_message_size=MAX, cut_above=MAX).chunks(rows)
    (described,) = frames([chunk])
    assert (described.compression, described.uncompressed_size) == (CompressionType.ZSTD, 1_000_000)
    assert not described.HasField("uuid"), "it fits into one entry, so it is no chunk"
    assert not described.HasField("num_messages_in_batch")


def test_where_a_limit_was_learned_smaller_messages_are_cut() -> None:
    rows = pa.record_batch({"value": [b"x" * 250, b"y" * 80, b"z" * 10]})
    chunks = list(BatchEncoder(target_bytes=100, cut_above=100).chunks(rows))
    assert [len(chunk.payload) for chunk in chunks] == [100, 100, 50, 87, 17]
    assert all(chunk.can_be_cut for chunk in chunks)


@pytest.mark.parametrize("keyed", [False, True])
def test_pieces_stay_in_their_part_and_in_order(keyed: bool) -> None:
    values = [b"a", b"x" * 1_500, b"b", b"y" * 1_500, b"c"]
    rows = pa.record_batch({"value": values, "key": [b"1", b"1", b"1", b"2", b"2"]})
    encoder = BatchEncoder(max_message_size=MAX, keyed=keyed, cut_above=MAX)
    found = list(encoder.chunks_of_parts(rows, [3, 5]))
    assert [part for part, _ in found] == [0, 0, 0, 0, 1, 1, 1]
    assert read(chunk for _, chunk in found) == values


def read(chunks: Any) -> list[bytes | None]:
    """Put the chunks together as our own reader does."""
    assembler, found, sequence_id = ChunkAssembler(), [], 0
    for place, chunk in enumerate(chunks):
        whole = assembler.take(stored(chunk, place, sequence_id=sequence_id))
        sequence_id += chunk.messages
        if whole is not None:
            found += decode([whole], ["value"]).column("value").to_pylist()
    return found


def test_what_goes_into_each_piece_must_leave_room_for_the_value() -> None:
    encoder = BatchEncoder(max_message_size=MAX, cut_above=MAX)
    with pytest.raises(InvalidInput, match=r"row 8 .*has \d+ bytes of keys and properties, which .* 500 bytes"):
        list(encoder.chunks(pa.record_batch({"value": [b"x" * 2_000], "key": [b"k" * 600]}), first_row=8))
    with pytest.raises(InvalidInput, match=r"row 0 .*has 1\d+ bytes of keys and properties"):
        list(encoder.chunks(pa.record_batch({"value": pa.array([None], pa.binary()), "key": [b"k" * 1_200]})))


def test_a_value_that_no_client_holds_is_refused_by_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eos.pulsar.wire.batch.MAX_BYTES", 5_000)
    encoder = BatchEncoder(max_message_size=MAX, cut_above=MAX)
    with pytest.raises(InvalidInput, match=r"row 1 has a value of 5001 bytes. A message in chunks has at most 5000\."):
        next(encoder.chunks(pa.record_batch({"value": [b"x" * 5_000, b"x" * 5_001]})))
