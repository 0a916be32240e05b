"""How long a read waits when nothing comes: until the broker has not got on for a while."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from eos.errors import InvalidInput, Refused, Unanswered
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata
from eos.source.chunked_messages import whole_messages
from eos.source.offsets import Position
from eos.source.range_reader import first_behind, read_range
from eos.source.ranges import Range
from eos.source.silence import LONG_SILENCE, SILENCE_S, ReadTimeout
from tests.unit.source.fake_brokers import at

LIMIT_S = 40.0
END = at("5:900")
HIDDEN_S = 3 * LIMIT_S
"""How long the broker is silent after the first message, where it is not silent for ever."""


@dataclass
class Broker:
    """A topic whose first message comes at once, and the last one after a while or never.

    Attributes:
        comes_s: when the last one comes, of a reader that does not begin with it.
        stands: where a reader stands that begins between the two, by the seconds that have passed.
        room: how many consumers the topic has room for.
        given_beside: whether messages come to a reader that begins between the two.
    """

    comes_s: float = float("inf")
    stands: Callable[[float], EntryId | None] = lambda _: at("5:3")
    room: int = 3
    given_beside: bool = False
    now_s: float = 0.0
    open_now: int = 0
    most_open: int = 0
    stopped: set[int] = field(default_factory=set)
    """At which reads the process is stopped for an hour."""
    reads: int = 0

    def open(self, topic: str, start: EntryId | None, permits: int | None, *, stored: bool = False) -> Reader:
        return Reader(self, start)


@dataclass
class Reader:
    broker: Broker
    start: EntryId | None
    joined: bool = False
    first_came: bool = False

    def read(self, timeout_s: float, until: EntryId | None = None) -> list[Entry]:
        self._join()
        broker = self.broker
        if self.start == at("5:3") and not self.first_came:
            self.first_came = True
            return [_entry("5:3")]
        broker.now_s += timeout_s
        broker.reads += 1
        if broker.reads in broker.stopped:
            broker.now_s += 3_600
        assert broker.now_s < 100_000, "it waits without end"
        if self.start == at("5:4") and broker.given_beside:
            return [_entry("5:7")]
        return [_entry("5:900")] if broker.now_s >= broker.comes_s or self.start == END else []

    def last_message_id(self) -> tuple[EntryId | None, EntryId | None]:
        self._join()
        return END, self.broker.stands(self.broker.now_s)

    def _join(self) -> None:
        if not self.joined:
            if self.broker.open_now == self.broker.room:
                raise Refused("subscribe", "ConsumerBusy", "too many consumers")
            self.joined = True
            self.broker.open_now += 1
            self.broker.most_open = max(self.broker.most_open, self.broker.open_now)

    def begin_again(self) -> None:
        """It goes on behind the last message that was handed out."""

    def close(self) -> None:
        self.broker.open_now -= self.joined


def _entry(text: str) -> Entry:
    return Entry(at(text), MessageMetadata(), b"", 1)


def fail(what: str) -> None:
    raise InvalidInput(what)


def read(broker: Broker) -> list[str]:
    part = Range("t", Position(at("5:3")), END)
    groups = read_range(part, broker.open, fail, timeout=ReadTimeout(LIMIT_S, lambda: broker.now_s))
    return [str(entry.id) for group in groups for entry in group]


def test_a_read_whose_broker_does_not_get_on_fails_and_says_what_is_known() -> None:
    broker = Broker()
    words = r"read t after 5:3: nothing came for 40 s \(read_timeout_s=40\), although 5:900 is stored\. Whether data"
    with pytest.raises(Unanswered, match=words):
        read(broker)
    assert broker.open_now == 0, "it leaves the topic"


def test_a_message_within_the_time_begins_it_again() -> None:
    assert read(Broker(comes_s=LIMIT_S - 1)) == ["5:900"]
    with pytest.raises(Unanswered):
        read(Broker(comes_s=HIDDEN_S))


def test_a_broker_that_skips_is_waited_for_as_long_as_it_gets_on() -> None:
    broker = Broker(comes_s=HIDDEN_S, stands=lambda now_s: EntryId(5, 3 + int(now_s)))
    assert read(broker) == ["5:900"]
    assert broker.open_now == 0
    stuck = Broker(comes_s=10 * HIDDEN_S, stands=lambda now_s: EntryId(5, 3 + min(60, int(now_s))))
    with pytest.raises(Unanswered, match="nothing came for 40 s"):
        read(stuck)
    assert 60 + LIMIT_S <= stuck.now_s < HIDDEN_S


def test_messages_that_come_to_another_reader_alone_start_the_time_again_once() -> None:
    broker = Broker(given_beside=True)
    with pytest.raises(Unanswered, match="nothing came for 40 s"):
        read(broker)
    assert broker.now_s >= LONG_SILENCE * SILENCE_S + LIMIT_S


def test_another_reader_looks_in_a_long_silence_only() -> None:
    for silent_s, most in (((LONG_SILENCE - 1) * SILENCE_S, 1), (LONG_SILENCE * SILENCE_S + 1, 2)):
        broker = Broker(comes_s=silent_s)
        read(broker)
        assert min(broker.most_open, 2) == most


def test_a_topic_with_room_for_one_reader_is_waited_for_as_long() -> None:
    part = Range("t", Position(at("5:3")), END, end_delivered=False)
    broker = Broker(room=1)
    with pytest.raises(Unanswered):
        list(read_range(part, broker.open, fail, timeout=ReadTimeout(LIMIT_S, lambda: broker.now_s)))


def test_the_time_of_a_process_that_was_stopped_does_not_count() -> None:
    assert read(Broker(comes_s=3_605.0, stopped={2})) == ["5:900"]


def test_the_first_message_and_earlier_chunks_are_not_waited_for_without_end() -> None:
    broker = Broker()
    timeout = ReadTimeout(LIMIT_S, lambda: broker.now_s)
    with pytest.raises(Unanswered, match="read t after 5:3: nothing came"):
        first_behind("t", at("5:4"), broker.open, timeout)
    broker = Broker()
    timeout = ReadTimeout(LIMIT_S, lambda: broker.now_s)
    chunk = Entry(END, MessageMetadata(uuid="u", chunk_id=1, num_chunks_from_msg=2, total_chunk_msg_size=2), b"x", 1)
    with pytest.raises(Unanswered, match="read t after "):
        list(whole_messages("t", iter([[chunk]]), broker.open, fail, lambda entry: entry, timeout=timeout))
