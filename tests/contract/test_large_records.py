"""MARKERs of batches that write to tens of thousands of topics, and those that no message can hold."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator

import pytest

from eos.commit.attempt import attempt
from eos.commit.control_topic import control_topic
from eos.commit.decision import Action, Identity
from eos.commit.owner import Owner
from eos.commit.retry import OwnerSettings
from eos.delivery.row_writer import WriteReport
from eos.errors import InvalidInput
from eos.pulsar.net.client import Client
from eos.pulsar.wire.message_id import MessageId
from tests.simulation.job import Sends

SETTINGS = OwnerSettings(read_timeout_s=5, patience_s=30)
LIMIT = 5 * 1024 * 1024
"""Bytes that a broker takes in one message by default."""


@pytest.fixture
def owner(ours: Client) -> Iterator[Owner]:
    name = f"large-{uuid.uuid4().hex[:8]}"
    owner = Owner(ours, name, control_topic(name, "persistent://public/default/t"), SETTINGS)
    owner.make_log()
    owner.take_over("query", "run")
    yield owner
    owner.close()


def write(owner: Owner, batch: int, report: WriteReport, offsets: str = "offsets") -> Action:
    return attempt(owner, batch, Identity("query", "run", offsets), Sends(lambda txn: report))


def test_a_batch_that_wrote_to_62000_topics_is_committed_and_found_again(ours: Client, owner: Owner) -> None:
    names = random.Random(29)
    topics = {f"persistent://public/default/{uuid.UUID(int=names.getrandbits(128))}": 3 for _ in range(62_000)}
    report = WriteReport(topics, {topic: 300 for topic in topics})
    assert sum(map(len, topics)) * 2 > LIMIT, "as JSON it is more than brokers take"
    assert write(owner, 0, report) is Action.WRITE
    found = owner.log.read()
    assert found.newest is not None
    assert (found.newest.rows, found.newest.bytes) == (report.rows, report.bytes)
    assert write(owner, 1, WriteReport()) is Action.WRITE


def test_a_marker_that_no_message_can_hold_is_refused_in_words_and_leaves_nothing_open(owner: Owner) -> None:
    offsets = random.Random(29).randbytes(2 * LIMIT).hex()
    with pytest.raises(InvalidInput) as refused:
        write(owner, 0, WriteReport({"t": 1}, {"t": 1}), offsets)
    for words in (
        "The MARKER of batch 0 can't be written to",
        "bytes, compressed from",
        "names 1 topics",
        "is aborted",
    ):
        assert words in str(refused.value)
    assert owner.in_hand is None
    assert write(owner, 0, WriteReport(), "fewer") is Action.WRITE
    assert list(owner.log.read().markers) == [0]


@pytest.mark.parametrize("size", [10, 16 * 1024, 16 * 1024 + 1, 1_000_000])
def test_a_record_of_any_size_is_read_as_it_was_written(ours: Client, owner: Owner, size: int) -> None:
    data = (b"0123456789" * (size // 10 + 1))[:size]
    topic = f"persistent://public/default/record-{uuid.uuid4().hex[:8]}"
    ours.ensure_topic(topic)
    with ours.producer(topic) as producer:
        at = producer.send_record(data, None)
    reader = ours.reader(topic)
    message = reader.read(10)
    reader.close()
    assert message is not None
    assert (message.data, message.message_id) == (data, MessageId(at.ledger, at.entry))
