"""The reader of messages against a scripted broker that has a topic."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eos.errors import DamagedFrame, EntriesGone, TopicMissing
from eos.pulsar.net.client import Client, Reader
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.message_id import EARLIEST, MessageId
from eos.pulsar.wire.pulsar_pb2 import ServerError
from tests.unit.pulsar.net.fake_broker import FakeBroker, Session, refusing
from tests.unit.pulsar.net.stored_topic import LEDGER, Stored, closed, cut_off, ten
from tests.waiting import PATIENCE_S

Interrupt = Callable[[Session, int], bool]


def read(reader: Reader, count: int) -> list[bytes | None]:
    messages = [reader.read(PATIENCE_S) for _ in range(count)]
    return [None if message is None else message.data for message in messages]


def test_messages_come_in_order_and_none_when_nothing_comes(broker: FakeBroker, client: Client) -> None:
    ten(broker)
    with client.reader("t") as reader:
        assert read(reader, 10) == [b"%d" % number for number in range(10)]
        assert reader.read(0.05) is None
        assert reader.last_message_id() == MessageId(LEDGER, 9)


def test_an_empty_topic_has_no_last_message(broker: FakeBroker, client: Client) -> None:
    Stored(broker, [])
    with client.reader("t") as reader:
        assert reader.last_message_id() == EARLIEST
        assert reader.read(0) is None


def test_it_begins_behind_a_message(broker: FakeBroker, client: Client) -> None:
    ten(broker)
    with client.reader("t", after=MessageId(LEDGER, 6), stored=True) as reader:
        assert read(reader, 3) == [b"7", b"8", b"9"]


def test_a_message_that_must_be_stored_and_is_not_is_gone(broker: FakeBroker, client: Client) -> None:
    stored = ten(broker)
    stored.trim(8)
    with client.reader("t", after=MessageId(LEDGER, 6)) as reader:
        assert read(reader, 2) == [b"8", b"9"]
    with (
        client.reader("t", after=MessageId(LEDGER, 6), stored=True) as reader,
        pytest.raises(EntriesGone, match=r"from entry 1:6 on leaves out entries\. The broker gives 1:8"),
    ):
        reader.read(PATIENCE_S)


@pytest.mark.parametrize("interrupted", [cut_off, closed])
def test_it_goes_on_over_a_lost_connection(broker: FakeBroker, client: Client, interrupted: Interrupt) -> None:
    stored = ten(broker)
    stored.before[6] = interrupted
    with client.reader("t", permits=2) as reader:
        assert read(reader, 10) == [b"%d" % number for number in range(10)]


def test_a_position_that_is_moved_leaves_no_message_out(broker: FakeBroker, client: Client) -> None:
    stored = ten(broker)

    def moved(session: Session, number: int) -> bool:
        stored.move(session, number, 8)
        return False

    stored.before[4] = moved
    with client.reader("t", permits=2) as reader:
        assert read(reader, 10) == [b"%d" % number for number in range(10)]


def test_a_damaged_message_is_told_and_the_next_call_goes_on_behind_it(broker: FakeBroker, client: Client) -> None:
    stored = ten(broker)
    stored.garbled[3] = 100
    with client.reader("t") as reader:
        assert read(reader, 3) == [b"0", b"1", b"2"]
        with pytest.raises(DamagedFrame, match=r"^entry 1:3 of persistent://public/default/t can't be read"):
            reader.read(PATIENCE_S)
        assert read(reader, 6) == [b"%d" % number for number in range(4, 10)]


def test_a_reader_of_a_missing_topic(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.SUBSCRIBE] = refusing(ServerError.TopicNotFound)
    with pytest.raises(TopicMissing):
        client.reader("t").read(PATIENCE_S)
