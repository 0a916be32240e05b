"""A durable cursor against a scripted broker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eos.errors import Refused, Unanswered
from eos.pulsar.net.client import Client
from eos.pulsar.net.subscription import Initial, Subscription
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.frames import Frame
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import BaseCommand, CommandCloseConsumer, CommandSubscribe, ServerError
from tests.unit.pulsar.net.fake_broker import FakeBroker, Handler, Session, first_then_well, refusing, silent
from tests.waiting import in_a_hurry


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


def durable(broker: FakeBroker) -> int:
    return sum(command.subscribe.durable for command in broker.commands(Type.SUBSCRIBE))


def test_a_caller_hears_of_each_join_that_is_to_make_the_subscription_before_it_does(
    broker: FakeBroker, client: Client
) -> None:
    """A scripted broker says of each probe that no subscription has its name."""
    told: list[int] = []
    cursor = client.subscription("t", "keep", initial="latest", missing=lambda: told.append(durable(broker)))
    assert (told, durable(broker)) == ([0], 1)
    broker.handlers[Type.GET_LAST_MESSAGE_ID] = first_then_well(close_asking)
    cursor.last_message_id()
    assert (told, durable(broker)) == ([0, 1], 2), "also where the broker has closed the consumer"
    there = refusing(ServerError.UnknownError, "Durable subscription with the same name already exists")
    broker.handlers[Type.SUBSCRIBE] = first_then_well(there)
    client.subscription("t", "other", initial="latest", missing=lambda: told.append(0))
    assert (told, durable(broker)) == ([0, 1], 3)


def test_a_caller_can_keep_a_subscription_from_being_made(broker: FakeBroker, client: Client) -> None:
    class Unwanted(Exception):
        pass

    allowed = [True]

    def missing() -> None:
        if not allowed:
            raise Unwanted
        allowed.clear()

    cursor = client.subscription("t", "keep", initial="earliest", missing=missing)
    broker.handlers[Type.GET_LAST_MESSAGE_ID] = first_then_well(close_asking)
    for _ in range(2):
        with pytest.raises(Unwanted):
            cursor.last_message_id()
    with pytest.raises(Unwanted):
        client.subscription("t", "keep", initial="earliest", missing=missing)
    assert durable(broker) == 1


def test_an_entry_is_acknowledged_whole(broker: FakeBroker, client: Client) -> None:
    with client.subscription("t", "keep", initial="earliest") as cursor:
        cursor.acknowledge(EntryId(3, 4))
    (ack,) = (command.ack for command in broker.commands(Type.ACK))
    assert ack.ack_type == ack.AckType.Cumulative
    assert not ack.message_id[0].HasField("batch_index")
    assert not ack.message_id[0].ack_set


def test_one_that_cannot_move_up_to_its_place_is_left(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.ACK] = refusing(ServerError.UnknownError, "no")
    with pytest.raises(Refused):
        client.subscription("t", "keep", initial=EntryId(3, 4))
    assert len(broker.commands(Type.CLOSE_CONSUMER)) == 1


def test_it_can_be_deleted(broker: FakeBroker, client: Client) -> None:
    client.subscription("t", "keep", initial="earliest").delete()
    assert len(broker.commands(Type.UNSUBSCRIBE)) == 1


@pytest.mark.parametrize(
    ("asked", "ask"),
    [
        (Type.GET_LAST_MESSAGE_ID, lambda cursor: cursor.last_message_id()),
        (Type.ACK, lambda cursor: cursor.acknowledge(EntryId(3, 4))),
        (Type.SEEK, lambda cursor: cursor.seek(EntryId(3, 4))),
        (Type.UNSUBSCRIBE, lambda cursor: cursor.delete()),
    ],
)
def test_a_broker_that_has_dropped_the_consumer_is_asked_once_more_by_a_new_one(
    broker: FakeBroker, client: Client, asked: int, ask: Callable[[Subscription], object]
) -> None:
    """As while the topic moves, before the broker has told so."""
    dropped = refusing(ServerError.MetadataError, "Consumer not found")
    cursor = client.subscription("t", "keep", initial="earliest")
    broker.handlers[asked] = first_then_well(dropped)
    ask(cursor)
    assert (len(broker.commands(Type.SUBSCRIBE)), len(broker.commands(asked))) == (2, 2)
    cursor = client.subscription("t", "other", initial="earliest")
    broker.handlers[asked] = dropped
    with pytest.raises(Refused, match="Consumer not found"):
        ask(cursor)


def close_asking(session: Session, frame: Frame) -> None:
    """Close the consumer that a question is about, and leave the question without an answer."""
    number = getattr(frame.command, ASKED[frame.command.type]).consumer_id
    closing = CommandCloseConsumer(consumer_id=number)
    session.send(BaseCommand(type=Type.CLOSE_CONSUMER, close_consumer=closing))


LONGER_THAN_A_TEST_S = 1e6

ASKED = {
    Type.GET_LAST_MESSAGE_ID: "get_last_message_id",
    Type.ACK: "ack",
    Type.UNSUBSCRIBE: "unsubscribe",
    Type.CLOSE_CONSUMER: "close_consumer",
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("asked", "ask", "times"),
    [
        (Type.GET_LAST_MESSAGE_ID, lambda cursor: cursor.last_message_id(), 2),
        (Type.ACK, lambda cursor: cursor.acknowledge(EntryId(3, 4)), 2),
        (Type.UNSUBSCRIBE, lambda cursor: cursor.delete(), 2),
        (Type.CLOSE_CONSUMER, lambda cursor: cursor.close(), 1),
    ],
)
def test_no_answer_is_awaited_from_a_broker_that_closes_the_consumer(
    broker: FakeBroker, asked: int, ask: Callable[[Subscription], object], times: int
) -> None:
    """A broker that unloads a topic drops such a question, and tells of the end of the consumer a moment later."""
    with broker.client(timeout_s=LONGER_THAN_A_TEST_S) as client:
        cursor = client.subscription("t", "keep", initial="earliest")
        broker.handlers[asked] = first_then_well(close_asking)
        ask(cursor)
    assert len(broker.commands(asked)) == times


@pytest.mark.timeout(60)
def test_a_reader_does_not_await_where_the_last_message_is_from_a_broker_that_closes_it(
    broker: FakeBroker,
) -> None:
    """Reads waited 30 s for each such question, and a table's read met two in a row while its topic was unloaded."""
    broker.handlers[Type.GET_LAST_MESSAGE_ID] = first_then_well(close_asking)
    with broker.client(timeout_s=LONGER_THAN_A_TEST_S) as client, client.reader("t") as reader:
        reader.last_message_id()
    assert len(broker.commands(Type.GET_LAST_MESSAGE_ID)) == 2
    assert len(broker.commands(Type.SUBSCRIBE)) == 2


def standing_at(place: EntryId | None) -> Handler:
    """Answer where the last message is, and with it how far the subscription has acknowledged."""

    def handle(session: Session, frame: Frame) -> None:
        answer = BaseCommand(type=Type.GET_LAST_MESSAGE_ID_RESPONSE)
        answer.get_last_message_id_response.last_message_id.CopyFrom(EntryId(3, 9).written())
        if place is not None:
            answer.get_last_message_id_response.consumer_mark_delete_position.CopyFrom(place.written())
        session.answer(frame.command, answer)

    return handle


@pytest.mark.parametrize("stands", [EntryId(3, 4), EntryId(3, 5), EntryId(4, -1)])
def test_an_entry_that_is_acknowledged_already_changes_nothing_though_the_broker_refuses_it(
    broker: FakeBroker, client: Client, stands: EntryId
) -> None:
    """So does Pulsar 5.0.0-M1; the brokers before it answer with success."""
    broker.handlers[Type.ACK] = refusing(ServerError.UnknownError, "below the mark-delete position")
    broker.handlers[Type.GET_LAST_MESSAGE_ID] = standing_at(stands)
    with client.subscription("t", "keep", initial="earliest") as cursor:
        cursor.acknowledge(EntryId(3, 4))


@pytest.mark.parametrize(
    ("code", "stands"),
    [
        (ServerError.UnknownError, EntryId(3, 3)),
        (ServerError.UnknownError, EntryId(2, 7)),
        (ServerError.UnknownError, None),
        (ServerError.PersistenceError, EntryId(3, 5)),
    ],
)
def test_any_other_refusal_of_an_acknowledgement_stays_one(
    broker: FakeBroker, client: Client, code: ServerError, stands: EntryId | None
) -> None:
    broker.handlers[Type.ACK] = refusing(code, "no")
    broker.handlers[Type.GET_LAST_MESSAGE_ID] = standing_at(stands)
    with client.subscription("t", "keep", initial="earliest") as cursor, pytest.raises(Refused, match="acknowledge on"):
        cursor.acknowledge(EntryId(3, 4))


def test_no_answer_to_where_the_last_message_is_names_the_causes_and_the_way_out(
    broker: FakeBroker, client: Client
) -> None:
    broker.handlers[Type.GET_LAST_MESSAGE_ID] = silent
    words = r"last message of .*t: no answer.*ledger is lost.*Nobody knows.*publish a message to the topic"
    cursor = client.subscription("t", "keep", initial="earliest")
    with in_a_hurry(client), pytest.raises(Unanswered, match=words):
        cursor.last_message_id()
    cursor.close()
