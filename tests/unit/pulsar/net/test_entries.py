"""The reader of entries against a scripted broker that has a topic."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eos.errors import ConnectionLost, DamagedFrame, EntriesGone, EosError, Refused, TopicMissing
from eos.pulsar.net import entries
from eos.pulsar.net.client import Client
from eos.pulsar.net.connection import Connection, Listener
from eos.pulsar.net.entries import EntryReader
from eos.pulsar.net.permits import OVERSHOOT_BYTES
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.frames import Frame
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import BaseCommand, ServerError
from tests.unit.pulsar.net.clock import Clock
from tests.unit.pulsar.net.fake_broker import FakeBroker, Session, cut, first_then_well, refusing
from tests.unit.pulsar.net.stored_topic import LEDGER, Stored, closed, cut_off, ten
from tests.waiting import PATIENCE_S, until


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


@pytest.mark.parametrize("tell", ["lost", "received"])
def test_news_of_a_lost_connection_that_comes_late_is_not_of_the_next_one(
    broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch, tell: str
) -> None:
    """Who waits for an answer is told first, and may have joined again: else that consumer would stay at the broker."""
    late: list[Listener] = []
    end = Connection._end

    def end_and_tell_no_consumer(connection: Connection, why: EosError) -> None:
        late.extend(connection._consumers.values())
        connection._consumers.clear()
        end(connection, why)

    monkeypatch.setattr(Connection, "_end", end_and_tell_no_consumer)
    ten(broker)
    answer = broker.handlers[Type.GET_LAST_MESSAGE_ID]
    with client.entry_reader("t", EntryId(LEDGER, 0)) as reader:
        read(reader, 10)
        handlers = iter([cut, answer, answer, answer])
        broker.handlers[Type.GET_LAST_MESSAGE_ID] = lambda session, frame: next(handlers)(session, frame)
        reader.last_message_id()
        (listener,) = late
        if tell == "lost":
            listener.lost(ConnectionLost("gone"))
        else:
            listener.received([Frame(BaseCommand(type=Type.CLOSE_CONSUMER))])
        reader.last_message_id()
        assert len(broker.commands(Type.SUBSCRIBE)) == 2


def test_a_broker_that_cannot_say_where_the_topic_ends_is_asked_with_pauses_for_the_request_time_out(
    broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while the newest message can't be read, since its bookies are down."""
    ten(broker)
    answer = broker.handlers[Type.GET_LAST_MESSAGE_ID]
    clock = Clock()
    for module in ("eos.pulsar.net.entries", "eos.backoff"):
        monkeypatch.setattr(f"{module}.time", clock)
    broker.handlers[Type.GET_LAST_MESSAGE_ID] = refusing(ServerError.MetadataError, "Failed to get batch size")
    with client.entry_reader("t", None) as reader:
        for _ in range(2):
            with pytest.raises(ConnectionLost, match=r"the broker could not say for 30 s.*batch size"):
                reader.read(60)
        assert 58 < clock.passed <= 60
        assert len(broker.commands(Type.SUBSCRIBE)) < 80
        broker.handlers[Type.GET_LAST_MESSAGE_ID] = answer
        assert numbers(read(reader, 10)) == list(range(10))


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
        with pytest.raises(
            DamagedFrame, match=r"^entry 1:3 of persistent://public/default/t can't be read: its checksum is wrong"
        ):
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


class Slow(Stored):
    """A topic whose broker sends its first entry by itself, and each further one when it is told to."""

    def __init__(self, broker: FakeBroker) -> None:
        super().__init__(broker, [b"x" * 100] * 40)
        self._to: tuple[Session, int] | None = None
        self._sent = 0

    def _flow(self, session: Session, frame: Frame) -> None:
        self.granted.append(frame.command.flow.message_permits)
        if self._to is None:
            self._to = session, frame.command.flow.consumer_id
            self.send()

    def send(self) -> None:
        """Send the next entry."""
        assert self._to is not None
        session, number = self._to
        entry, self._sent = self._sent, self._sent + 1  # before another thread can have seen it
        session._socket.sendall(self._message(number, entry))


class Pauses(Clock):
    """Stands for the module `time` in the reader's. Attributes: what happens in a pause; how many there were."""

    def __init__(self, happens: Callable[[], None]) -> None:
        super().__init__()
        self.happens = happens
        self.count = 0

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.count += 1
        self.happens()


@pytest.fixture
def topic(broker: FakeBroker) -> Slow:
    return Slow(broker)


def pauses(reader: EntryReader, topic: Slow, monkeypatch: pytest.MonkeyPatch) -> Pauses:
    """Let an entry come in each pause from now on."""

    def one_more() -> None:
        held = reader._permits.held_bytes
        topic.send()
        until(lambda: reader._permits.held_bytes > held, "no entry came")

    made = Pauses(one_more)
    monkeypatch.setattr(entries, "time", made)
    return made


def test_entries_are_gathered_up_to_the_last_one_that_is_wanted(
    topic: Slow, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with client.entry_reader("t", EntryId(LEDGER, 0)) as reader:
        made = pauses(reader, topic, monkeypatch)
        assert [one.id.entry for one in reader.read(PATIENCE_S, EntryId(LEDGER, 9))] == list(range(10))
    assert made.count == 9, "there is no pause after the last one"


def test_what_is_there_is_handed_out_at_once_where_no_end_is_known(
    topic: Slow, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with client.entry_reader("t", EntryId(LEDGER, 0)) as reader:
        made = pauses(reader, topic, monkeypatch)
        assert [one.id.entry for one in reader.read(PATIENCE_S)] == [0]
    assert made.count == 0


def test_enough_is_enough(topic: Slow, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "_ENOUGH_BYTES", 300)
    with client.entry_reader("t", EntryId(LEDGER, 0)) as reader:
        made = pauses(reader, topic, monkeypatch)
        assert [one.id.entry for one in reader.read(PATIENCE_S, EntryId(LEDGER, 9))] == [0, 1, 2]
    assert made.count == 2


def test_nothing_is_waited_for_that_no_permit_is_left_for(
    topic: Slow, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with client.entry_reader("t", EntryId(LEDGER, 0), permits=1) as reader:
        made = pauses(reader, topic, monkeypatch)
        assert [one.id.entry for one in reader.read(PATIENCE_S, EntryId(LEDGER, 9))] == [0]
    assert made.count == 0


def test_some_pauses_in_a_row_without_an_entry_end_it(
    topic: Slow, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with client.entry_reader("t", EntryId(LEDGER, 0)) as reader:
        made = pauses(reader, topic, monkeypatch)
        comes = made.happens
        made.happens = lambda: comes() if made.count in (5, 12) else None
        assert [one.id.entry for one in reader.read(PATIENCE_S, EntryId(LEDGER, 9))] == [0, 1, 2]
    assert made.count == 12 + entries._PAUSES


def test_a_lost_line_is_not_waited_for(
    topic: Slow, broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with client.entry_reader("t", EntryId(LEDGER, 0)) as reader:
        made = pauses(reader, topic, monkeypatch)

        def cut() -> None:
            broker.cut_all()
            until(lambda: reader._joined is not None and reader._joined[0].failure is not None, "it is not lost")
            topic._to, topic._sent = None, 0
            made.happens = lambda: None

        made.happens = cut
        broker.handlers[Type.FLOW] = topic._flow
        assert reader.read(PATIENCE_S, EntryId(LEDGER, 9))
    assert made.count == 1, "the line after it has one permit"
