"""The reader of entries against a scripted broker that has a topic."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eos.errors import ConnectionLost, DamagedFrame, EntriesGone, Refused, TopicMissing
from eos.pulsar.net.client import Client
from eos.pulsar.net.entries import EntryReader
from eos.pulsar.net.permits import OVERSHOOT_BYTES
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.frames import Frame, encode_message
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandCloseConsumer,
    CommandGetLastMessageIdResponse,
    CommandMessage,
    MessageIdData,
    MessageMetadata,
    ServerError,
)
from tests.unit.pulsar.net.clock import Clock
from tests.unit.pulsar.net.fake_broker import FakeBroker, Session, answer_well, cut, first_then_well, refusing
from tests.waiting import PATIENCE_S, until

LEDGER = 1


class Stored:
    """A topic of the scripted broker: it begins at the start id and sends as long as it has permits.

    Attributes:
        payloads: of the entries, each a batch of `messages`.
        before: {entry: what to do before it is sent, once}; True: send it all the same.
        garbled: entries that go out with a wrong byte, so many times.
        heeds_permits: whether it stops at none.
        stands: by session and consumer, the entry up to which the consumer's mark-delete position has come.
    """

    def __init__(self, broker: FakeBroker, payloads: list[bytes], messages: int = 1) -> None:
        self.payloads = payloads
        self.messages = messages
        self.before: dict[int, Callable[[Session, int], bool]] = {}
        self.garbled: dict[int, int] = {}
        self.heeds_permits = True
        self.granted: list[int] = []
        self.stands: dict[tuple[int, int], int] = {}
        self.trimmed = 0
        self._consumers: dict[tuple[int, int], list[int]] = {}
        broker.handlers[Type.SUBSCRIBE] = self._subscribe
        broker.handlers[Type.FLOW] = self._flow
        broker.handlers[Type.CLOSE_CONSUMER] = self._close
        broker.handlers[Type.GET_LAST_MESSAGE_ID] = self._last

    def trim(self, entries: int) -> None:
        """Delete so many entries from the front."""
        self.trimmed = entries

    def move(self, session: Session, number: int, to: int) -> None:
        """Move the position of a consumer, so that it goes on with an entry."""
        self.stands[id(session), number] = to - 1
        self._consumers[id(session), number][0] = to

    def _subscribe(self, session: Session, frame: Frame) -> None:
        wanted = frame.command.subscribe
        begin = max(self.trimmed, wanted.start_message_id.entry_id)
        self._consumers[id(session), wanted.consumer_id] = [begin, 0]
        self.stands[id(session), wanted.consumer_id] = begin - 1
        answer_well(session, frame)

    def _close(self, session: Session, frame: Frame) -> None:
        del self._consumers[id(session), frame.command.close_consumer.consumer_id]
        answer_well(session, frame)

    def _flow(self, session: Session, frame: Frame) -> None:
        self.granted.append(frame.command.flow.message_permits)
        number = frame.command.flow.consumer_id
        consumer = self._consumers.get((id(session), number))
        if consumer is None:
            return
        consumer[1] += frame.command.flow.message_permits
        while (consumer[1] > 0 or not self.heeds_permits) and consumer[0] < len(self.payloads):
            what = self.before.pop(consumer[0], None)
            if what is not None and not what(session, number):
                return
            session._socket.sendall(self._message(number, consumer[0]))
            consumer[0] += 1
            consumer[1] -= self.messages

    def _message(self, number: int, entry: int) -> bytes:
        where = MessageIdData(ledger_id=LEDGER, entry_id=entry)
        command = BaseCommand(type=Type.MESSAGE, message=CommandMessage(consumer_id=number, message_id=where))
        metadata = MessageMetadata(producer_name="p", sequence_id=entry, publish_time=1)
        if self.messages > 1:
            metadata.num_messages_in_batch = self.messages
        frame = bytearray(b"".join(encode_message(command, metadata, [self.payloads[entry]])))
        if self.garbled.get(entry):
            self.garbled[entry] -= 1
            frame[-1] ^= 1
        return bytes(frame)

    def _last(self, session: Session, frame: Frame) -> None:
        last = MessageIdData(ledger_id=LEDGER if self.payloads else -1, entry_id=len(self.payloads) - 1)
        asked = id(session), frame.command.get_last_message_id.consumer_id
        stands = MessageIdData(ledger_id=LEDGER, entry_id=self.stands.get(asked, -1))
        told = CommandGetLastMessageIdResponse(last_message_id=last, consumer_mark_delete_position=stands)
        session.answer(
            frame.command, BaseCommand(type=Type.GET_LAST_MESSAGE_ID_RESPONSE, get_last_message_id_response=told)
        )


def cut_off(session: Session, number: int) -> bool:
    session.cut()
    return False


def closed(session: Session, number: int) -> bool:
    """Close the consumer, as when the topic moves."""
    closing = CommandCloseConsumer(consumer_id=number)
    session.send(BaseCommand(type=Type.CLOSE_CONSUMER, close_consumer=closing))
    return False


def read(reader: EntryReader, count: int) -> list[Entry]:
    entries: list[Entry] = []
    while len(entries) < count:
        more = reader.read(PATIENCE_S)
        assert more
        entries += more
    return entries


def numbers(entries: list[Entry]) -> list[int]:
    assert all(entry.payload == b"%d" % entry.id.entry for entry in entries)
    return [entry.id.entry for entry in entries]


def ten(broker: FakeBroker) -> Stored:
    return Stored(broker, [b"%d" % entry for entry in range(10)])


def test_entries_come_from_the_start_on_and_silence_is_an_empty_list(broker: FakeBroker, client: Client) -> None:
    ten(broker)
    with client.entry_reader("t", EntryId(LEDGER, 4)) as reader:
        assert numbers(read(reader, 6)) == [4, 5, 6, 7, 8, 9]
        assert reader.read(0.05) == []
        assert reader.last_message_id() == (EntryId(LEDGER, 9), EntryId(LEDGER, 3))
    assert len(broker.commands(Type.CLOSE_CONSUMER)) == 1


def test_one_consumer_reads_on_as_long_as_nothing_is_lost_or_moved(broker: FakeBroker, client: Client) -> None:
    ten(broker)
    with client.entry_reader("t", EntryId(LEDGER, 0), permits=2) as reader:
        assert numbers(read(reader, 10)) == list(range(10))
    assert len(broker.commands(Type.GET_LAST_MESSAGE_ID)) > 1
    assert len(broker.commands(Type.SUBSCRIBE)) == 1


def test_an_empty_topic_has_no_last_message(broker: FakeBroker, client: Client) -> None:
    Stored(broker, [])
    assert client.entry_reader("t", None).last_message_id() == (None, EntryId(LEDGER, -1))


@pytest.mark.parametrize("loss", [cut_off, closed])
@pytest.mark.parametrize("at", [0, 1, 9])
def test_a_lost_consumer_is_made_anew_within_the_call(
    broker: FakeBroker, client: Client, loss: Callable[[Session, int], bool], at: int
) -> None:
    ten(broker).before[at] = loss
    with client.entry_reader("t", EntryId(LEDGER, 0)) as reader:
        assert numbers(read(reader, 10)) == list(range(10))
    names = [command.subscribe.subscription for command in broker.commands(Type.SUBSCRIBE)]
    assert len(names) == len(set(names)) >= 2, "a half-open connection may still hold the name before"


def test_a_consumer_that_is_lost_at_each_entry_loses_and_doubles_nothing(broker: FakeBroker, client: Client) -> None:
    topic = ten(broker)
    topic.before = dict.fromkeys(range(10), cut_off)
    with client.entry_reader("t", None, permits=1) as reader:
        assert numbers(read(reader, 10)) == list(range(10))


def test_a_broker_that_is_away_for_a_moment_is_waited_for(broker: FakeBroker, client: Client) -> None:
    ten(broker).before[5] = cut_off
    with client.entry_reader("t", None) as reader:
        entries = reader.read(PATIENCE_S)
        broker.handlers[Type.LOOKUP] = first_then_well(cut)
        entries += read(reader, 10 - len(entries))
    assert numbers(entries) == list(range(10))


def test_a_broker_that_stays_away_is_an_error_after_the_request_time_out(
    broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    ten(broker)
    clock = Clock()
    for module in ("eos.pulsar.net.entries", "eos.backoff"):
        monkeypatch.setattr(f"{module}.time", clock)
    with client.entry_reader("t", None) as reader:
        read(reader, 10)
        broker.handlers[Type.LOOKUP] = cut
        broker.cut_all()
        with pytest.raises(ConnectionLost, match="look up persistent://public/default/t"):
            reader.read(60)
        assert 28 < clock.passed <= 30


def test_the_last_message_is_asked_for_again_when_the_consumer_was_lost(broker: FakeBroker, client: Client) -> None:
    ten(broker)
    answer = broker.handlers[Type.GET_LAST_MESSAGE_ID]
    handlers = iter([cut, answer])
    broker.handlers[Type.GET_LAST_MESSAGE_ID] = lambda session, frame: next(handlers)(session, frame)
    assert client.entry_reader("t", None).last_message_id() == (EntryId(LEDGER, 9), EntryId(LEDGER, -1))


def test_a_topic_that_vanished_is_missing(broker: FakeBroker, client: Client) -> None:
    def vanishes(session: Session, number: int) -> bool:
        broker.handlers[Type.SUBSCRIBE] = refusing(ServerError.TopicNotFound)
        return closed(session, number)

    ten(broker).before[3] = vanishes
    with client.entry_reader("t", EntryId(LEDGER, 0), permits=3) as reader, pytest.raises(TopicMissing):
        read(reader, 10)


def test_a_refusal_is_an_error_at_once(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.SUBSCRIBE] = refusing(ServerError.AuthorizationError)
    with pytest.raises(Refused, match="AuthorizationError"):
        client.entry_reader("t", None).read(PATIENCE_S)


def test_bytes_that_were_damaged_on_the_way_are_read_again(broker: FakeBroker, client: Client) -> None:
    ten(broker).garbled[3] = 2
    with client.entry_reader("t", None) as reader:
        assert numbers(read(reader, 10)) == list(range(10))


def test_bytes_that_stay_damaged_are_an_error_that_says_where_and_others_come_behind_them(
    broker: FakeBroker, client: Client
) -> None:
    ten(broker).garbled[3] = 1000
    with client.entry_reader("t", None) as reader:
        entries = read(reader, 10)
        assert [entry.id.entry for entry in entries] == list(range(10))
        assert numbers(entries[:3] + entries[4:]) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
        with pytest.raises(DamagedFrame, match=r"^entry 1:3 of persistent://public/default/t can't be read: checksum"):
            _ = entries[3].payload


def test_consumers_lost_one_after_another_are_an_error(broker: FakeBroker, client: Client) -> None:
    topic = ten(broker)

    def always(session: Session, number: int) -> bool:
        topic.before[3] = always
        return closed(session, number)

    topic.before[3] = always
    with client.entry_reader("t", None) as reader:
        assert numbers(read(reader, 3)) == [0, 1, 2]
        with pytest.raises(
            ConnectionLost, match=r"behind entry 1:2: 5 consumers in a row were lost.* closed by the broker"
        ):
            reader.read(PATIENCE_S)


def test_the_broker_gets_permits_for_the_bytes_that_may_wait(broker: FakeBroker, client: Client) -> None:
    topic = Stored(broker, [b"x" * 9_940] * 1000, messages=10)
    with client.entry_reader("t", None, max_bytes=200_000) as reader:
        read(reader, 1000)
    assert topic.granted[0] == 100
    # 1,000 bytes a message, with what describes them
    assert all(permits <= 210 for permits in topic.granted)
    assert sum(topic.granted) >= 10_000


def test_more_than_may_wait_is_dropped_and_read_again(broker: FakeBroker, client: Client) -> None:
    size = 500_000
    count = 2 * OVERSHOOT_BYTES // size
    topic = Stored(broker, [b"%03d" % entry + b"x" * (size - 3) for entry in range(count)])
    topic.heeds_permits = False
    with client.entry_reader("t", None, max_bytes=1) as reader:
        first = reader.read(PATIENCE_S)
        until_held(reader)
        entries = first + read(reader, count - len(first))
        assert [entry.id.entry for entry in entries] == list(range(count))
    assert len(broker.commands(Type.SUBSCRIBE)) > 1


def until_held(reader: EntryReader) -> None:
    """Wait until so much was sent that some of it had to be dropped; what is held stays within the bound."""
    until(lambda: reader._permits.overdrawn)
    assert reader._permits.held_bytes <= 2 + OVERSHOOT_BYTES


@pytest.mark.parametrize("start", [None, EntryId(LEDGER, 0)])
def test_a_position_that_is_moved_is_noticed_and_what_was_left_out_is_read(
    broker: FakeBroker, client: Client, start: EntryId | None
) -> None:
    """As a message TTL does: the broker goes on behind entries that are stored, and its mark-delete position tells."""
    topic = ten(broker)

    def skip_to_7(session: Session, number: int) -> bool:
        topic.move(session, number, 7)
        return False

    topic.before[3] = skip_to_7
    with client.entry_reader("t", start, permits=3) as reader:
        assert numbers(read(reader, 10)) == list(range(10))


def test_entries_that_are_gone_are_an_error_that_says_where_and_what_is_left_comes(
    broker: FakeBroker, client: Client
) -> None:
    topic = ten(broker)
    with client.entry_reader("t", EntryId(LEDGER, 2), permits=2, stored=True) as reader:
        topic.trim(5)
        with pytest.raises(EntriesGone, match=r"from entry 1:2 on leaves out entries\. The broker gives 1:5") as gone:
            reader.read(PATIENCE_S)
        assert (gone.value.after, gone.value.found) == (EntryId(LEDGER, 2), EntryId(LEDGER, 5))
        assert numbers(read(reader, 5)) == [5, 6, 7, 8, 9]
