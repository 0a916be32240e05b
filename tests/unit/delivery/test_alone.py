"""One driver at a time: what it waits for, how long, and what it says of who is in the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from eos.delivery.alone import Alone
from eos.errors import NotCommitted, Refused
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.pulsar_pb2 import ServerError
from tests.unit.pulsar.net.fake_broker import FakeBroker, answer_well, first_then_well, refusing
from tests.waiting import until

TOPIC = "persistent://public/default/t"
NAME = "eos-deduplicated-flights.owner"


class FakeAdmin:
    """Tells who is connected, time after time."""

    def __init__(self) -> None:
        self.connected: list[list[str]] = []

    def producers(self, topic: str) -> list[str]:
        return self.connected.pop(0) if self.connected else []


@pytest.fixture
def admin() -> FakeAdmin:
    return FakeAdmin()


@pytest.fixture
def client(broker: FakeBroker) -> Iterator[Client]:
    with broker.client() as made:
        yield made


@pytest.fixture
def alone(client: Client, admin: FakeAdmin) -> Callable[..., Alone]:
    def make(patience_s: float = 60.0, *, stopped: bool = False) -> Alone:
        given: Any = admin
        return Alone(client, given, "flights", patience_s, lambda _: None, lambda: stopped)

    return make


def test_a_name_is_held_by_a_producer_that_stays(alone: Callable[..., Alone], broker: FakeBroker) -> None:
    held = alone()
    for _ in range(3):
        held.hold(TOPIC)
    assert [command.producer.producer_name for command in broker.commands(Type.PRODUCER)] == [NAME]
    held.release()
    until(lambda: len(broker.commands(Type.CLOSE_PRODUCER)) == 1)
    held.hold(TOPIC)
    assert len(broker.commands(Type.PRODUCER)) == 2


def test_the_name_is_held_on_the_topic_of_the_batch_in_hand(alone: Callable[..., Alone], broker: FakeBroker) -> None:
    """A second driver that began with a batch to another topic would not meet the first one."""
    held = alone()
    for topic in (TOPIC, f"{TOPIC}2", f"{TOPIC}2", TOPIC):
        held.hold(topic)
    assert [command.producer.topic for command in broker.commands(Type.PRODUCER)] == [TOPIC, f"{TOPIC}2", TOPIC]
    until(lambda: len(broker.commands(Type.CLOSE_PRODUCER)) == 2)
    broker.handlers[Type.PRODUCER] = refusing(ServerError.ProducerBusy, "already connected")
    with pytest.raises(NotCommitted, match="another driver is at work"):
        alone(0.0).hold(f"{TOPIC}2")
    broker.handlers[Type.PRODUCER] = answer_well


def test_a_name_that_was_lost_with_its_connection_is_asked_for_again(
    alone: Callable[..., Alone], broker: FakeBroker
) -> None:
    held = alone()
    held.hold(TOPIC)
    broker.cut_all()
    until(lambda: held._held is not None and not held._held.is_idle)
    held.hold(TOPIC)
    assert len(broker.commands(Type.PRODUCER)) == 2


def test_the_end_of_another_driver_is_awaited_and_one_that_stays_is_told(
    alone: Callable[..., Alone], broker: FakeBroker
) -> None:
    broker.handlers[Type.PRODUCER] = first_then_well(refusing(ServerError.ProducerBusy, "already connected"))
    alone().hold(TOPIC)
    broker.handlers[Type.PRODUCER] = refusing(ServerError.ProducerBusy, "already connected")
    with pytest.raises(
        NotCommitted, match=rf'another driver is at work with the sink "flights".* after 0 s the name {NAME} is held'
    ):
        alone(0.0).hold(TOPIC)
    with pytest.raises(NotCommitted):
        alone(stopped=True).hold(TOPIC)
    broker.handlers[Type.PRODUCER] = refusing(ServerError.AuthorizationError)
    with pytest.raises(Refused, match="AuthorizationError"):
        alone().hold(TOPIC)
    broker.handlers[Type.PRODUCER] = refusing(ServerError.ProducerBusy, "Topic 't' reached max producers limit")
    with pytest.raises(Refused, match='the driver holds one more on the first partition with guarantee="deduplicated"'):
        alone().hold(TOPIC)
    broker.handlers[Type.PRODUCER] = answer_well


def test_tasks_of_an_earlier_try_are_awaited_on_all_topics(alone: Callable[..., Alone], admin: FakeAdmin) -> None:
    """One that writes under a name that the replay has no use for would not be noticed later."""
    late = ["eos-deduplicated-flights.0.9 (/127.0.0.1:1)"]
    admin.connected = [[], late, late, [], ["somebody (/127.0.0.1:2)"], [f"{NAME} (/127.0.0.1:3)"]]
    alone().await_writers([TOPIC, "u"])
    assert admin.connected == []
    admin.connected = [late, late]
    with pytest.raises(NotCommitted, match=r"2 tasks of an earlier try still write, as eos-deduplicated-flights\.0\.9"):
        alone(0.0).await_writers([TOPIC, "u"])
