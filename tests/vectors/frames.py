"""One frame of every kind, made by eos.pulsar.wire from fixed numbers, and how to describe what is in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from eos.config import COMPRESSIONS
from eos.pulsar.wire.batch import FRAME_RESERVE, BatchEncoder, unpack
from eos.pulsar.wire.frames import Frame, encode
from eos.pulsar.wire.pulsar_pb2 import BaseCommand
from eos.pulsar.wire.sending import send_frame, single_message_frame
from eos.pulsar.wire.txn import TxnId
from eos.schema.protobuf_schema import is_repeated

TXN = TxnId(3 << 48, 12)

LATER = {"is_chunk"}
"""Fields that came after the vectors of the commands; frames of their own have them."""

# Rows that have everything, and rows that lack something.
ROWS: dict[str, list[Any]] = {
    "value": [b"first", None, b"", b"x" * 300, "größer 😀".encode()],
    "key": [b"plain", b"\xff\x00\xfe", None, b"", "ключ".encode()],
    "ordering_key": [None, b"\x00\x01", b"", b"o" * 200, b"o"],
    "event_time": [1_790_000_000_000, None, 0, 1, 253_402_300_799_999],
    "properties": [[("a", "b"), ("empty", "")], None, [], [("long", "y" * 200)], [("ключ", "😀")]],
}
TYPES = {
    "value": pa.binary(),
    "key": pa.binary(),
    "ordering_key": pa.binary(),
    "event_time": pa.int64(),
    "properties": pa.map_(pa.string(), pa.string()),
}


def rows(*names: str) -> pa.RecordBatch:
    """Return the rows above with these columns."""
    return pa.RecordBatch.from_pydict({name: pa.array(ROWS[name], TYPES[name]) for name in names})


def commands() -> Iterator[tuple[str, BaseCommand]]:
    """Yield every command of our schema, each with every field filled."""
    for field in BaseCommand.DESCRIPTOR.fields:
        if field.message_type is None:
            continue
        kind = BaseCommand.DESCRIPTOR.enum_types_by_name["Type"].values_by_number[field.number]
        command = BaseCommand(type=kind.name)
        _fill(getattr(command, field.name))
        yield kind.name.lower(), command


def frames() -> dict[str, bytes]:
    """Return one frame of each kind, by name."""
    made = {name: encode(command) for name, command in commands()}
    numbers: dict[str, Any] = {
        "producer_id": 7,
        "producer_name": "p-1",
        "sequence_id": 40,
        "publish_time_ms": 1_790_000_000_123,
    }
    record = {"kind": "marker", "n": "5"}
    made["single"] = b"".join(single_message_frame(b"{}", **numbers, txn=None))
    made["single, in a transaction"] = b"".join(
        single_message_frame(b"{}", **numbers, txn=TXN, key="k", properties=record)
    )
    for compression in COMPRESSIONS:
        (chunk,) = BatchEncoder(compression).chunks(rows(*ROWS))
        made[f"batch, {compression}"] = b"".join(send_frame(chunk, **numbers, txn=TXN))
    (values_only,) = BatchEncoder().chunks(rows("value"))
    made["batch of values"] = b"".join(send_frame(values_only, **numbers, txn=None))
    (one,) = BatchEncoder().chunks(rows("value", "key").slice(0, 1))
    made["batch of one"] = b"".join(send_frame(one, **numbers, txn=TXN))
    timed = rows("value", "key").append_column("deliver_at", pa.array([1_790_000_060_000] * len(ROWS["value"])))
    (delayed,) = BatchEncoder().chunks(timed)
    made["batch to be delivered later"] = b"".join(send_frame(delayed, **numbers, txn=TXN))
    cutting = BatchEncoder(max_message_size=FRAME_RESERVE + 400, cut_above=100)
    pieces = cutting.chunks(timed.set_column(0, "value", large_values()).slice(3, 1))
    for number, piece in enumerate(pieces):
        made[f"piece {number} of a large message"] = b"".join(send_frame(piece, **numbers, txn=TXN))
    return made


def large_values() -> pa.Array:
    """Return values that are too large for an entry of 100 bytes."""
    return pa.array([hashlib.sha512(b"%d" % number).hexdigest() * 2 for number in range(len(ROWS["value"]))])


def describe_frame(frame: Frame) -> dict[str, Any]:
    """Return what is in a frame, in the words of BrokerClasses.java."""
    described: dict[str, Any] = {"command": describe(frame.command)}
    for entry in (one for one in frame.entries if not one.damage):  # without a message the command stands alone
        described["metadata"] = describe(entry.metadata)
        described["messages"] = [
            {"value": value.hex()} | ({"metadata": describe(own)} if own is not entry.metadata else {})
            for own, value in unpack(entry.metadata, entry.packed)
        ]
    return described


def describe(message: Message) -> dict[str, Any]:
    """Return the fields that are set: bytes as hexadecimal, enums as numbers, 64-bit numbers with a sign."""
    described = {}
    for field, value in message.ListFields():
        described[field.name] = [_plain(field, v) for v in value] if is_repeated(field) else _plain(field, value)
    return described


def _plain(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        return describe(value)
    if field.name == "partition_key":
        return value.decode()
    if field.type == FieldDescriptor.TYPE_BYTES:
        return value.hex()
    if field.type == FieldDescriptor.TYPE_UINT64 and value >= 2**63:
        return value - 2**64
    return value


def _fill(message: Message) -> None:
    for field in message.DESCRIPTOR.fields:
        if field.name in LATER:
            continue
        if field.message_type is not None:
            _fill(getattr(message, field.name).add() if is_repeated(field) else getattr(message, field.name))
        elif is_repeated(field):
            getattr(message, field.name).append(_sample(field))
        else:
            setattr(message, field.name, _sample(field))
    message.SetInParent()


def _sample(field: Any) -> Any:
    if field.enum_type is not None:
        return field.enum_type.values[-1].number
    if field.type == FieldDescriptor.TYPE_BOOL:
        return not field.default_value
    if field.type == FieldDescriptor.TYPE_STRING:
        return f"{field.name} of {field.containing_type.name}"
    if field.type == FieldDescriptor.TYPE_BYTES:
        return bytes([field.number, 0, 255])
    if field.type == FieldDescriptor.TYPE_INT64:
        return -field.number
    return (
        1000 + field.number
        if field.type in (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_UINT32)
        else 2**63 - field.number
    )
