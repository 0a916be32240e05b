"""The entries that a batch read keeps stored: none, unless that is asked for, since they would count as backlog."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from eos.by_name.data_source import PulsarDataSource
from eos.pulsar.net.client import Client
from tests.contract.raw import client

MakeTopic = Callable[..., str]


@pytest.fixture
def ours(pulsar: Any) -> Iterator[Client]:
    with client(pulsar.service_url) as opened:
        yield opened


def durable_subscriptions(pulsar: Any, topic: str) -> dict[str, int]:
    """Return the backlog of each durable subscription, in entries."""
    path = topic.removeprefix("persistent://")
    answer = httpx.get(f"{pulsar.admin_url}/admin/v2/persistent/{path}/stats?getPreciseBacklog=true", timeout=30)
    found = answer.raise_for_status().json()["subscriptions"]
    return {name: int(one["msgBacklog"]) for name, one in found.items() if one["durable"]}


@pytest.mark.parametrize(
    ("options", "backlogs"),
    [
        ({}, []),
        ({"retainwhilereading": "true"}, [10]),
        ({"retainwhilereading": "true", "startingoffsets": "latest-3"}, [3]),
    ],
)
def test_a_batch_read_is_backlog_only_where_that_is_asked_for_and_from_its_start_on(
    pulsar: Any, ours: Client, make_topic: MakeTopic, options: dict[str, str], backlogs: list[int]
) -> None:
    topic = make_topic("retain")
    with ours.producer(topic) as producer:
        sent = [producer.send_record(b"row %d" % number, None) for number in range(10)]
    given = {"service.url": pulsar.service_url, "topic": topic} | options
    if given.get("startingoffsets") == "latest-3":
        given["startingoffsets"] = f'{{"{topic}": "{sent[7].ledger}:{sent[7].entry}"}}'
    source = PulsarDataSource(given)
    reader = source.reader(source.schema())
    (part,) = reader.partitions()
    batches: Any = reader.read(part)
    next(batches)
    assert sorted(durable_subscriptions(pulsar, topic).values()) == backlogs
    list(batches)
    assert durable_subscriptions(pulsar, topic) == {}
