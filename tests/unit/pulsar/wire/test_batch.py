"""Batches, read back through protobuf one message after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eos.config import COMPRESSIONS, Compression
from eos.errors import DamagedFrame, InvalidInput
from eos.pulsar.wire.batch import FRAME_RESERVE, BatchEncoder, Chunk, unpack
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata, SingleMessageMetadata
from eos.pulsar.wire.sending import send_frame
from eos.pulsar.wire.txn import TxnId
from tests.vectors.frames import ROWS, TYPES, rows
from tests.wire import as_row, frame_of, stored

TEXT_MAP = pa.map_(pa.string(), pa.string())


def read(chunks: list[Chunk]) -> list[dict[str, Any]]:
    """Return the messages of all chunks, with what a consumer would see of them."""
    return [as_row(*message) for one in map(stored, chunks) for message in unpack(one.metadata, one.packed)]


def expected(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return the rows as plain objects, in the form of `as_row`."""
    empty = {"key": None, "ordering_key": None, "event_time": None, "properties": None}
    wanted = []
    for row in batch.select([name for name in TYPES if name in batch.schema.names]).to_pylist():
        plain = {name: value.encode() if isinstance(value, str) else value for name, value in (empty | row).items()}
        wanted.append(plain | {"properties": list(plain["properties"] or [])})
    return wanted


@pytest.mark.parametrize(
    "names",
    [["value"], *[["value", name] for name in list(ROWS)[1:]], list(ROWS)],
    ids=lambda names: "+".join(names),
)
def test_rows_come_back(names: list[str]) -> None:
    batch = rows(*names)
    assert read(list(BatchEncoder().chunks(batch))) == expected(batch)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_rows_come_back_from_each_compression(compression: Compression) -> None:
    batch = rows(*ROWS)
    (chunk,) = BatchEncoder(compression).chunks(batch)
    assert chunk.compression == compression
    assert read([chunk]) == expected(batch)


def test_auto_decides_for_each_chunk() -> None:
    """The topics of a micro-batch share an encoder, and needn't be alike."""
    noise, text = np.random.default_rng(0).bytes(2_000), b"again " * 300
    batch = pa.RecordBatch.from_pydict({"value": [noise, text, noise, text]})
    chunks = [chunk for _, chunk in BatchEncoder("auto").chunks_of_parts(batch, [1, 2, 4])]
    assert [chunk.compression for chunk in chunks] == ["none", "zstd", "zstd"]
    assert [row["value"] for row in read(chunks)] == [noise, text, noise, text]


@pytest.mark.parametrize("start", range(len(ROWS["value"]) + 1))
def test_every_slice_comes_back(start: int) -> None:
    batch = rows(*ROWS)
    for length in range(batch.num_rows - start + 1):
        part = batch.slice(start, length)
        assert read(list(BatchEncoder().chunks(part))) == expected(part)


@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.large_binary(), pa.string(), pa.large_string(), pa.string_view()], ids=str
)
@pytest.mark.parametrize("other", [pa.binary(), pa.large_binary()], ids=str)
def test_each_type_of_text_and_bytes_will_do(kind: pa.DataType, other: pa.DataType) -> None:
    words = ["a", None, "größer", ""]
    batch = pa.RecordBatch.from_pydict(
        {
            "value": pa.array(words, kind),
            "key": pa.array(words, other),
            "ordering_key": pa.array(words, kind),
            "properties": pa.array([[("k", "v")], None, [], [("", "")]], TEXT_MAP),
        }
    ).slice(1)
    assert read(list(BatchEncoder().chunks(batch))) == expected(batch)


def test_columns_of_nulls_say_nothing_but_the_value_says_so() -> None:
    nothing = pa.array([None, None])
    for kinds in (TYPES, dict.fromkeys(TYPES, pa.null()) | {"properties": TEXT_MAP}):
        batch = pa.RecordBatch.from_pydict({name: nothing.cast(kind) for name, kind in kinds.items()})
        assert read(list(BatchEncoder().chunks(batch))) == expected(batch)


def test_no_rows_make_no_chunk() -> None:
    assert list(BatchEncoder().chunks(rows(*ROWS).slice(0, 0))) == []


def test_entries_hidden_under_a_null_map_stay_hidden() -> None:
    entries = pa.StructArray.from_arrays(
        [pa.array(["a", "b", "c"]), pa.array(["1", "2", "3"])],
        fields=[pa.field("key", pa.string(), nullable=False), pa.field("value", pa.string())],
    )
    validity = pa.py_buffer(b"\x05")  # rows 0 and 2
    offsets = pa.py_buffer(np.array([0, 1, 2, 3], dtype=np.int32))
    maps = pa.Array.from_buffers(TEXT_MAP, 3, [validity, offsets], children=[entries])
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"x"] * 3), "properties": maps})
    assert [row["properties"] for row in read(list(BatchEncoder().chunks(batch)))] == [[("a", "1")], [], [("c", "3")]]


def test_bytes_hidden_under_a_null_stay_hidden() -> None:
    offsets = pa.py_buffer(np.array([0, 3, 6, 9], dtype=np.int32))
    hidden = pa.Array.from_buffers(pa.binary(), 3, [pa.py_buffer(b"\x05"), offsets, pa.py_buffer(b"abcSECdef")])
    batch = pa.RecordBatch.from_pydict({"value": hidden, "key": hidden, "ordering_key": hidden})
    assert read(list(BatchEncoder().chunks(batch))) == expected(batch)
    (chunk,) = BatchEncoder().chunks(batch)
    assert b"SEC" not in bytes(chunk.payload)


def test_a_chunk_counts_messages_and_the_rows_own_bytes() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "value": [b"12345", None],
            "key": [b"k", None],
            "ordering_key": [None, b"oo"],
            "properties": pa.array([[("name", "text")], None], TEXT_MAP),
        }
    )
    (chunk,) = BatchEncoder().chunks(batch)
    assert (chunk.messages, chunk.rows_bytes) == (2, 5 + 1 + 2 + 8)
    assert chunk.uncompressed_size == len(chunk.payload)


def test_what_compression_would_lengthen_is_sent_as_it_is() -> None:
    noise = np.random.default_rng(0).bytes(200)
    (chunk,) = BatchEncoder("zstd").chunks(pa.RecordBatch.from_pydict({"value": [noise]}))
    assert chunk.compression == "none"
    assert frame_of(chunk).entries[0].metadata == MessageMetadata(
        producer_name="p-1", sequence_id=0, highest_sequence_id=0, publish_time=1_000, num_messages_in_batch=1
    )


def test_chunks_are_filled_to_the_target_and_keep_the_order() -> None:
    values = [bytes([65 + i % 26]) * (i % 50) for i in range(1_000)]
    chunks = list(BatchEncoder(target_bytes=1_000).chunks(pa.RecordBatch.from_pydict({"value": values})))
    assert [row["value"] for row in read(chunks)] == values
    assert all(900 < chunk.uncompressed_size <= 1_000 for chunk in chunks[:-1])


@pytest.mark.parametrize("target_bytes", [1, 100, 1_000, 1 << 20])
def test_no_chunk_has_rows_of_two_parts_however_small_they_are(target_bytes: int) -> None:
    batch = rows(*ROWS)
    ends = [1, 2, batch.num_rows]
    found: list[list[Chunk]] = [[] for _ in ends]
    for part, chunk in BatchEncoder(target_bytes=target_bytes).chunks_of_parts(batch, ends):
        found[part].append(chunk)
    for start, end, chunks in zip([0, *ends], ends, found, strict=False):
        assert read(chunks) == expected(batch.slice(start, end - start))


def test_a_row_that_is_too_large_is_refused_before_any_part_is_sent() -> None:
    encoder = BatchEncoder(max_message_size=FRAME_RESERVE + 100)
    batch = pa.RecordBatch.from_pydict({"value": [b"small", b"x" * 200]})
    with pytest.raises(InvalidInput, match="row 1 makes a message of"):
        next(encoder.chunks_of_parts(batch, [1, 2]))


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ({"key": b"k"}, {"partition_key": b"k", "partition_key_b64_encoded": False}),
        ({"key": b"\xff"}, {"partition_key": b"/w==", "partition_key_b64_encoded": True}),
        ({"key": b"k", "ordering_key": b"o"}, {"ordering_key": b"o"}),
        ({"ordering_key": b""}, {"ordering_key": b""}),
        ({}, {}),
    ],
)
def test_the_frame_names_the_key_that_its_rows_share(row: dict[str, bytes], named: dict[str, Any]) -> None:
    columns = {name: pa.array([row.get(name)], pa.binary()) for name in ("key", "ordering_key")}
    batch = pa.record_batch({"value": ["v"], **columns})
    (keyed,) = BatchEncoder(keyed=True).chunks(batch)
    (plain,) = BatchEncoder().chunks(batch)

    def shown(chunk: Chunk) -> dict[str, Any]:
        metadata = frame_of(chunk).entries[0].metadata
        fields = {field.name: value for field, value in metadata.ListFields()}
        return {name: fields[name] for name in fields if "key" in name}

    assert (shown(keyed), shown(plain)) == (named, {})
    assert read([keyed]) == read([plain])


def test_a_key_that_the_frame_names_counts_for_its_size() -> None:
    limit = 20_000
    rows = pa.record_batch({"value": ["v" * 1_000] * 4, "key": ["k" * 5_000] * 4})
    encoder = BatchEncoder(max_message_size=limit, keyed=True)
    chunks = list(encoder.chunks(rows))
    assert [chunk.messages for chunk in chunks] == [1, 1, 1, 1]
    assert [chunk.messages for chunk in BatchEncoder(max_message_size=limit).chunks(rows)] == [2, 2]
    with pytest.raises(InvalidInput, match=r"row 0 .*makes a message of 160\d\d bytes"):
        list(encoder.chunks(pa.record_batch({"value": ["v"], "key": ["k" * 8_000]})))


def test_a_message_above_the_target_gets_a_chunk_of_its_own() -> None:
    values = [b"a", b"b" * 500, b"c", b"d"]
    chunks = list(BatchEncoder(target_bytes=100).chunks(pa.RecordBatch.from_pydict({"value": values})))
    assert [chunk.messages for chunk in chunks] == [1, 1, 2]


def test_a_message_up_to_the_limit_fits_and_one_byte_more_does_not() -> None:
    encoder = BatchEncoder(max_message_size=FRAME_RESERVE + 1_000)
    header = 4 + 1 + 2  # size, tag and a padded varint of two bytes
    (chunk,) = encoder.chunks(pa.RecordBatch.from_pydict({"value": [b"v" * (1_000 - header)]}))
    assert chunk.uncompressed_size == 1_000
    with pytest.raises(
        InvalidInput,
        match=r"row 0 makes a message of 1001 bytes. The broker's limit leaves 1000 bytes .* maxMessageSize",
    ):
        next(encoder.chunks(pa.RecordBatch.from_pydict({"value": [b"v" * (1_001 - header)]})))


def test_the_whole_entry_stays_below_the_maximum_message_size() -> None:
    largest = 20_000
    batch = pa.RecordBatch.from_pydict({"value": [b"v" * size for size in range(1, 400)] * 3})
    for chunk in BatchEncoder(max_message_size=largest).chunks(batch):
        name = "n" * 1_000
        txn = TxnId(2**63, 2**63)
        buffers = send_frame(
            chunk, producer_id=2**63, producer_name=name, sequence_id=2**62, publish_time_ms=2**62, txn=txn
        )
        assert sum(len(part) for part in buffers) <= largest


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"key": [b"k"]}, 'there is no column "value"'),
        ({"value": [1]}, 'column "value" is int64. It must be text or binary'),
        ({"value": [b""], "key": [1.5]}, 'column "key" is double'),
        ({"value": [b""], "ordering_key": [True]}, 'column "ordering_key" is bool'),
        ({"value": [b""], "event_time": [1.0]}, 'column "event_time" is double. It must be int64'),
        ({"value": [b""], "properties": ["x"]}, 'column "properties" is string. It must be a map'),
    ],
)
def test_a_column_of_another_type_is_named(columns: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        next(BatchEncoder().chunks(pa.RecordBatch.from_pydict(columns)))


def as_spark_lets_them_be(rows: list[Any]) -> pa.Array:
    """Return properties that Arrow calls text, whatever their bytes are."""
    maps = pa.array(rows, pa.map_(pa.binary(), pa.binary()))
    entries = pa.StructArray.from_arrays(
        [maps.keys.view(pa.string()), maps.items.view(pa.string())], fields=[TEXT_MAP.key_field, TEXT_MAP.item_field]
    )
    return pa.Array.from_buffers(TEXT_MAP, len(maps), maps.buffers()[:2], maps.null_count, 0, [entries])


BAD_ROWS: dict[str, tuple[dict[str, Any], str]] = {
    "too large": ({"value": [b"", b"", b"x" * 5_000, b""]}, "makes a message of 5007 bytes"),
    "before 1970": ({"value": [b""] * 4, "event_time": [0, None, -1, 5]}, "has the event time -1"),
    "half a property": (
        {"value": [b""] * 4, "properties": pa.array([None, [("a", "b")], [("c", "d"), ("e", None)], []], TEXT_MAP)},
        "has no value for the property 'e'",
    ),
    "a property that isn't text": (
        {
            "value": [b""] * 4,
            "properties": as_spark_lets_them_be([None, [("a", b"b")], [("c", b"d"), ("e", b"\xff")], []]),
        },
        r"has a property whose value is not valid UTF-8, b'\\xff'",
    ),
    "half a property whose name isn't text": (
        {
            "value": [b""] * 4,
            "properties": as_spark_lets_them_be([None, [("a", b"b")], [(b"\xff", None)], []]),
        },
        r"has no value for the property '\\xff'",
    ),
    "a row whose key isn't text": (
        {
            "value": [b""] * 4,
            "key": pa.array([b"a", b"b", b"k\xff", None], pa.binary()).view(pa.string()),
            "event_time": [0, None, -1, 5],
        },
        r'\(key "k\\xff"\) has the event time -1',
    ),
}


@pytest.mark.parametrize("bad", BAD_ROWS)
def test_a_bad_row_is_named_before_anything_is_yielded(bad: str) -> None:
    columns, message = BAD_ROWS[bad]
    encoder = BatchEncoder(max_message_size=FRAME_RESERVE + 1_000, target_bytes=1)
    batch = pa.RecordBatch.from_pydict(columns)
    with pytest.raises(InvalidInput, match=f"row 102.*{message}"):
        next(encoder.chunks(batch, first_row=100))
    with pytest.raises(InvalidInput, match=f"row 9.*{message}"):
        next(encoder.chunks(batch.append_column("row", pa.array([3, 5, 9, 11]))))
    with pytest.raises(InvalidInput, match=f"row 1.*{message}"):
        next(encoder.chunks(batch.slice(1)))


def test_a_limit_without_room_is_refused() -> None:
    with pytest.raises(InvalidInput, match="leaves no room"):
        BatchEncoder(max_message_size=FRAME_RESERVE)


@pytest.mark.parametrize("cut", [1, 3, 5, 8])
def test_a_batch_that_ends_early_is_refused(cut: int) -> None:
    (chunk,) = BatchEncoder().chunks(pa.RecordBatch.from_pydict({"value": [b"abc"]}))
    with pytest.raises(DamagedFrame):
        list(unpack(MessageMetadata(num_messages_in_batch=1), bytes(chunk.payload)[:-cut]))


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_rows_that_stand_alone_are_each_an_entry_without_a_batch(compression: Compression) -> None:
    encoder = BatchEncoder(compression, alone=True)
    made = rows()
    chunks = list(encoder.chunks(made))
    frames = [frame_of(chunk) for chunk in chunks]
    assert [one.messages for one in chunks] == [1] * made.num_rows
    for frame in frames:
        assert not frame.entries[0].metadata.HasField("num_messages_in_batch")
        assert not frame.entries[0].metadata.HasField("uuid"), "it is no chunk"
    assert read(chunks) == read(list(BatchEncoder().chunks(made)))
    assert sum(one.rows_bytes for one in chunks) == sum(one.rows_bytes for one in BatchEncoder().chunks(made))


@pytest.mark.parametrize("named", [0, 100])
def test_a_row_that_stands_alone_may_fill_an_entry_and_not_more(named: int) -> None:
    """It needs no more room than in a batch, so what is taken there is taken here."""
    limit = 10_000 - FRAME_RESERVE
    for size in range(limit - 2 * named - 60, limit + 1):
        made = pa.record_batch(
            {
                "value": pa.array([b"v" * size], pa.binary()),
                "key": pa.array([b"\xff" * named], pa.binary()),
                "ordering_key": pa.array([b"o"], pa.binary()),
            }
        )
        try:
            list(BatchEncoder(max_message_size=10_000).chunks(made))
        except InvalidInput:
            with pytest.raises(InvalidInput, match="makes a message of"):
                list(BatchEncoder(max_message_size=10_000, alone=True).chunks(made))
            continue
        (chunk,) = BatchEncoder(max_message_size=10_000, alone=True).chunks(made)
        frame = frame_of(chunk)
        assert frame.entries[0].metadata.ByteSize() + len(chunk.payload) < 10_000


@pytest.mark.parametrize("count", [-1, -(2**31)])
def test_a_negative_number_of_messages_is_refused(count: int) -> None:
    with pytest.raises(DamagedFrame, match=f"a batch of {count} messages"):
        list(unpack(MessageMetadata(num_messages_in_batch=count), b""))


def test_a_value_of_a_negative_size_is_refused() -> None:
    described = SingleMessageMetadata(payload_size=-14).SerializeToString()  # it would lead back to its own beginning
    with pytest.raises(DamagedFrame, match="ends inside a message"):
        list(unpack(MessageMetadata(num_messages_in_batch=2**31 - 1), len(described).to_bytes(4, "big") + described))
