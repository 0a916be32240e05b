"""What is found of a batch on topics that hold other things too, and what of it nobody knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from eos.delivery.digest import RowDigest
from eos.delivery.numbering import Numbering, first_number
from eos.delivery.stored import Found, Positions, look
from eos.errors import DamagedLog, StaleBatch
from eos.pulsar.wire.batch import BatchEncoder, Chunk
from eos.pulsar.wire.compression import TYPES
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata

TOPIC = "persistent://public/default/t"
START = EntryId(5, 0)
TASK, OTHER_TASK = (Numbering("flights", 7, 0).name(place) for place in ("1", "2"))


def chunk(*values: str) -> Chunk:
    (only,) = BatchEncoder().chunks(pa.record_batch({"value": pa.array(values)}))
    return only


def digest(*values: str) -> str:
    taken = RowDigest()
    taken.take_chunk(chunk(*values))
    return taken.text


@dataclass
class Topic:
    """A topic of ledger 5 and later ones; it is also the client's reader of it, and the admin API."""

    entries: list[Entry] = field(default_factory=list)
    ledgers_left: Sequence[int] = (5, 6)
    shown: int = 2
    cut_off: bool = False
    start: EntryId | None = None

    def store(self, name: str, batch_id: int, number: int, *values: str) -> Topic:
        made = chunk(*values)
        metadata = MessageMetadata(
            producer_name=name,
            sequence_id=first_number(batch_id) + number,
            num_messages_in_batch=made.messages,
            compression=TYPES[made.compression],
            uncompressed_size=made.uncompressed_size,
        )
        self.entries.append(Entry(EntryId(5, len(self.entries)), metadata, made.payload, 9, TOPIC))
        return self

    def entry_reader(self, topic: str, start: EntryId | None, **_: object) -> Topic:
        self.start, self._next = start, 0 if start is None else start.entry
        return self

    def __enter__(self) -> Topic:
        return self

    def __exit__(self, *_: object) -> None: ...

    def close(self) -> None: ...

    def last_message_id(self) -> tuple[EntryId | None, EntryId | None]:
        gone = self.cut_off and self._next > 0
        return (self.entries[-1].id if self.entries and not gone else None), None

    def read(self, timeout_s: float) -> list[Entry]:
        """Give some at a time, and a silence where the rest is deleted."""
        read = [] if self.cut_off and self._next else self.entries[self._next : self._next + self.shown]
        self._next += self.shown
        return read

    def ledgers(self, topic: str) -> list[Any]:
        return [SimpleNamespace(id=number) for number in self.ledgers_left]


def found(topic: Topic, batch_id: int = 7, since: EntryId = START, begun: int = 7) -> Found:
    either: Any = topic
    return look(either, either, "flights", batch_id, begun, {TOPIC: since})


def test_the_rows_of_each_writer_are_found_behind_the_position_and_no_others() -> None:
    topic = Topic().store(TASK, 7, 0, "before the position: of another time")
    topic.store(TASK, 6, 0, "of the batch before").store(TASK, 7, 0, "a", "b").store("somebody", 7, 0, "else")
    topic.store(OTHER_TASK, 7, 0, "x").store(TASK, 7, 2, "c")
    result = found(topic)
    assert topic.start == EntryId(5, 0)
    assert result.kept == {(0, "1", TOPIC): (3, digest("a", "b", "c")), (0, "2", TOPIC): (1, digest("x"))}
    assert (result.rows, result.deleted_from) == (4, ())
    assert result.of(0)["1"] == {TOPIC: (3, digest("a", "b", "c"))}
    assert result.of(1) == {}


def test_a_topic_that_was_empty_is_read_from_its_beginning() -> None:
    topic = Topic().store(TASK, 7, 0, "a")
    assert found(topic, since=EntryId(5, -1)).rows == 1
    assert topic.start is None
    assert found(Topic(), since=EntryId(5, -1)) == Found()


def test_rows_of_a_later_batch_are_ahead_of_the_checkpoint() -> None:
    topic = Topic().store("x", 0, 0, "start").store(TASK, 8, 0, "a")
    with pytest.raises(StaleBatch, match=r"batch 7, and entry 5:1 of .* holds rows of batch 8"):
        found(topic)
    topic.entries[-1].metadata.producer_name = Numbering("others", 7, 0).name("1")
    assert found(topic).rows == 0


def test_rows_of_a_batch_that_this_checkpoint_has_not_begun_are_ahead_of_it_too() -> None:
    """A query went on while its checkpoint was rescaled: this one was to write the input of batch 6 as batch 7."""
    topic = Topic().store("x", 0, 0, "start").store(TASK, 6, 0, "a")
    with pytest.raises(StaleBatch, match=r"batch 7, and entry 5:1 of .* holds rows of batch 6 .* batch 5 was begun"):
        found(topic, begun=5)
    assert found(topic, begun=6).rows == 0


@pytest.mark.parametrize("number", [1, 5])
def test_rows_whose_beginning_is_gone_can_t_be_compared(number: int) -> None:
    topic = Topic().store("x", 0, 0, "start").store(TASK, 7, number, "b", "c")
    with pytest.raises(DamagedLog, match=f"from number {number} on, and none from number 0 on"):
        found(topic)


def test_rows_may_be_deleted_where_the_ledger_of_the_position_is_gone() -> None:
    topic = Topic(ledgers_left=[6, 7]).store("x", 0, 0, "start").store(TASK, 7, 0, "a")
    result = found(topic)
    assert (result.rows, result.deleted_from) == (1, (TOPIC,))


def test_what_is_deleted_while_it_is_read_is_not_waited_for() -> None:
    topic = Topic(cut_off=True, ledgers_left=[9])
    for number in range(4):
        topic.store(TASK, 7, number, "a")
    result = found(topic, since=EntryId(4, 0))
    assert (result.rows, result.deleted_from) == (2, (TOPIC,))


def test_positions_are_the_last_entries_or_the_newest_ledger_of_an_empty_topic() -> None:
    topic: Any = Topic().store("x", 0, 0, "start")
    empty: Any = Topic()
    assert Positions(topic, topic).now([TOPIC]) == {TOPIC: EntryId(5, 0)}
    positions = Positions(empty, empty)
    assert positions.now([TOPIC]) == {TOPIC: EntryId(6, -1)}
    positions.close()
    assert positions.now([TOPIC]) == {TOPIC: EntryId(6, -1)}
