from __future__ import annotations

import pytest
from google.protobuf.text_format import MessageToString

from eos.errors import NetworkError, OutOfTurn, Refused
from eos.pulsar.protocol.consumer import ENDED, ConsumerSession, State
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.message_id import EntryId, MessageId
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandError,
    CommandSubscribe,
    CommandSuccess,
    ServerError,
)

SUCCESS = BaseCommand(type=Type.SUCCESS, success=CommandSuccess())


def reader() -> ConsumerSession:
    line = ConsumerSession("t", 1, "pulsar://b:6650")
    line.read("s")
    line.subscribed(SUCCESS)
    return line


def test_a_reader_leaves_nothing_behind_and_starts_at_the_earliest() -> None:
    subscribe = ConsumerSession("t", 1, "b").read("s").subscribe
    assert not subscribe.durable
    assert subscribe.sub_type == CommandSubscribe.SubType.Exclusive
    assert (subscribe.start_message_id.ledger_id, subscribe.start_message_id.entry_id) == (-1, -1)
    assert not subscribe.force_topic_creation


def test_a_hold_is_durable_and_shared_with_its_successor() -> None:
    subscribe = ConsumerSession("t", 1, "b").hold("keep").subscribe
    assert subscribe.durable
    assert subscribe.subscription == "keep"
    assert subscribe.sub_type == CommandSubscribe.SubType.Failover
    assert subscribe.initial_position == CommandSubscribe.InitialPosition.Earliest
    alone = ConsumerSession("t", 1, "b").hold("keep", alone=True).subscribe
    assert (alone.durable, alone.sub_type) == (True, CommandSubscribe.SubType.Exclusive)


def test_the_last_position_may_be_refused() -> None:
    line = reader()
    assert line.ask_last().get_last_message_id.consumer_id == 1
    with pytest.raises(Refused, match="MetadataError"):
        line.positions(BaseCommand(type=Type.ERROR, error=CommandError(error=ServerError.MetadataError)))


def test_a_refused_subscription() -> None:
    line = ConsumerSession("t", 1, "b")
    line.read("s")
    with pytest.raises(Refused, match="subscribe to t: the broker answered ConsumerBusy: taken"):
        line.subscribed(
            BaseCommand(type=Type.ERROR, error=CommandError(error=ServerError.ConsumerBusy, message="taken"))
        )
    assert line.state is State.FAILED


def test_closed_by_the_broker() -> None:
    line = reader()
    line.closed_by_broker()
    assert line.state is State.CLOSED_BY_BROKER
    with pytest.raises(NetworkError, match="closed by the broker"):
        line.flow(1)


def test_close_and_after() -> None:
    line = reader()
    assert line.close().close_consumer.consumer_id == 1
    line.closed(SUCCESS)
    assert line.state is State.CLOSED
    with pytest.raises(OutOfTurn):
        line.flow(1)


def test_a_close_that_is_confirmed_is_one_whatever_ended_the_consumer_meanwhile() -> None:
    for ends in (ConsumerSession.closed_by_broker, lambda line: line.lost(NetworkError("gone"))):
        line = reader()
        line.close()
        ends(line)
        line.closed(SUCCESS)
        assert line.state in ENDED
        with pytest.raises(Refused, match="close the consumer on t"):
            line.closed(BaseCommand(type=Type.ERROR, error=CommandError(error=ServerError.MetadataError)))


def test_an_acknowledgement_covers_everything_before_it() -> None:
    line = ConsumerSession("t", 1, "b")
    line.hold("keep")
    line.subscribed(SUCCESS)
    ack = line.acknowledge(MessageId(3, 4)).ack
    assert ack.ack_type == ack.AckType.Cumulative
    assert [(where.ledger_id, where.entry_id) for where in ack.message_id] == [(3, 4)]
    assert line.close(unsubscribe=True).type == Type.UNSUBSCRIBE


def test_each_command_says_which_consumer_and_nothing_else() -> None:
    """The whole of each frame: a field that is missing is one that the broker takes for zero."""
    line = ConsumerSession("t", 7, "b")
    said = [MessageToString(line.read("s"), as_one_line=True)]
    line.subscribed(SUCCESS)
    commands = [line.flow(5), line.ask_last(), line.acknowledge(MessageId(3, 9)), line.close()]
    said += [MessageToString(command, as_one_line=True) for command in commands]
    assert said == [
        'type: SUBSCRIBE subscribe { topic: "t" subscription: "s" sub_type: Exclusive consumer_id: 7'
        " durable: false start_message_id { ledger_id: -1 entry_id: -1 } initial_position: Earliest"
        " force_topic_creation: false }",
        "type: FLOW flow { consumer_id: 7 message_permits: 5 }",
        "type: GET_LAST_MESSAGE_ID get_last_message_id { consumer_id: 7 }",
        "type: ACK ack { consumer_id: 7 ack_type: Cumulative message_id { ledger_id: 3 entry_id: 9 } }",
        "type: CLOSE_CONSUMER close_consumer { consumer_id: 7 }",
    ]


def test_a_hold_begins_where_it_is_told_and_can_be_deleted() -> None:
    line = ConsumerSession("t", 7, "b")
    said = MessageToString(line.hold("s", latest=True), as_one_line=True)
    assert said == (
        'type: SUBSCRIBE subscribe { topic: "t" subscription: "s" sub_type: Failover consumer_id: 7'
        " durable: true initial_position: Latest force_topic_creation: false }"
    )
    line.subscribed(SUCCESS)
    unsubscribe = MessageToString(line.close(unsubscribe=True), as_one_line=True)
    assert unsubscribe == "type: UNSUBSCRIBE unsubscribe { consumer_id: 7 }"


def test_a_subscription_is_moved_to_an_entry_or_to_a_time() -> None:
    line = ConsumerSession("t", 1, "b")
    line.hold("keep")
    line.subscribed(SUCCESS)
    by_entry, by_time = line.seek(EntryId(3, 4)).seek, line.seek(1_500).seek
    assert (by_entry.consumer_id, by_entry.message_id.ledger_id, by_entry.message_id.entry_id) == (1, 3, 4)
    assert (by_time.message_publish_time, by_time.HasField("message_id")) == (1_500, False)
    line.sought(SUCCESS)
    with pytest.raises(Refused, match="move the subscription on t"):
        line.sought(BaseCommand(type=Type.ERROR, error=CommandError(error=ServerError.MetadataError)))
