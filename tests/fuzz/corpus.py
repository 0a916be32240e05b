"""Entries of every shape, as the official classes write them or have read them, and values of every kind of schema."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type

from eos.pulsar.protocol.schemas import Registered
from eos.pulsar.wire.encryption import Decryptor
from eos.pulsar.wire.encryption_keys import private_keys
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.frames import FrameDecoder
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata
from eos.schema.decoder import Decoder
from eos.schema.description import described
from eos.schema.encoder import encoder_of
from eos.schema.spark_types import spark_type
from tests.unit.schema.registered import GOLDEN, field, native, record, registered
from tests.unit.schema.test_protobuf_schema import STATUS, WHOLE

VECTORS = Path(__file__).parents[1] / "vectors"
TOPIC = "persistent://public/default/fuzzed"


@dataclass(frozen=True)
class Stored:
    """Entries that belong together: one, or the chunks of a message. Attributes: their name; the entries."""

    name: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Value:
    """A value with its schema. Attributes: its name; the schema; the bytes; what decodes them."""

    name: str
    schema: Registered
    data: bytes
    decoder: Decoder


def entry(metadata: MessageMetadata, payload: bytes, place: int = 0) -> Entry:
    """Return an entry of the topic, with metadata of its own."""
    own = MessageMetadata()
    own.CopyFrom(metadata)
    return Entry(EntryId(3, place), own, payload, len(payload) + own.ByteSize() + 10, TOPIC)


def stored() -> list[Stored]:
    """Return plain, batched, compressed, chunked, encrypted and transactional entries, and a transaction's marker."""
    found: list[Stored] = []
    pieces: list[Entry] = []
    for vector in json.loads((VECTORS / "frames.json").read_text(encoding="utf-8")):
        (frame,) = FrameDecoder().feed(bytes.fromhex(vector["frame"]))
        for sent in frame.entries:
            if vector["name"].startswith("piece"):
                pieces.append(entry(sent.metadata, bytes(sent.packed), len(pieces)))
            else:
                found.append(Stored(vector["name"], (entry(sent.metadata, bytes(sent.packed)),)))
    given = json.loads((VECTORS / "encryption.json").read_text(encoding="utf-8"))
    metadata = MessageMetadata.FromString(bytes.fromhex(given["metadata"]))
    found.append(Stored("encrypted", (entry(metadata, bytes.fromhex(given["payload"])),)))
    marker = MessageMetadata(producer_name="m", sequence_id=1, publish_time=1, txnid_least_bits=1, txnid_most_bits=0)
    found.append(Stored("marker", (entry(marker, b""),)))
    return [*found, Stored("chunks", tuple(pieces))]


def decryptor(folder: Path) -> Decryptor:
    """Return what decrypts the entry of the official client. Args: a folder for its private keys."""
    given = json.loads((VECTORS / "encryption.json").read_text(encoding="utf-8"))
    for name, text in given["private_keys"].items():
        (folder / name).write_text(text)
    return Decryptor(private_keys(tuple((name, str(folder / name)) for name in given["private_keys"])))


def _value(name: str, schema: Registered, data: bytes) -> Value:
    description = described(schema)
    decoder = Decoder(description, description, to_arrow_type(spark_type(description), timezone="UTC"))
    return Value(name, schema, data, decoder)


def values() -> list[Value]:
    """Return a value of each kind of schema."""
    found = [
        _value(one["asked"], registered(one["kind"], bytes.fromhex(one["definition"]), one["properties"]), data)
        for one in GOLDEN
        if (data := bytes.fromhex(one["value"])) is not None
    ]
    lists: Any = record(
        field("counts", {"type": "array", "items": ["null", "long"]}),
        field("by", {"type": "map", "values": {"type": "array", "items": "string"}}),
        field("id", {"type": "fixed", "name": "F", "size": 3}),
        field("wide", ["int", "null", "long"]),
        field("kind", {"type": "enum", "name": "K", "symbols": ["A", "B", "C"]}),
    )
    row = {
        "counts": [1, None, -(2**40)],
        "by": [("k", ["a", "größer"]), ("", [])],
        "id": b"abc",
        "wide": 2**33,
        "kind": "B",
    }
    flight = {
        "carrier": "UA",
        "delay": -7,
        "seats": 5,
        "id": 7,
        "status": ["LATE", "UNKNOWN"],
        "legs": [("JFK", {"share": 0.1, "parts": [0.5]})],
        "at": datetime(2013, 1, 1, tzinfo=UTC),
        "gate": None,
        "remote": True,
    }
    proto3, proto2 = native(WHOLE, STATUS), native(_optional(WHOLE), STATUS, syntax="proto2")
    written = ((registered("AVRO", lists), row), (proto3, flight), (proto2, flight))
    for number, (schema, value) in enumerate(written):
        description = described(schema)
        column = pa.array([value], to_arrow_type(spark_type(description), timezone="UTC"))
        found.append(_value(f"{schema.kind} {number}", schema, encoder_of(description).encode(column)[0].as_py()))
    return found


def _optional(messages: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the lines of proto3 as proto2 has them, where each field says whether it may be left out."""
    words = ("optional ", "repeated ", "map<", "one of ")
    return {
        name: [line if line.startswith(words) else f"optional {line}" for line in lines]
        for name, lines in messages.items()
    }
