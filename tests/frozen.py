"""Whether a reader that comes now gets past all that lies on a topic."""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from typing import Any

import httpx
import pulsar as official

from eos.errors import TopicMissing
from eos.pulsar.net.admin import Admin
from tests.clients import official_client
from tests.waiting import PATIENCE_S

PATIENCE_MS = 10_000


def partitions_of(admin_url: str, topic: str) -> list[str]:
    """Return the physical topics of a topic."""
    path = topic.replace("persistent://", "persistent/")
    answer = httpx.get(f"{admin_url}/admin/v2/{path}/partitions", timeout=30, follow_redirects=True)
    count = answer.raise_for_status().json()["partitions"]
    return [f"{topic}-partition-{index}" for index in range(count)] or [topic]


def freed(pulsar: Any, topic: str) -> bool:
    """Tell whether nothing blocks readers of the topic, or soon nothing will: an open transaction ends by its ttl."""
    deadline = time.monotonic() + PATIENCE_S
    with Admin(pulsar.admin_url) as admin:
        for one in partitions_of(pulsar.admin_url, topic):
            with suppress(TopicMissing):  # no broker has loaded it: nothing was sent there
                while admin.buffer(one).held_up:
                    if time.monotonic() > deadline:
                        return False
                    time.sleep(0.2)
    return True


def frozen(pulsar: Any, topic: str) -> list[str]:
    """Return the physical topics on which a fresh official reader does not come to a message that is sent now."""
    with official_client(pulsar.service_url) as client:
        return [one for one in partitions_of(pulsar.admin_url, topic) if not _reads_on(client, one)]


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
