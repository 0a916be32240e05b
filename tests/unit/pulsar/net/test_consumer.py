"""Readers and holds against a scripted broker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eos.errors import (
    ConnectionLost,
    Refused,
    TopicMissing,
    Unanswered,
)
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.frames import Frame
from eos.pulsar.wire.message_id import EntryId, MessageId
from eos.pulsar.wire.pulsar_pb2 import BaseCommand, CommandCloseConsumer, ServerError
from tests.unit.pulsar.net.fake_broker import (
    FakeBroker,
    Handler,
    Session,
    answer_well,
    cut,
    first_then_well,
    refusing,
    silent,
)
from tests.waiting import in_a_hurry, until


def test_a_hold_acknowledges_and_waits_for_the_answer(broker: FakeBroker, client: Client) -> None:
    hold = client.hold("t", "keep")
    hold.acknowledge(MessageId(3, 4))
    (ack,) = broker.commands(Type.ACK)
    assert ack.ack.message_id[0].entry_id == 4
    broker.handlers[Type.ACK] = silent
    with in_a_hurry(client), pytest.raises(Unanswered, match="acknowledge on"):
        hold.acknowledge(MessageId(3, 5))
    hold.close()
    hold.close()
    assert len(broker.commands(Type.CLOSE_CONSUMER)) == 1


def test_whether_a_subscription_is_held_is_asked_by_joining_it_alone(broker: FakeBroker, client: Client) -> None:
    assert not client.is_held("t", "keep")
    assert len(broker.commands(Type.CLOSE_CONSUMER)) == 1, "it leaves again"
    said = "Subscription is of different type. Active subscription type of 'Failover' is different"
    broker.handlers[Type.SUBSCRIBE] = lambda session, frame: session.refuse(
        frame.command, ServerError.ConsumerBusy, said
    )
    assert client.is_held("t", "keep")
    broker.handlers[Type.SUBSCRIBE] = lambda session, frame: session.refuse(
        frame.command, ServerError.ConsumerBusy, "Topic reached max consumers limit"
    )
    with pytest.raises(Refused, match="max consumers limit"):
        client.is_held("t", "keep")


def test_a_hold_joins_again_after_a_lost_connection(broker: FakeBroker, client: Client) -> None:
    hold = client.hold("t", "keep")
    broker.handlers[Type.ACK] = first_then_well(cut)
    with pytest.raises(ConnectionLost):
        hold.acknowledge(MessageId(3, 4))
    hold.acknowledge(MessageId(3, 4))
    assert len(broker.commands(Type.SUBSCRIBE)) == 2
    hold.delete()
    assert len(broker.commands(Type.UNSUBSCRIBE)) == 1


def test_a_consumer_whose_subscribing_had_no_answer_in_time_is_closed(broker: FakeBroker, client: Client) -> None:
    """The broker may have made it: nobody would hear it, and the durable subscription would count as held by it."""
    client.connect()
    broker.handlers[Type.SUBSCRIBE] = first_then_well(silent)
    with in_a_hurry(client), pytest.raises(Unanswered, match="subscribe to"):
        client.hold("t", "s")
    until(lambda: len(broker.commands(Type.CLOSE_CONSUMER)) == 1)
    held = client.hold("t", "s")
    first, second = (command.subscribe.consumer_id for command in broker.commands(Type.SUBSCRIBE))
    assert [command.close_consumer.consumer_id for command in broker.commands(Type.CLOSE_CONSUMER)] == [first]
    held.close()
    assert broker.commands(Type.CLOSE_CONSUMER)[-1].close_consumer.consumer_id == second


JOINS: dict[str, Callable[[Client], object]] = {
    "reader of entries": lambda client: client.entry_reader("t", None).last_message_id(),
    "reader of messages": lambda client: client.reader("t").last_message_id(),
    "hold": lambda client: client.hold("t", "s"),
    "subscription": lambda client: client.subscription("t", "s", initial="latest"),
    "watched subscription": lambda client: client.subscription("t", "s", initial="latest", missing=print),
    "whether it is held": lambda client: client.is_held("t", "s"),
    "moved subscription": lambda client: client.move_subscription("t", "s", EntryId(-1, -1)),
}


@pytest.mark.parametrize("join", JOINS)
def test_a_consumer_that_the_broker_closes_before_it_confirms_it_joins_again(
    broker: FakeBroker, client: Client, join: str
) -> None:
    """As where its topic is unloaded just then (seen on 4.2.4)."""

    def close_first(session: Session, frame: Frame) -> None:
        closing = CommandCloseConsumer(consumer_id=frame.command.subscribe.consumer_id)
        session.send(BaseCommand(type=Type.CLOSE_CONSUMER, close_consumer=closing))
        answer_well(session, frame)

    broker.handlers[Type.SUBSCRIBE] = first_then_well(close_first)
    JOINS[join](client)
    assert len(broker.commands(Type.SUBSCRIBE)) >= 2


def test_a_consumer_that_is_closed_while_its_topic_is_has_left(broker: FakeBroker, client: Client) -> None:
    """As where its topic is unloaded just then (seen on 4.2.4)."""
    left = refusing(ServerError.MetadataError, "Consumer was not connected")
    broker.handlers[Type.CLOSE_CONSUMER] = broker.handlers[Type.UNSUBSCRIBE] = left
    with client.entry_reader("t", None) as reader:
        reader.last_message_id()
    client.hold("t", "s").close()
    assert not client.is_held("t", "s")
    with pytest.raises(Refused, match="Consumer was not connected"):
        client.hold("t", "s").delete()
    broker.handlers[Type.CLOSE_CONSUMER] = refusing(ServerError.MetadataError, "another reason")
    with pytest.raises(Refused, match="another reason"):
        client.hold("t", "s").close()


@pytest.mark.parametrize("answer", [refusing(ServerError.ConsumerBusy), refusing(ServerError.TopicNotFound), cut])
def test_a_consumer_that_was_refused_or_lost_is_not(broker: FakeBroker, client: Client, answer: Handler) -> None:
    client.connect()
    broker.handlers[Type.SUBSCRIBE] = answer
    with pytest.raises((Refused, TopicMissing, ConnectionLost)):
        client.hold("t", "s")
    broker.handlers[Type.SUBSCRIBE] = answer_well
    client.hold("t", "s").close()
    assert len(broker.commands(Type.CLOSE_CONSUMER)) == 1, "that of the second one"


class Consumers:
    """The consumers of a scripted broker that are there."""

    def __init__(self, broker: FakeBroker) -> None:
        self.there: set[int] = set()
        for kind, field in ENDING.items():
            broker.handlers[kind] = self._ending(field)
        broker.handlers[Type.SUBSCRIBE] = self._subscribe

    def _subscribe(self, session: Session, frame: Frame) -> None:
        self.there.add(frame.command.subscribe.consumer_id)
        answer_well(session, frame)

    def _ending(self, field: str) -> Handler:
        def handle(session: Session, frame: Frame) -> None:
            self.there.discard(getattr(frame.command, field).consumer_id)
            answer_well(session, frame)

        return handle


ENDING = {Type.CLOSE_CONSUMER: "close_consumer", Type.UNSUBSCRIBE: "unsubscribe", Type.SEEK: "seek"}
"""A broker closes the consumers of a subscription that it moves."""


def read(client: Client) -> None:
    with client.entry_reader("t", EntryId(1, 0)) as reader:
        for _ in range(1000):
            reader.read(0.01)
        raise AssertionError("an end that is not known looks like silence for ever")


def ask_entries(client: Client) -> None:
    with client.entry_reader("t", None) as reader:
        reader.last_message_id()


def ask_messages(client: Client) -> None:
    with client.reader("t") as reader:
        reader.last_message_id()


def begin_at_an_entry(client: Client) -> None:
    client.subscription("t", "s", initial=EntryId(3, 4))


def delete(client: Client) -> None:
    cursor = client.subscription("t", "s", initial="earliest")
    try:
        cursor.delete()
    finally:
        cursor.close()


AFTER_JOINING: dict[str, tuple[int, Callable[[Client], object]]] = {
    "reader that reads": (Type.GET_LAST_MESSAGE_ID, read),
    "reader of entries": (Type.GET_LAST_MESSAGE_ID, ask_entries),
    "reader of messages": (Type.GET_LAST_MESSAGE_ID, ask_messages),
    "position, sought": (Type.SEEK, lambda client: client.position_of("t", 1)),
    "position, asked for": (Type.GET_LAST_MESSAGE_ID, lambda client: client.position_of("t", 1)),
    "subscription at an entry": (Type.ACK, begin_at_an_entry),
    "subscription, deleted": (Type.UNSUBSCRIBE, delete),
    "moved subscription": (Type.SEEK, lambda client: client.move_subscription("t", "s", EntryId(-1, -1))),
}

LIVES_ON = [
    "Failed to get batch size for entry",
    "Failed to read last entry of the compacted Ledger",
    "Failed to get compactionHorizon",
    "Failed to recover Transaction Buffer",
]
"""How a broker says that it can't tell the last message, to a consumer that it keeps (ServerCnx of 4.2.4)."""


@pytest.mark.parametrize("answer", [*(refusing(ServerError.MetadataError, words) for words in LIVES_ON), silent])
@pytest.mark.parametrize("join", AFTER_JOINING)
def test_no_consumer_is_left_at_the_broker_by_a_request_that_failed_after_it_joined(
    broker: FakeBroker, client: Client, join: str, answer: Handler
) -> None:
    """It would count for the limits of its topic as long as the connection, and keep an exclusive subscription."""
    client.connect()
    consumers = Consumers(broker)
    asked, ask = AFTER_JOINING[join]
    broker.handlers[asked] = answer
    with in_a_hurry(client), pytest.raises((Refused, Unanswered, ConnectionLost)):
        ask(client)
    until(lambda: not consumers.there, lambda: f"left: {consumers.there}")


@pytest.mark.parametrize("answer", [refusing(ServerError.MetadataError, "another reason"), silent])
def test_a_consumer_that_could_not_be_closed_is_not_listened_for(
    broker: FakeBroker, client: Client, answer: Handler
) -> None:
    """Else its connection would count as used for ever."""
    held = client.hold("t", "s")
    broker.handlers[Type.CLOSE_CONSUMER] = answer
    with in_a_hurry(client), pytest.raises((Refused, Unanswered)):
        held.close()
    assert client._pool.close_idle()


def test_a_subscription_that_could_not_be_moved_can_be_moved_by_the_next_try(
    broker: FakeBroker, client: Client
) -> None:
    consumers = Consumers(broker)
    moves, joins = broker.handlers[Type.SEEK], broker.handlers[Type.SUBSCRIBE]

    def alone(session: Session, frame: Frame) -> None:
        if consumers.there:
            session.refuse(frame.command, ServerError.ConsumerBusy, "Exclusive consumer is already connected")
        else:
            joins(session, frame)

    broker.handlers[Type.SUBSCRIBE] = alone
    broker.handlers[Type.SEEK] = refusing(ServerError.MetadataError, "Bookie handle is not available")
    with pytest.raises(Refused, match="Bookie handle"):
        client.move_subscription("t", "s", EntryId(-1, -1))
    broker.handlers[Type.SEEK] = moves
    assert client.move_subscription("t", "s", EntryId(-1, -1))
    assert not consumers.there
