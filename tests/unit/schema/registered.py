"""Schemas as the registry gives them, for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eos.pulsar.protocol.schemas import Registered
from tests.protobuf import Messages, proto

TOPIC = "persistent://public/default/t"
GOLDEN: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "schema_values.json").read_text(encoding="utf-8")
)
"""What the Java client's schemas write."""


def golden(asked: str) -> tuple[Registered, bytes]:
    """Return the schema of one of these, and its value."""
    (vector,) = (one for one in GOLDEN if one["asked"] == asked)
    definition = bytes.fromhex(vector["definition"])
    return registered(vector["kind"], definition, vector["properties"]), bytes.fromhex(vector["value"])


def registered(
    kind: str, definition: Any = b"", properties: Mapping[str, str] | None = None, number: int = 0
) -> Registered:
    """Return a schema; what defines it may be given as the JSON that it is."""
    data = definition if isinstance(definition, bytes) else json.dumps(definition).encode()
    return Registered(TOPIC, number.to_bytes(8, "big"), kind, data, properties or {})


def record(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return Avro's JSON of a record."""
    return {"type": "record", "name": "R", "fields": list(fields)} | more


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    """Return Avro's JSON of a field."""
    return {"name": name, "type": kind} | more


def native(
    messages: Messages, enums: Mapping[str, Sequence[str]] | None = None, *, syntax: str = "proto3", number: int = 0
) -> Registered:
    """Return a topic's schema of the first message; `proto` has the arguments."""
    return registered("PROTOBUF_NATIVE", proto(messages, enums, syntax=syntax), number=number)


AIRPORT = {"code": "JFK", "latitude": 40.6}
GOLDEN_FLIGHT = {
    "carrier": "größer",
    "delay": -7,
    "destination": None,
    "distance": 2**40,
    "gate": None,
    "late": True,
    "legs": ["JFK", ""],
    "origin": AIRPORT,
    "seats": [("economy", 120), ("first", 8)],
    "share": 0.5,
    "speed": 0.1,
    "status": "LATE",
    "stops": [AIRPORT],
    "tail": b"\x00\xff",
}
"""The record of the golden vectors, as its AVRO value is read."""
