"""A broker moves the position of a reader while it reads: every message that is still stored comes all the same."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from eos.commit.control_log import Intent, Record, encode
from eos.commit.log_reader import read_log
from eos.commit.retry import OwnerSettings
from eos.config import Cluster
from eos.pulsar.net.client import Client, Reader
from eos.pulsar.wire.txn import TxnId
from tests.contract.conftest import Running
from tests.topic_commands import MOVES, Move, move_positions, retain_for_good
from tests.waiting import PATIENCE_S

RECORDS = 300
AHEAD = 10
"""Messages that the broker may send ahead: the others are not under way yet when the position is moved."""


class FewAhead(Client):
    """Its readers are sent a few messages ahead."""

    def reader(self, topic: str, **given: object) -> Reader:
        return super().reader(topic, **given | {"permits": AHEAD})  # type: ignore[arg-type]


@pytest.fixture
def few(pulsar: Running) -> Iterator[Client]:
    with FewAhead(Cluster(pulsar.service_url)) as opened:
        yield opened


@pytest.fixture(scope="module")
def topic(pulsar: Running) -> str:
    """A topic that retains a log of records that are older than a second, as expiring by age asks for."""
    name = f"persistent://public/default/proof-{uuid.uuid4().hex[:10]}"
    with Client(Cluster(pulsar.service_url)) as client:
        client.ensure_topic(name)
        retain_for_good(pulsar.admin_url, name)
        with client.producer(name) as producer:
            for number in range(RECORDS):
                producer.send_record(encode(Intent(number, "query", "run", number, 1, TxnId(0, number), None)), None)
    time.sleep(1.5)
    return name


Reading = Callable[[Client, str, Callable[[], None]], int]


def entries(client: Client, topic: str, after_first: Callable[[], None]) -> int:
    came = 0
    with closing(client.entry_reader(topic, None, permits=AHEAD)) as reader:
        while came < RECORDS and (more := reader.read(PATIENCE_S)):
            if came == 0:
                after_first()
            came += len(more)
    return came


def messages(client: Client, topic: str, after_first: Callable[[], None]) -> int:
    came = 0
    with closing(client.reader(topic)) as reader:
        while came < RECORDS and reader.read(5):
            if came == 0:
                after_first()
            came += 1
    return came


def control_log(client: Client, topic: str, after_first: Callable[[], None]) -> int:
    came: list[int] = []

    def note(record: Record, message: object) -> None:
        if not came:
            after_first()
        came.append(record.number)

    read_log(client, topic, OwnerSettings(), each=note)
    assert came == sorted(set(came)), "in order, and none twice"
    return len(came)


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("reading", [entries, messages, control_log])
def test_a_position_that_is_moved_while_messages_stay_stored_leaves_none_out(
    pulsar: Running, few: Client, topic: str, reading: Reading, move: Move
) -> None:
    assert reading(few, topic, lambda: move_positions(pulsar.admin_url, topic, move)) == RECORDS
