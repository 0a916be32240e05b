"""A consumer's line for whole entries."""

from __future__ import annotations

import pytest

from eos.errors import NetworkError
from eos.pulsar.protocol.entries import EntrySession
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandGetLastMessageIdResponse,
    CommandSubscribe,
    CommandSuccess,
    MessageIdData,
    MessageMetadata,
)


def entry(number: int) -> Entry:
    return Entry(EntryId(3, number), MessageMetadata(num_messages_in_batch=5), b"payload", 20)


def joined(start: EntryId | None = None, reached: EntryId | None = None) -> EntrySession:
    line = EntrySession("t", 1, "b", start, reached)
    line.read("s")
    line.subscribed(BaseCommand(type=Type.SUCCESS, success=CommandSuccess()))
    return line


@pytest.mark.parametrize(
    ("start", "reached", "begins"),
    [
        (None, None, EntryId(-1, -1)),
        (EntryId(3, 4), None, EntryId(3, 4)),
        (EntryId(3, 4), EntryId(3, 9), EntryId(3, 9)),
        (None, EntryId(3, 9), EntryId(3, 9)),
    ],
)
def test_it_begins_at_its_start_or_where_the_last_line_was(
    start: EntryId | None, reached: EntryId | None, begins: EntryId
) -> None:
    subscribe = EntrySession("t", 1, "b", start, reached).read("s").subscribe
    assert EntryId.read(subscribe.start_message_id) == begins
    assert not subscribe.start_message_id.HasField("batch_index")
    assert not subscribe.durable
    assert subscribe.sub_type == CommandSubscribe.SubType.Exclusive
    assert not subscribe.force_topic_creation
    assert not subscribe.read_compacted


def test_it_can_read_what_compaction_left() -> None:
    """At EARLIEST the broker puts it after what compaction left, once the ledgers that this came from are deleted."""
    subscribe = EntrySession("t", 1, "b", None, compacted=True).read("s").subscribe
    assert subscribe.read_compacted
    assert EntryId.read(subscribe.start_message_id) == EntryId(0, 0)


def test_an_entry_that_arrived_names_its_topic() -> None:
    line, came = joined(), entry(4)
    line.arrived([came])
    assert (came.topic, line.first) == ("t", EntryId(3, 4))


def test_what_the_last_line_reached_is_not_fresh() -> None:
    line = joined(EntryId(3, 0), EntryId(3, 4))
    assert [line.fresh(entry(number)) for number in (3, 4, 5)] == [False, False, True]


def test_the_first_entry_is_fresh_though_it_is_the_start() -> None:
    assert joined(EntryId(3, 4)).fresh(entry(4))


def test_nothing_comes_from_a_line_that_is_lost() -> None:
    line = joined()
    line.lost(NetworkError("gone"))
    with pytest.raises(NetworkError, match="gone"):
        line.arrived([entry(4)])


@pytest.mark.parametrize(
    ("last", "acknowledged", "expected"),
    [
        ((3, 7), (3, 4), (EntryId(3, 7), EntryId(3, 4))),
        ((3, 7), (3, -1), (EntryId(3, 7), EntryId(3, -1))),
        ((-1, -1), (-1, -1), (None, None)),
        ((3, 7), None, (EntryId(3, 7), None)),
    ],
)
def test_positions(
    last: tuple[int, int], acknowledged: tuple[int, int] | None, expected: tuple[EntryId | None, EntryId | None]
) -> None:
    told = CommandGetLastMessageIdResponse(last_message_id=MessageIdData(ledger_id=last[0], entry_id=last[1]))
    if acknowledged is not None:
        told.consumer_mark_delete_position.CopyFrom(MessageIdData(ledger_id=acknowledged[0], entry_id=acknowledged[1]))
    answer = BaseCommand(type=Type.GET_LAST_MESSAGE_ID_RESPONSE, get_last_message_id_response=told)
    assert joined().positions(answer) == expected
