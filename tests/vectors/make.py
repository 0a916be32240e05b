"""Writes the vectors anew: `python -m tests.vectors.make SERVICE_URL ADMIN_URL`, with a running Pulsar.

It has what the Java programs are asked: keys, values of schemas, and a batch to be encrypted.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pulsar

from eos.pulsar.wire.batch import BatchEncoder
from eos.pulsar.wire.compression import TYPES
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata
from tests.conftest import create_topic
from tests.vectors.broker_classes import ask
from tests.vectors.frames import ROWS, frames, rows

FOLDER = Path(__file__).parent
BOOST_PARTITIONS = (13, 16)


def frame_vectors() -> list[dict[str, Any]]:
    """Return each frame with what the broker's classes read in it."""
    made = frames()
    answers = ask("frame", (frame.hex() for frame in made.values()))
    return [
        {"name": name, "frame": frame.hex(), "read": read}
        for (name, frame), read in zip(made.items(), answers, strict=True)
    ]


def schema_vectors() -> list[dict[str, Any]]:
    """Return each value with what the Java client's schema of its kind writes."""
    return [{"asked": asked} | written for asked, written in zip(VALUES, ask("schema", VALUES), strict=True)]


def hash_vectors() -> list[dict[str, Any]]:
    """Return each key with the Java client's hashes of it."""
    return [
        {"key": key} | hashes
        for key, hashes in zip(keys(), ask("hash", (k.encode().hex() for k in keys())), strict=True)
    ]


def boost_partitions(service_url: str, admin_url: str, partitions: int) -> dict[str, int]:
    """Return the partition that the official Python client sends each key to. For it an empty key is none."""
    client = pulsar.Client(service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    try:
        producer = client.create_producer(create_topic(admin_url, "boost", partitions))
        return {key: producer.send(b"", partition_key=key).partition() for key in keys() if key}
    finally:
        client.close()


def main(service_url: str, admin_url: str) -> None:
    """Write every file of vectors."""
    boost = {str(count): boost_partitions(service_url, admin_url, count) for count in BOOST_PARTITIONS}
    written = {
        "frames": frame_vectors(),
        "key_hashes": hash_vectors(),
        "schema_values": schema_vectors(),
        "encryption": encrypted_by_java(),
        "boost_partitions": boost,
        "ledgers": ask("ledgers"),
    }
    for name, content in written.items():
        text = json.dumps(content, indent=1, ensure_ascii=True) + "\n"
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


def keys() -> list[str]:
    """Return the keys; the same at every call."""
    chosen = [
        "",
        "a",
        "Aa",
        "BB",
        "é",
        "ключ",
        "日本語",
        "😀",
        "a😀b",
        "\x00",
        "\x7f\x80\u07ff\u0800\uffff",
        "\U00010000",
    ]
    chosen += ["".join(chr(97 + (length + i) % 26) for i in range(length)) for length in range(2, 40)]
    draw = random.Random(1)
    letters = "abcxyz0189-_é日😀"
    chosen += ["".join(draw.choices(letters, k=draw.randint(1, 60))) for _ in range(100)]
    return chosen


VALUES = (
    "STRING größer 😀",
    "BYTES 00ff",
    "BOOLEAN true",
    "BOOLEAN false",
    "INT8 -128",
    "INT16 -32768",
    "INT32 -2147483648",
    "INT64 -9223372036854775808",
    "INT64 42",
    "FLOAT -0.5",
    "DOUBLE 0.1",
    "DOUBLE NaN",
    "DATE 2013-01-01T10:15:30.123Z",
    "DATE 1969-12-31T23:59:59.999Z",
    "TIME 36930123",
    "TIMESTAMP 2013-01-01T10:15:30.123Z",
    "INSTANT 2013-01-01T10:15:30.123456789Z",
    "INSTANT 1969-12-31T23:59:59.999999999Z",
    "LOCAL_DATE 1969-12-31",
    "LOCAL_TIME 23:59:59.999999999",
    "LOCAL_DATE_TIME 1969-12-31T23:59:59.999999999",
    "JSON",
    "AVRO",
    "TICKET",
    "KEY_VALUE INLINE",
    "KEY_VALUE SEPARATED",
    "NULL_KEY",
)
"""A kind, and a value of it; without one, the program's own record."""


def encrypted_by_java() -> dict[str, Any]:
    """Return the keys, and what the class of the Java client makes of the rows of `frames`."""
    from tests.encryption import key_pair  # the other vectors need no library for it

    (chunk,) = BatchEncoder("zstd").chunks(rows(*ROWS))
    metadata = MessageMetadata(
        producer_name="p-1",
        sequence_id=40,
        publish_time=1_790_000_000_123,
        compression=TYPES[chunk.compression],
        uncompressed_size=chunk.uncompressed_size,
        num_messages_in_batch=chunk.messages,
    )
    pairs = {name: key_pair() for name in ("first", "second")}
    asked = {
        "keys": {name: pair.public for name, pair in pairs.items()},
        "metadata": metadata.SerializeToString().hex(),
        "payload": bytes(chunk.payload).hex(),
    }
    (written,) = ask("encrypt", [json.dumps(asked)])
    return {"private_keys": {name: pair.private for name, pair in pairs.items()}, **written}


if __name__ == "__main__":
    main(*sys.argv[1:])
