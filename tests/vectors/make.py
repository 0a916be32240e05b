"""Writes the vectors anew: `python -m tests.vectors.make SERVICE_URL ADMIN_URL`, with a running Pulsar."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pulsar

from tests.conftest import create_topic
from tests.vectors.broker_classes import ask
from tests.vectors.encryption import encrypted_by_java
from tests.vectors.frames import frames
from tests.vectors.keys import keys
from tests.vectors.schema_values import VALUES

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


if __name__ == "__main__":
    main(*sys.argv[1:])
