from __future__ import annotations

import pytest

from eos.errors import Fenced, NetworkError, OutOfTurn, Refused
from eos.pulsar.protocol.producer import ProducerIdentity, ProducerSession, State
from eos.pulsar.protocol.requests import Type
from eos.pulsar.protocol.schemas import Declared
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandError,
    CommandProducerSuccess,
    CommandSendError,
    CommandSendReceipt,
    CommandSuccess,
    MessageIdData,
    ProducerAccessMode,
    Schema,
    ServerError,
)

SUCCESS = BaseCommand(type=Type.SUCCESS, success=CommandSuccess())


def error(code: ServerError, message: str) -> BaseCommand:
    return BaseCommand(type=Type.ERROR, error=CommandError(error=code, message=message))


def opened(**fields: object) -> BaseCommand:
    success = CommandProducerSuccess(producer_name="p-1", **fields)  # type: ignore[arg-type]
    return BaseCommand(type=Type.PRODUCER_SUCCESS, producer_success=success)


def receipt(sequence_id: int, ledger: int = 5, entry: int = 0) -> CommandSendReceipt:
    where = MessageIdData(ledger_id=ledger, entry_id=entry)
    return CommandSendReceipt(producer_id=1, sequence_id=sequence_id, message_id=where)


def line(**fields: object) -> ProducerSession:
    producer = ProducerSession("t", 1, "pulsar://b:6650")
    producer.open("shared", None, None)
    producer.opened(opened(**fields), "open")
    return producer


def test_open_asks_for_a_fresh_name_unless_one_is_given() -> None:
    fresh = ProducerSession("t", 1, "b").open("shared", None, None).producer
    assert not fresh.HasField("producer_name")
    assert not fresh.user_provided_producer_name
    assert fresh.txn_enabled
    named = ProducerSession("t", 1, "b").open("exclusive-with-fencing", "me", 4).producer
    assert (named.producer_name, named.user_provided_producer_name, named.topic_epoch) == ("me", True, 4)
    assert named.producer_access_mode == ProducerAccessMode.ExclusiveWithFencing


def test_what_is_written_is_declared_and_its_version_is_known_once_opened() -> None:
    producer = ProducerSession("t", 1, "b")
    asked = producer.open("shared", None, None, Declared("AVRO", b"{}", (("a", "b"),))).producer.schema
    # The broker's classes demand a name and a type, though both are their fields' defaults.
    assert asked.HasField("name")
    assert (asked.type, asked.schema_data, asked.properties[0].key) == (Schema.Type.Avro, b"{}", "a")
    producer.opened(opened(schema_version=b"\0\0\0\0\0\0\0\5"), "open")
    assert producer.schema_version == b"\0\0\0\0\0\0\0\5"
    assert not ProducerSession("t", 1, "b").open("shared", None, None).producer.HasField("schema")
    assert line().schema_version == b""


def test_opened_tells_name_and_epoch() -> None:
    producer = line(topic_epoch=3)
    assert (producer.name, producer.topic_epoch, producer.state) == ("p-1", 3, State.READY)
    assert line().topic_epoch is None


def test_sequence_ids_count_messages_and_go_on_behind_the_last_known_one() -> None:
    producer = line(last_sequence_id=9)
    assert [producer.send(100, 5), producer.send(100, 1), producer.send(100, 1)] == [10, 15, 16]
    assert line().send(1, 1) == 0


def test_receipts_come_in_order_and_tell_where_the_frame_is() -> None:
    producer = line()
    producer.send(100, 3)
    producer.send(200, 3)
    assert producer.receipt(receipt(0, entry=1)) == (100, MessageId(5, 1))
    assert producer.unanswered == 1
    assert producer.receipt(receipt(3, entry=2)) == (200, MessageId(5, 2))
    assert producer.failure is None


@pytest.mark.parametrize("sequence_id", [1, 7])
def test_a_receipt_out_of_order_ends_the_producer(sequence_id: int) -> None:
    producer = line()
    producer.send(100, 1)
    producer.send(100, 1)
    assert producer.receipt(receipt(sequence_id)) is None
    assert producer.state is State.FAILED
    with pytest.raises(NetworkError, match=f"a receipt for frame {sequence_id} while frame 0 was the next"):
        producer.send(1, 1)


def test_a_receipt_for_nothing_ends_the_producer() -> None:
    producer = line()
    assert producer.receipt(receipt(0)) is None
    assert producer.state is State.FAILED


def test_a_dropped_duplicate_is_an_error() -> None:
    producer = line()
    producer.send(100, 1)
    assert producer.receipt(receipt(0, ledger=-1, entry=-1)) is None
    with pytest.raises(NetworkError, match="dropped by the broker as a duplicate"):
        producer.close()


def test_a_refused_send_ends_the_producer() -> None:
    producer = line()
    producer.send(100, 1)
    producer.send_error(CommandSendError(sequence_id=0, error=ServerError.PersistenceError, message="disk"))
    assert producer.state is State.FAILED
    with pytest.raises(Refused, match="PersistenceError: disk"):
        producer.send(1, 1)


def test_only_a_moved_epoch_means_fenced() -> None:
    message = "ProducerFencedException: Topic epoch has already moved. Current epoch: 2, Producer epoch: 1"
    producer = ProducerSession("t", 1, "b")
    producer.open("exclusive-with-fencing", None, 1)
    with pytest.raises(Fenced, match="already moved"):
        producer.opened(error(ServerError.ProducerFenced, message), "open")
    assert producer.state is State.FENCED
    for code in (ServerError.ProducerFenced, ServerError.ProducerBusy):
        other = ProducerSession("t", 1, "b")
        other.open("exclusive", None, None)
        with pytest.raises(Refused, match="existing exclusive producer"):
            other.opened(error(code, "Topic has an existing exclusive producer: p-0"), "open")
        assert other.state is State.FAILED


def test_a_send_refused_for_a_moved_epoch_means_fenced() -> None:
    producer = line()
    producer.send(1, 1)
    moved = CommandSendError(sequence_id=0, error=ServerError.ProducerFenced, message="Topic epoch has already moved")
    producer.send_error(moved)
    assert producer.state is State.FENCED
    with pytest.raises(Fenced):
        producer.close()


def test_closed_by_the_broker_ends_the_producer_and_counts_what_is_open() -> None:
    producer = line()
    producer.send(1, 1)
    producer.closed_by_broker()
    assert producer.state is State.CLOSED_BY_BROKER
    with pytest.raises(NetworkError, match="with 1 frames unacknowledged"):
        producer.send(1, 1)


def test_close_is_confirmed_and_nothing_can_be_sent_any_more() -> None:
    producer = line()
    assert producer.close().close_producer.producer_id == 1
    with pytest.raises(OutOfTurn):
        producer.send(1, 1)
    producer.closed(SUCCESS)
    assert producer.state is State.CLOSED
    with pytest.raises(OutOfTurn):
        producer.send(1, 1)


def test_a_close_confirmed_before_all_receipts_is_an_error() -> None:
    producer = line()
    producer.send(1, 1)
    producer.close()
    with pytest.raises(NetworkError, match="closed while 1 frames were unacknowledged"):
        producer.closed(SUCCESS)


def test_a_refused_close_is_an_error() -> None:
    producer = line()
    producer.close()
    with pytest.raises(Refused, match="close the producer on t"):
        producer.closed(error(ServerError.UnknownError, "?"))
    assert producer.state is State.FAILED


def test_a_lost_connection_ends_it_once() -> None:
    producer = line()
    first = NetworkError("first")
    producer.lost(first)
    producer.lost(NetworkError("second"))
    assert producer.failure is first


# ---- who a producer is


def test_a_part_adds_its_role_and_what_is_known_of_it() -> None:
    whole = ProducerIdentity("flights", {"eos.sink": "flights"}, encrypted=True)
    part = whole.part("batch-8-task-3", **{"eos.task": "3"})
    assert part.fresh_name().startswith("flights:batch-8-task-3:")
    assert part.properties == {"eos.sink": "flights", "eos.task": "3"}
    assert part.encrypted
    assert whole.properties == {"eos.sink": "flights"}


def test_no_two_names_are_the_same() -> None:
    one = ProducerIdentity("flights")
    assert len({one.fresh_name() for _ in range(1_000)}) == 1_000
