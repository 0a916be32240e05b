"""Whatever a real broker takes as a schema's next version is read with its meaning, or refused by the field's name."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.conftest import MakeTopic
from tests.schema_pairs import TYPES, schema_of, wrongly_read

ACCEPTED_AT_LEAST = {
    ("int", "long"),
    ("int", "date"),
    ("long", "timestamp-millis"),
    ("timestamp-millis", "timestamp-micros"),
    ("bytes", "string"),
    ("decimal", "finer decimal"),
}
"""Pairs that Avro's own rules allow: without them nothing would be tried here."""


@pytest.mark.parametrize("form", ["AVRO", "JSON"])
def test_each_pair_that_the_broker_accepts_is_read_with_its_meaning_or_refused(
    pulsar: Any, make_topic: MakeTopic, form: str
) -> None:
    accepted = set()
    with httpx.Client(base_url=f"{pulsar.admin_url}/admin/v2", timeout=30, follow_redirects=True) as admin:
        for before, kind in TYPES.items():
            topic = make_topic(f"versions-{form}").removeprefix("persistent://")

            def body(schema: Any) -> dict[str, Any]:
                return {"type": form, "schema": json.dumps(schema), "properties": {}}

            admin.post(f"/schemas/{topic}/schema", json=body(schema_of(kind))).raise_for_status()
            admin.put(f"/persistent/{topic}/schemaCompatibilityStrategy", json="BACKWARD").raise_for_status()
            for now, other in TYPES.items():
                asked = admin.post(f"/schemas/{topic}/compatibility", json=body(schema_of(other)))
                if asked.status_code == httpx.codes.ACCEPTED and asked.json()["compatibility"]:
                    accepted.add((before, now))  # this broker answers a pair that it refuses with 500, and the reason
    assert accepted >= ACCEPTED_AT_LEAST
    assert [words for before, now in sorted(accepted) if (words := wrongly_read(form, before, now))] == []
