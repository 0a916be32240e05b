"""A durable cursor against a scripted broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eos.pulsar.net.client import Client
from eos.pulsar.net.subscription import Initial
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import CommandSubscribe
from tests.unit.pulsar.net.fake_broker import FakeBroker


@pytest.fixture
def client(broker: FakeBroker) -> Iterator[Client]:
    with broker.client() as opened:
        yield opened


@pytest.mark.parametrize(
    ("initial", "position", "acknowledged"),
    [
        ("earliest", CommandSubscribe.InitialPosition.Earliest, []),
        ("latest", CommandSubscribe.InitialPosition.Latest, []),
        (EntryId(3, 4), CommandSubscribe.InitialPosition.Earliest, [EntryId(3, 4)]),
    ],
)
def test_where_a_new_one_begins(
    broker: FakeBroker, client: Client, initial: Initial, position: int, acknowledged: list[EntryId]
) -> None:
    with client.subscription("t", "keep", initial=initial):
        (subscribe,) = (command.subscribe for command in broker.commands(Type.SUBSCRIBE))
        assert (subscribe.subscription, subscribe.durable) == ("keep", True)
        assert subscribe.initial_position == position
        acks = [command.ack.message_id[0] for command in broker.commands(Type.ACK)]
        assert [EntryId.read(one) for one in acks] == acknowledged
    assert len(broker.commands(Type.CLOSE_CONSUMER)) == 1
    assert not broker.commands(Type.UNSUBSCRIBE)


def test_an_entry_is_acknowledged_whole(broker: FakeBroker, client: Client) -> None:
    with client.subscription("t", "keep", initial="earliest") as cursor:
        cursor.acknowledge(EntryId(3, 4))
    (ack,) = (command.ack for command in broker.commands(Type.ACK))
    assert ack.ack_type == ack.AckType.Cumulative
    assert not ack.message_id[0].HasField("batch_index")
    assert not ack.message_id[0].ack_set


def test_it_can_be_deleted(broker: FakeBroker, client: Client) -> None:
    client.subscription("t", "keep", initial="earliest").delete()
    assert len(broker.commands(Type.UNSUBSCRIBE)) == 1
