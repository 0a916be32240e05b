"""Producers that stay open from batch to batch: which are used again, and which never."""

from __future__ import annotations

import pytest

from eos.delivery.producers import FreshProducers, OpenProducers
from eos.errors import NetworkError, Refused, RefusedForGood
from eos.pulsar.net.client import Client
from eos.pulsar.net.producer import Producer
from eos.pulsar.protocol.producer import ProducerIdentity
from eos.pulsar.protocol.requests import Type
from eos.pulsar.protocol.schemas import Declared
from eos.pulsar.wire.batch import Chunk
from eos.pulsar.wire.frames import Frame
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandCloseProducer,
    CommandGetSchemaResponse,
    CommandProducerSuccess,
    Schema,
    ServerError,
)
from eos.pulsar.wire.txn import TxnId
from tests.unit.pulsar.net.fake_broker import FakeBroker, Session, refusing, silent
from tests.waiting import until

CHUNK = Chunk(messages=1, payload=b"x", uncompressed_size=1, rows_bytes=1, compression="none")
TXN = TxnId(0, 7)
MIB = 1 << 20


@pytest.fixture
def kept(client: Client) -> OpenProducers:
    return OpenProducers(client, MIB)


def test_a_producer_is_kept_for_values_of_its_own_schema_alone(kept: OpenProducers, broker: FakeBroker) -> None:
    opened = []
    for schema in (None, Declared("INT32"), Declared("INT32"), Declared("INT64"), None):
        (producer,) = kept.open(["a"], schema)
        opened.append(producer)
        kept.give_back([producer])
    assert opened[1] is opened[2]
    assert len(set(map(id, opened))) == 4
    asked = [command.producer.HasField("schema") for command in broker.commands(Type.PRODUCER)]
    assert asked == [False, True, True, False]


def test_bytes_are_sent_to_a_topic_that_demands_a_schema_under_its_own_and_without_its_version(
    client: Client, broker: FakeBroker
) -> None:
    registered: list[Schema] = []

    def demand(session: Session, frame: Frame) -> None:
        if not frame.command.producer.HasField("schema"):
            session.refuse(frame.command, ServerError.IncompatibleSchema)
            return
        success = CommandProducerSuccess(producer_name="p", schema_version=bytes(8))
        session.answer(frame.command, BaseCommand(type=Type.PRODUCER_SUCCESS, producer_success=success))

    def tell(session: Session, frame: Frame) -> None:
        if registered:
            known = CommandGetSchemaResponse(schema=registered[0], schema_version=bytes(8))
        else:
            known = CommandGetSchemaResponse(error_code=ServerError.TopicNotFound, error_message="no schema")
        session.answer(frame.command, BaseCommand(type=Type.GET_SCHEMA_RESPONSE, get_schema_response=known))

    broker.handlers |= {Type.PRODUCER: demand, Type.GET_SCHEMA: tell}
    with pytest.raises(RefusedForGood, match="IncompatibleSchema"):
        use(FreshProducers(client, MIB), "a")
    registered.append(Schema(name="", type=Schema.Type.Avro, schema_data=b"{}"))
    (used,) = use(FreshProducers(client, MIB), "a")
    assert broker.commands(Type.PRODUCER)[-1].producer.schema == registered[0]
    (frame,) = (frame for frame in broker.received if frame.command.type == Type.SEND)
    assert not frame.entries[0].metadata.HasField("schema_version")
    assert used.schema is None


def test_each_producer_is_introduced_by_a_name_of_its_own(client: Client, broker: FakeBroker) -> None:
    who = ProducerIdentity("flights", {"eos.sink": "flights"}).part("batch-8-task-3", **{"eos.task": "3"})
    for _ in range(2):
        use(FreshProducers(client, MIB, introduction=who), "a", "b")
    asked = [command.producer for command in broker.commands(Type.PRODUCER)]
    assert len({one.producer_name for one in asked}) == 4
    assert all(one.producer_name.startswith("flights:batch-8-task-3:") for one in asked)
    assert [{pair.key: pair.value for pair in one.metadata} for one in asked] == [
        {"eos.sink": "flights", "eos.task": "3"}
    ] * 4


@pytest.mark.parametrize("encrypted", [True, False])
def test_producers_declare_whether_they_encrypt(client: Client, broker: FakeBroker, encrypted: bool) -> None:
    who = ProducerIdentity("flights", encrypted=encrypted)
    use(FreshProducers(client, MIB, introduction=who), "a")
    assert [command.producer.encrypted for command in broker.commands(Type.PRODUCER)] == [encrypted]


def test_a_producer_that_is_not_introduced_is_named_by_the_broker(client: Client, broker: FakeBroker) -> None:
    use(FreshProducers(client, MIB), "a")
    (asked,) = (command.producer for command in broker.commands(Type.PRODUCER))
    assert not asked.HasField("producer_name")
    assert not asked.user_provided_producer_name
    assert not asked.encrypted
    assert not asked.metadata


def test_a_producer_that_is_asked_for_again_has_another_name(client: Client, broker: FakeBroker) -> None:
    """The broker may still know the one whose opening had no answer, and would refuse its name."""
    names: list[str] = []

    def busy_at_first(session: Session, frame: Frame) -> None:
        names.append(frame.command.producer.producer_name)
        if len(names) == 1:
            session.refuse(frame.command, ServerError.ServiceNotReady)
            return
        success = CommandProducerSuccess(producer_name=names[-1])
        session.answer(frame.command, BaseCommand(type=Type.PRODUCER_SUCCESS, producer_success=success))

    broker.handlers[Type.PRODUCER] = busy_at_first
    (producer,) = FreshProducers(client, MIB, introduction=ProducerIdentity("flights")).open(["a"])
    assert len(set(names)) == 2
    assert producer.name == names[-1]


def use(source: FreshProducers, *topics: str) -> list[Producer]:
    """Send to each topic, await the receipts, and give the producers back."""
    opened = source.open(topics)
    for producer in opened:
        producer.send(CHUNK, TXN)
        producer.flush()
    source.give_back(opened)
    return opened


def test_a_tasks_producers_are_closed_when_they_are_given_back(broker: FakeBroker, client: Client) -> None:
    used = use(FreshProducers(client, MIB), "a", "b")
    assert sorted(producer.topic for producer in used) == ["a", "b"]
    assert len(broker.commands(Type.CLOSE_PRODUCER)) == 2
    assert not any(producer.is_idle for producer in used)


def test_the_drivers_stay_open_and_are_used_again(broker: FakeBroker, kept: OpenProducers) -> None:
    first = use(kept, "a", "b")
    assert not broker.commands(Type.CLOSE_PRODUCER)
    again = use(kept, "b", "c", "a")
    assert {producer.topic for producer in again} == {"a", "b", "c"}
    assert set(first) < set(again)
    assert len(broker.commands(Type.PRODUCER)) == 3


def test_what_was_not_given_back_is_not_used_again(broker: FakeBroker, kept: OpenProducers) -> None:
    (mine,) = kept.open(["a"])
    (another,) = kept.open(["a"])
    assert mine is not another
    kept.give_back([mine])
    kept.give_back([another])
    assert kept.open(["a"]) == [mine]
    assert not another.is_idle, "a second one for the same topic is given up"


def test_one_with_a_frame_under_way_is_never_used_again(broker: FakeBroker, kept: OpenProducers) -> None:
    (producer,) = kept.open(["a"])
    broker.handlers[Type.SEND] = silent
    producer.send(CHUNK, TXN)
    assert not producer.is_idle
    kept.give_back([producer])
    (fresh,) = kept.open(["a"])
    assert fresh is not producer
    with pytest.raises(NetworkError, match="was given up"):
        producer.flush()


def test_one_that_the_broker_closed_meanwhile_is_opened_anew(broker: FakeBroker, kept: OpenProducers) -> None:
    (used,) = use(kept, "a")
    number = broker.commands(Type.PRODUCER)[0].producer.producer_id
    broker.sessions[-1].send(
        BaseCommand(
            type=Type.CLOSE_PRODUCER, close_producer=CommandCloseProducer(producer_id=number, request_id=2**64 - 1)
        )
    )
    until(lambda: not used.is_idle)
    assert use(kept, "a") != [used]
    assert len(broker.commands(Type.PRODUCER)) == 2


def test_a_lost_connection_ends_them_all(broker: FakeBroker, kept: OpenProducers) -> None:
    (used,) = use(kept, "a")
    broker.sessions[-1].cut()
    until(lambda: not used.is_idle)
    (again,) = use(kept, "a")
    assert again is not used


def test_when_one_can_t_be_opened_the_kept_ones_stay(broker: FakeBroker, kept: OpenProducers) -> None:
    (used,) = use(kept, "a")
    broker.handlers[Type.PRODUCER] = refusing(ServerError.AuthorizationError)
    with pytest.raises(Refused):
        kept.open(["a", "b"])
    assert kept.open(["a"]) == [used]


def test_no_more_than_the_limit_are_kept_and_the_least_recently_used_goes_first(
    broker: FakeBroker, client: Client
) -> None:
    kept = OpenProducers(client, MIB, limit=2)
    first, second = use(kept, "a"), use(kept, "b")
    use(kept, "a")
    third = use(kept, "c")
    assert [producer.is_idle for producer in (*first, *second, *third)] == [True, False, True]


def test_closing_gives_all_of_them_up(broker: FakeBroker, kept: OpenProducers) -> None:
    used = use(kept, "a", "b")
    kept.close()
    assert not any(producer.is_idle for producer in used)
    (again,) = use(kept, "a")
    assert again not in used
