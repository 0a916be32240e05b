"""A broker moves the position of a reader while it reads: every message that is still stored comes all the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing

import httpx
import pytest

from eos.pulsar.net.client import Client
from eos.pulsar.wire.message_id import EntryId
from tests.conftest import MakeTopic
from tests.contract.conftest import Running
from tests.waiting import PATIENCE_S

MESSAGES = 300

Move = Callable[[str], None]


@pytest.fixture
def topic(pulsar: Running, ours: Client, make_topic: MakeTopic) -> str:
    """A topic that retains everything: nothing that a policy or a command does to positions deletes a message."""
    name = make_topic("proof")
    retention = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    httpx.post(f"{at(pulsar, name)}/retention", json=retention, timeout=30).raise_for_status()
    with ours.producer(name) as producer:
        for number in range(MESSAGES):
            producer.send_record(b"row %d" % number, None)
    return name


def at(pulsar: Running, topic: str) -> str:
    return f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}"


@pytest.fixture(params=["expire", "skip_all", "skip", "truncate"])
def move(request: pytest.FixtureRequest, pulsar: Running) -> Move:
    """Move the positions of all subscriptions, those of readers too, by each command that a broker has for it."""

    def subscriptions(topic: str) -> list[str]:
        return list(httpx.get(f"{at(pulsar, topic)}/stats", timeout=30).raise_for_status().json()["subscriptions"])

    def run(topic: str) -> None:
        if request.param == "expire":
            httpx.post(f"{at(pulsar, topic)}/all_subscription/expireMessages/1", timeout=30)
        elif request.param == "truncate":
            httpx.delete(f"{at(pulsar, topic)}/truncate", timeout=30).raise_for_status()
        else:
            path = "skip_all" if request.param == "skip_all" else "skip/100"
            for name in subscriptions(topic):
                httpx.post(f"{at(pulsar, topic)}/subscription/{name}/{path}", timeout=30)

    return run


def numbers(ours: Client, topic: str, after_first: Callable[[], None]) -> Iterator[EntryId]:
    """Read the topic from its start, a few messages ahead; do something once the first have come."""
    with closing(ours.entry_reader(topic, None, permits=10)) as reader:
        came = 0
        while came < MESSAGES:
            entries = reader.read(PATIENCE_S)
            assert entries, "nothing came"
            for entry in entries:
                yield entry.id
            if came == 0:
                after_first()
            came += len(entries)


def test_a_position_that_is_moved_while_messages_stay_stored_leaves_none_out(
    ours: Client, topic: str, move: Move
) -> None:
    time.sleep(2.5)  # so that a message is older than a second, as expiring by age asks for
    expected = list(numbers(ours, topic, lambda: None))
    assert len(expected) == MESSAGES
    assert list(numbers(ours, topic, lambda: move(topic))) == expected
