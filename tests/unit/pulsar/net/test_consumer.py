"""Readers and holds against a scripted broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eos.errors import (
    ConnectionLost,
    Refused,
    TopicMissing,
    Unanswered,
)
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.checksum import Buffer
from eos.pulsar.wire.frames import Frame, encode_message
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandCloseConsumer,
    CommandMessage,
    MessageIdData,
    MessageMetadata,
    ServerError,
)
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
from tests.waiting import PATIENCE_S, in_a_hurry, until


@pytest.fixture
def client(broker: FakeBroker) -> Iterator[Client]:
    with broker.client() as made:
        yield made


def message(consumer_id: int, entry: int, data: bytes) -> list[Buffer]:
    where = MessageIdData(ledger_id=1, entry_id=entry)
    command = BaseCommand(type=Type.MESSAGE, message=CommandMessage(consumer_id=consumer_id, message_id=where))
    return encode_message(command, MessageMetadata(producer_name="p", publish_time=1, sequence_id=entry), [data])


def sending(*entries: int) -> object:
    def flow(session: Session, frame: Frame) -> None:
        for entry in entries:
            session._socket.sendall(b"".join(message(frame.command.flow.consumer_id, entry, b"%d" % entry)))

    return flow


def test_a_reader_reads_in_order_and_none_when_nothing_comes(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.FLOW] = sending(0, 1)  # type: ignore[assignment]
    reader = client.reader("t")
    read = [reader.read(PATIENCE_S), reader.read(PATIENCE_S), reader.read(0.05)]
    assert [one.data if one is not None else None for one in read] == [b"0", b"1", None]
    reader.close()
    assert len(broker.commands(Type.CLOSE_CONSUMER)) == 1


def test_a_reader_goes_on_where_it_was_when_the_connection_is_lost(
    broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.handlers[Type.FLOW] = sending(0)  # type: ignore[assignment]
    reader = client.reader("t")
    first = reader.read(PATIENCE_S)
    assert first is not None
    wait = reader._arrived.wait

    def cut_and_wait(timeout_s: float) -> bool:
        broker.cut_all()
        return wait(timeout_s)

    with monkeypatch.context() as patch:  # a reader that has lost its connection before it waits joins anew at once
        patch.setattr(reader._arrived, "wait", cut_and_wait)
        with pytest.raises(ConnectionLost, match="read persistent://public/default/t"):
            reader.read(PATIENCE_S)
    broker.handlers[Type.FLOW] = sending(0, 1)  # type: ignore[assignment]
    second = reader.read(PATIENCE_S)
    assert second is not None
    assert second.data == b"1"
    start = broker.commands(Type.SUBSCRIBE)[1].subscribe.start_message_id
    assert (start.ledger_id, start.entry_id) == (1, 0)


def test_a_reader_closed_by_the_broker_joins_again(broker: FakeBroker, client: Client) -> None:
    def close(session: Session, frame: Frame) -> None:
        closing = CommandCloseConsumer(consumer_id=frame.command.flow.consumer_id)
        session.send(BaseCommand(type=Type.CLOSE_CONSUMER, close_consumer=closing))

    broker.handlers[Type.FLOW] = close
    reader = client.reader("t")
    with pytest.raises(ConnectionLost, match="closed by the broker"):
        reader.read(PATIENCE_S)
    broker.handlers[Type.FLOW] = sending(0)  # type: ignore[assignment]
    assert reader.read(PATIENCE_S) is not None


def test_permits_are_given_again_as_messages_are_read(broker: FakeBroker, client: Client) -> None:
    entries = iter(range(1500))

    def flow(session: Session, frame: Frame) -> None:
        for _ in range(frame.command.flow.message_permits):
            entry = next(entries, None)
            if entry is not None:
                session._socket.sendall(b"".join(message(0, entry, b"%d" % entry)))

    broker.handlers[Type.FLOW] = flow
    reader = client.reader("t")
    read = [reader.read(PATIENCE_S) for _ in range(1500)]
    assert [one.data for one in read if one is not None] == [b"%d" % entry for entry in range(1500)]


def test_a_reader_of_a_missing_topic(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.SUBSCRIBE] = refusing(ServerError.TopicNotFound)
    with pytest.raises(TopicMissing):
        client.reader("t").read(PATIENCE_S)


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


@pytest.mark.parametrize("answer", [refusing(ServerError.ConsumerBusy), refusing(ServerError.TopicNotFound), cut])
def test_a_consumer_that_was_refused_or_lost_is_not(broker: FakeBroker, client: Client, answer: Handler) -> None:
    client.connect()
    broker.handlers[Type.SUBSCRIBE] = answer
    with pytest.raises((Refused, TopicMissing, ConnectionLost)):
        client.hold("t", "s")
    broker.handlers[Type.SUBSCRIBE] = answer_well
    client.hold("t", "s").close()
    assert len(broker.commands(Type.CLOSE_CONSUMER)) == 1, "that of the second one"
