"""Producers against a scripted broker."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from eos.errors import (
    ConnectionLost,
    FrameTooLarge,
    NetworkError,
    OutOfTurn,
    Refused,
    RefusedForGood,
    TopicMissing,
    Unanswered,
)
from eos.pulsar.net.client import Client, InFlight
from eos.pulsar.net.producer_group import AT_ONCE, known_partition_counts, partition_counts
from eos.pulsar.protocol.requests import Type
from eos.pulsar.protocol.schemas import Declared
from eos.pulsar.wire.batch import Chunk
from eos.pulsar.wire.frames import Frame
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandCloseProducer,
    CommandProducerSuccess,
    CommandSendError,
    CommandTopicMigrated,
    ServerError,
)
from eos.pulsar.wire.txn import TxnId
from tests.unit.pulsar.net.fake_broker import (
    FakeBroker,
    Session,
    answer_well,
    cut,
    first_then_well,
    receipt,
    silent,
)
from tests.waiting import PATIENCE_S, in_a_hurry

CHUNK = Chunk(messages=3, payload=b"x" * 100, uncompressed_size=100, rows_bytes=60, compression="none")
TXN = TxnId(0, 7)


def test_frames_carry_the_transaction_twice_and_count_messages(broker: FakeBroker, client: Client) -> None:
    with client.producer("t") as producer:
        assert (producer.topic, producer.name, producer.max_message_size) == ("t", "fake-1", 1024 * 1024)
        producer.send(CHUNK, TXN)
        producer.send(CHUNK, None)
        assert producer.send_record(b"record", TXN, {"a": "b"}) == MessageId(1, 6)
    frames = [frame for frame in broker.received if frame.command.type == Type.SEND]
    assert [frame.command.send.sequence_id for frame in frames] == [0, 3, 6]
    first = frames[0]
    assert first.entries[0].metadata is not None
    assert (first.command.send.txnid_least_bits, first.entries[0].metadata.txnid_least_bits) == (7, 7)
    assert first.entries[0].packed == CHUNK.payload
    assert not frames[1].command.send.HasField("txnid_least_bits")
    assert len(broker.commands(Type.CLOSE_PRODUCER)) == 1


def test_frames_carry_the_version_of_the_schema_that_was_declared(broker: FakeBroker, client: Client) -> None:
    def open_with_version(session: Session, frame: Frame) -> None:
        version = b"\0\0\0\0\0\0\0\2" if frame.command.producer.HasField("schema") else b""
        success = CommandProducerSuccess(producer_name="p", schema_version=version)
        session.answer(frame.command, BaseCommand(type=Type.PRODUCER_SUCCESS, producer_success=success))

    broker.handlers[Type.PRODUCER] = open_with_version
    for schema in (Declared("INT32"), None):
        with client.producer("t", schema=schema) as producer:
            assert producer.schema == schema
            producer.send(CHUNK, TXN)
    carried = [frame.entries[0].metadata for frame in broker.received if frame.command.type == Type.SEND]
    assert [one.schema_version for one in carried] == [b"\0\0\0\0\0\0\0\2", b""]


def test_a_fresh_name_each_time(client: Client) -> None:
    assert client.producer("t").name != client.producer("t").name


def test_no_receipt_is_unanswered_and_the_producer_is_given_up(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.SEND] = silent
    producer = client.producer("t")
    producer._timeout_s = 0.2
    with pytest.raises(Unanswered, match=f"no receipt for 1 frames on t from {broker.url} within 0.2 s"):
        producer.send_record(b"x", None)
    with pytest.raises(Unanswered):
        producer.send(CHUNK, None)
    with pytest.raises(Unanswered):
        producer.close()
    client.producer("t").close()
    assert [command.close_producer.producer_id for command in broker.commands(Type.CLOSE_PRODUCER)] == [0, 1]


def test_a_dropped_duplicate_is_an_error(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.SEND] = lambda session, frame: session.send(receipt(frame, ledger=-1))
    producer = client.producer("t")
    producer.send(CHUNK, TXN)
    with pytest.raises(NetworkError, match="dropped by the broker as a duplicate"):
        producer.flush()


def test_a_refused_send(broker: FakeBroker, client: Client) -> None:
    def refuse(session: Session, frame: Frame) -> None:
        error = CommandSendError(producer_id=0, sequence_id=0, error=ServerError.NotAllowedError, message="too large")
        session.send(BaseCommand(type=Type.SEND_ERROR, send_error=error))

    broker.handlers[Type.SEND] = refuse
    producer = client.producer("t")
    with pytest.raises(Refused, match="NotAllowedError: too large"):
        producer.send_record(b"x", None)


TOO_LARGE = "Exceed maximum message size"  # as Pulsar 4.2.4 says it, see tests/contract/test_frame_limits.py


@pytest.mark.parametrize(
    ("messages", "cut", "kind"), [(2, False, FrameTooLarge), (1, False, RefusedForGood), (1, True, FrameTooLarge)]
)
def test_a_frame_that_the_topic_does_not_take_teaches_to_cut_smaller_unless_that_can_not_be(
    broker: FakeBroker, client: Client, messages: int, cut: bool, kind: type[Refused]
) -> None:
    def refuse(session: Session, frame: Frame) -> None:
        last = frame.command.send.highest_sequence_id
        error = CommandSendError(producer_id=0, sequence_id=last, error=ServerError.NotAllowedError, message=TOO_LARGE)
        session.send(BaseCommand(type=Type.SEND_ERROR, send_error=error))

    broker.handlers[Type.SEND] = refuse
    producer = client.producer("t-partition-3")
    payload = b"x" * 4000
    producer.send(Chunk(messages, payload, 4000, rows_bytes=4000, compression="none", can_be_cut=cut), None)
    with pytest.raises(Refused, match=TOO_LARGE) as caught:
        producer.flush()
    assert type(caught.value) is kind
    assert ("of 4000 bytes, is more than the topic allows" in str(caught.value)) == (kind is RefusedForGood)
    assert client.frame_limits.of("t") == (500 if kind is FrameTooLarge else None)
    assert client.frame_limits.of("other") is None


def test_the_smaller_limit_of_two_processes_counts(client: Client) -> None:
    limits = client.frame_limits
    limits.learn({"persistent://public/default/t": 500})
    limits.learn({"persistent://public/default/t": 700})
    assert limits.learned == {"persistent://public/default/t": 500}
    limits.refused("t-partition-0", 80)
    assert limits.of("t") == 10


def migrated() -> BaseCommand:
    moved = CommandTopicMigrated(resource_id=0, resource_type=CommandTopicMigrated.ResourceType.Producer)
    return BaseCommand(type=Type.TOPIC_MIGRATED, topic_migrated=moved)


@pytest.mark.parametrize(
    "closing",
    [BaseCommand(type=Type.CLOSE_PRODUCER, close_producer=CommandCloseProducer(producer_id=0)), migrated()],
    ids=["closed", "migrated"],
)
def test_a_producer_closed_by_the_broker_stays_closed(broker: FakeBroker, client: Client, closing: BaseCommand) -> None:
    broker.handlers[Type.SEND] = lambda session, _: session.send(closing)
    producer = client.producer("t")
    with pytest.raises(
        NetworkError,
        match=r"closed by the broker .* with 1 frames unacknowledged. If that goes on, eos doctor persistent://",
    ):
        producer.send_record(b"x", None)
    assert len(broker.commands(Type.SEND)) == 1


def test_a_producer_closed_while_it_opens_is_opened_again(broker: FakeBroker, client: Client) -> None:
    def close_first(session: Session, frame: Frame) -> None:
        closing = CommandCloseProducer(producer_id=frame.command.producer.producer_id)
        session.send(BaseCommand(type=Type.CLOSE_PRODUCER, close_producer=closing))
        answer_well(session, frame)

    broker.handlers[Type.PRODUCER] = first_then_well(close_first)
    assert client.producer("t").send_record(b"x", None) == MessageId(1, 0)
    broker.handlers[Type.PRODUCER] = close_first
    with (
        in_a_hurry(client),
        pytest.raises(Unanswered, match=r"open a producer on .*t: not possible.*the broker closed a producer"),
    ):
        client.producer("t")


def test_a_cut_connection_loses_the_frame_and_never_sends_it_again(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.SEND] = first_then_well(cut)
    producer = client.producer("t")
    with pytest.raises(ConnectionLost):
        producer.send_record(b"x", None)
    with pytest.raises(ConnectionLost):
        producer.send_record(b"y", None)
    assert client.producer("t").send_record(b"z", None) == MessageId(1, 0)
    assert [frame.entries[0].packed for frame in broker.received if frame.command.type == Type.SEND] == [b"x", b"z"]


def test_close_waits_for_the_brokers_word(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.CLOSE_PRODUCER] = silent
    with in_a_hurry(client):
        producer = client.producer("t")
        with pytest.raises(Unanswered, match="close the producer on t: no answer"):
            producer.close()


def test_a_closed_producer_sends_nothing(broker: FakeBroker, client: Client) -> None:
    producer = client.producer("t")
    producer.close()
    producer.close()
    with pytest.raises(OutOfTurn):
        producer.send(CHUNK, None)
    assert broker.commands(Type.SEND) == []


@pytest.mark.parametrize("commit", [True, False])
def test_nothing_is_sent_into_a_transaction_whose_end_was_asked_for(
    broker: FakeBroker, client: Client, commit: bool
) -> None:
    budget = InFlight(1000)
    producer = client.producer("t", budget=budget)
    producer.send(CHUNK, TXN)
    producer.flush()
    client.coordinator(0).end(TXN, commit=commit)
    with pytest.raises(OutOfTurn, match="transaction: asked for 'send' while"):
        producer.send(CHUNK, TXN)
    assert len(broker.commands(Type.SEND)) == 1
    assert budget.used_bytes == 0
    producer.close()


def test_the_budget_holds_senders_back_until_receipts_come(broker: FakeBroker, client: Client) -> None:
    held: list[tuple[Session, Frame]] = []
    two = threading.Event()

    def hold(session: Session, frame: Frame) -> None:
        held.append((session, frame))
        if len(held) == 2:
            two.set()

    broker.handlers[Type.SEND] = hold
    budget = InFlight(250)
    producers = [client.producer("a", budget=budget), client.producer("b", budget=budget)]
    for producer in producers:
        producer.send(CHUNK, None)
    assert budget.used_bytes == 200
    done = threading.Event()

    def third() -> None:
        producers[0].send(CHUNK, None)
        done.set()

    threading.Thread(target=third, daemon=True).start()
    assert two.wait(PATIENCE_S)
    assert not done.wait(0.05)
    session, frame = held[1]
    session.send(receipt(frame))
    assert done.wait(PATIENCE_S)
    assert len(held) <= 3


def test_a_frame_larger_than_the_budget_goes_alone(client: Client) -> None:
    budget = InFlight(10)
    with client.producer("t", budget=budget) as producer:
        producer.send(CHUNK, None)
        producer.send(CHUNK, None)
    assert budget.used_bytes == 0


def test_a_full_budget_without_receipts_is_unanswered(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.SEND] = silent
    producer = client.producer("t", budget=InFlight(150))
    producer._timeout_s = 0.2
    producer.send(CHUNK, None)
    with pytest.raises(Unanswered, match=r"no receipt within 0.2 s while 100 bytes are on their way"):
        producer.send(CHUNK, None)


def test_a_failed_producer_gives_its_budget_back(broker: FakeBroker, client: Client) -> None:
    budget = InFlight(150)
    broker.handlers[Type.SEND] = cut
    producer = client.producer("t", budget=budget)
    producer.send(CHUNK, None)
    with pytest.raises(ConnectionLost):
        producer.send(CHUNK, None)
    assert budget.used_bytes == 0


def test_an_error_in_the_block_abandons_the_producer(broker: FakeBroker, client: Client) -> None:
    closed = threading.Event()

    def noted(session: Session, frame: Frame) -> None:
        closed.set()
        answer_well(session, frame)

    broker.handlers[Type.CLOSE_PRODUCER] = noted
    with pytest.raises(KeyError), client.producer("t") as producer:
        raise KeyError
    assert closed.wait(PATIENCE_S)
    with pytest.raises(NetworkError, match="given up"):
        producer.send(CHUNK, None)


# ---- several at once


class Brokers:
    """Answers a question once as many are asked at a time as may be."""

    def __init__(self, at_once: int, missing: str | None = None) -> None:
        self.asked: list[str] = []
        self.most = self._now = 0
        self._missing, self._gate, self._lock = missing, threading.Barrier(at_once), threading.Lock()

    def partitions(self, topic: str) -> int:
        with self._lock:
            self.asked.append(topic)
            self._now += 1
            self.most = max(self.most, self._now)
        self._gate.wait(PATIENCE_S)
        with self._lock:
            self._now -= 1
        if topic == self._missing:
            raise TopicMissing(f"{topic} does not exist")
        return int(topic)


def test_topics_are_asked_for_once_each_and_sixteen_at_a_time() -> None:
    brokers: Any = Brokers(AT_ONCE)
    topics = [str(number) for number in range(2 * AT_ONCE)]
    assert partition_counts(brokers, topics) == {topic: int(topic) for topic in topics}
    assert sorted(brokers.asked) == sorted(topics)
    assert brokers.most == AT_ONCE


def test_a_topic_that_is_missing_is_raised_or_left_out() -> None:
    brokers: Any = Brokers(1, missing="3")
    with pytest.raises(TopicMissing, match="3 does not exist"):
        partition_counts(brokers, ["2", "3"])
    assert known_partition_counts(brokers, ["2", "3", "4"]) == {"2": 2, "4": 4}
    assert known_partition_counts(brokers, []) == {}
