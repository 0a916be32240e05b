"""Whether a reader that comes now gets past all that lies on a topic."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pulsar as official

PATIENCE_MS = 10_000


def partitions_of(admin_url: str, topic: str) -> list[str]:
    """Return the physical topics of a topic."""
    path = topic.replace("persistent://", "persistent/")
    answer = httpx.get(f"{admin_url}/admin/v2/{path}/partitions", timeout=30, follow_redirects=True)
    count = answer.raise_for_status().json()["partitions"]
    return [f"{topic}-partition-{index}" for index in range(count)] or [topic]


def frozen(pulsar: Any, topic: str) -> list[str]:
    """Return the physical topics on which a fresh official reader does not come to a message that is sent now."""
    client = official.Client(pulsar.service_url, logger=official.ConsoleLogger(official.LoggerLevel.Error))
    try:
        return [one for one in partitions_of(pulsar.admin_url, topic) if not _reads_on(client, one)]
    finally:
        client.close()


def _reads_on(client: official.Client, topic: str) -> bool:
    last = uuid.uuid4().hex.encode()
    producer = client.create_producer(topic)
    producer.send(last)
    producer.close()
    reader = client.create_reader(topic, official.MessageId.earliest)
    try:
        while reader.read_next(PATIENCE_MS).data() != last:
            pass
    except official.Timeout:
        return False
    finally:
        reader.close()
    return True
