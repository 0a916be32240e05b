from __future__ import annotations

import pytest
from google.protobuf.text_format import MessageToString

from eos.errors import DamagedFrame, NetworkError, OutOfTurn, Refused
from eos.pulsar.protocol.consumer import ENDED, ConsumerSession, State
from eos.pulsar.protocol.messages import messages_in
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.frames import Frame
from eos.pulsar.wire.message_id import EARLIEST, EntryId, MessageId
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandError,
    CommandGetLastMessageIdResponse,
    CommandMessage,
    CommandSubscribe,
    CommandSuccess,
    KeyValue,
    MessageIdData,
    MessageMetadata,
    ServerError,
    SingleMessageMetadata,
)
from eos.pulsar.wire.txn import TxnId

SUCCESS = BaseCommand(type=Type.SUCCESS, success=CommandSuccess())


def frame(ledger: int, entry: int, payload: bytes = b"data", **metadata: object) -> Frame:
    where = MessageIdData(ledger_id=ledger, entry_id=entry)
    command = BaseCommand(type=Type.MESSAGE, message=CommandMessage(consumer_id=1, message_id=where))
    described = MessageMetadata(producer_name="p", publish_time=11, **metadata)  # type: ignore[arg-type]
    return Frame(command, described, payload)


def batch(ledger: int, entry: int, *messages: bytes, compacted: int | None = None) -> Frame:
    payload = b""
    for index, data in enumerate(messages):
        single = SingleMessageMetadata(payload_size=len(data), compacted_out=index == compacted).SerializeToString()
        payload += len(single).to_bytes(4, "big") + single + data
    return frame(ledger, entry, payload, num_messages_in_batch=len(messages))


def reader(after: MessageId = EARLIEST) -> ConsumerSession:
    line = ConsumerSession("t", 1, "pulsar://b:6650", after)
    line.read("s")
    line.subscribed(SUCCESS)
    return line


def test_a_reader_leaves_nothing_behind_and_starts_at_the_earliest() -> None:
    subscribe = ConsumerSession("t", 1, "b").read("s").subscribe
    assert not subscribe.durable
    assert subscribe.sub_type == CommandSubscribe.SubType.Exclusive
    assert (subscribe.start_message_id.ledger_id, subscribe.start_message_id.entry_id) == (-1, -1)
    assert not subscribe.force_topic_creation


def test_a_reader_goes_on_behind_the_last_message() -> None:
    start = ConsumerSession("t", 1, "b", MessageId(3, 4, 5)).read("s").subscribe.start_message_id
    assert (start.ledger_id, start.entry_id, start.batch_index) == (3, 4, 5)
    line = reader(MessageId(3, 4, 0))
    assert [message.data for message in line.receive(batch(3, 4, b"a", b"b", b"c"))] == [b"b", b"c"]
    assert line.receive(batch(3, 4, b"a", b"b", b"c")) == []
    assert line.last == MessageId(3, 4, 2)


def test_a_hold_is_durable_and_shared_with_its_successor() -> None:
    subscribe = ConsumerSession("t", 1, "b").hold("keep").subscribe
    assert subscribe.durable
    assert subscribe.subscription == "keep"
    assert subscribe.sub_type == CommandSubscribe.SubType.Failover
    assert subscribe.initial_position == CommandSubscribe.InitialPosition.Earliest
    alone = ConsumerSession("t", 1, "b").hold("keep", alone=True).subscribe
    assert (alone.durable, alone.sub_type) == (True, CommandSubscribe.SubType.Exclusive)


def test_a_message_tells_all_about_itself() -> None:
    (message,) = messages_in(
        frame(
            1,
            2,
            b"x",
            partition_key=b"k",
            event_time=9,
            properties=[KeyValue(key="a", value="b")],
            txnid_most_bits=0,
            txnid_least_bits=4,
        )
    )
    assert (message.message_id, message.data, message.key) == (MessageId(1, 2), b"x", b"k")
    assert (message.publish_time_ms, message.event_time_ms, message.producer_name) == (11, 9, "p")
    assert (message.properties, message.txn) == ({"a": "b"}, TxnId(0, 4))
    (plain,) = messages_in(frame(1, 2, b"", null_value=True))
    assert (plain.data, plain.key, plain.event_time_ms, plain.txn) == (None, None, None, None)


def test_messages_of_a_batch_are_numbered_and_compacted_ones_left_out() -> None:
    messages = list(messages_in(batch(1, 2, b"a", b"b", b"c", compacted=1)))
    assert [(message.message_id.batch_index, message.data) for message in messages] == [(0, b"a"), (2, b"c")]


def test_a_message_without_a_body_is_damage() -> None:
    with pytest.raises(DamagedFrame):
        list(messages_in(Frame(BaseCommand(type=Type.MESSAGE, message=CommandMessage()))))


def test_a_damaged_message_ends_a_reader_that_has_no_way_past_it() -> None:
    given = frame(1, 2)
    with pytest.raises(DamagedFrame, match=r"^a message of t: checksum"):
        reader().receive(Frame(given.command, damage="checksum 1 and not 2"))


def test_last_message_id() -> None:
    line = reader()
    assert line.ask_last().get_last_message_id.consumer_id == 1
    response = CommandGetLastMessageIdResponse(last_message_id=MessageIdData(ledger_id=-1, entry_id=-1))
    answer = BaseCommand(type=Type.GET_LAST_MESSAGE_ID_RESPONSE, get_last_message_id_response=response)
    assert line.last_message_id(answer) == EARLIEST
    with pytest.raises(Refused, match="MetadataError"):
        line.last_message_id(BaseCommand(type=Type.ERROR, error=CommandError(error=ServerError.MetadataError)))


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
    assert line.receive(frame(1, 1)) == []
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
    line = ConsumerSession("t", 7, "b", MessageId(3, 4))
    said = [MessageToString(line.read("s"), as_one_line=True)]
    line.subscribed(SUCCESS)
    commands = [line.flow(5), line.ask_last(), line.acknowledge(MessageId(3, 9)), line.close()]
    said += [MessageToString(command, as_one_line=True) for command in commands]
    assert said == [
        'type: SUBSCRIBE subscribe { topic: "t" subscription: "s" sub_type: Exclusive consumer_id: 7'
        " durable: false start_message_id { ledger_id: 3 entry_id: 4 } initial_position: Earliest"
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


@pytest.mark.parametrize(
    ("metadata", "payload"), [(None, b"data"), (MessageMetadata(producer_name="p", publish_time=1), None)]
)
def test_a_message_without_its_half_is_damaged(metadata: MessageMetadata | None, payload: bytes | None) -> None:
    with pytest.raises(DamagedFrame, match=r"^a MESSAGE without a message$"):
        list(messages_in(Frame(frame(1, 1).command, metadata, payload)))


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
