"""Ledgers whose data are gone, and which the broker passes over: a read ends, with rows, a loss or what is unknown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from kazoo.client import KazooClient

from eos.bookkeeper.wire.metadata import znode
from eos.errors import InvalidInput, Unanswered
from eos.local import LocalPulsar
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.source.batch_plan import batch_ranges
from eos.source.brokers import PulsarBrokers
from eos.source.options import parse_options
from eos.source.ranges import Range
from tests.conftest import START_S, create_topic
from tests.contract.raw import client
from tests.integration.source.queries import read
from tests.integration.source.streams import write
from tests.waiting import until

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

WATCHDOG_S = 60
ROWS = [["a", "b"], ["c", "d"], ["e", "f"]]


@pytest.fixture(scope="module")
def passing_over() -> Iterator[LocalPulsar]:
    with LocalPulsar(start_timeout_s=START_S, settings={"autoSkipNonRecoverableData": True}) as started:
        yield started


class Lossy:
    """A topic of three ledgers, and a read of it that was planned before any of them was lost."""

    def __init__(self, pulsar: LocalPulsar, ours: Client) -> None:
        self._pulsar, self._ours = pulsar, ours
        self.topic = create_topic(pulsar.admin_url, "lost")
        ours.subscription(self.topic, "keeps", initial="earliest").close()
        for rows in ROWS:
            write(ours, self.topic, *rows)
            self.unload()
        given = {"service.url": pulsar.service_url, "topic": self.topic, "request_timeout_s": "3"}
        options = parse_options(given, "batch")
        self.brokers = PulsarBrokers(options)
        self.ranges: list[Range] = list(batch_ranges(self.brokers, options.start, options.end))

    def lose(self, *numbers: int) -> None:
        """Take the metadata of ledgers away, as a disaster or a wrong command does."""
        with Admin(self._pulsar.admin_url) as admin:
            ledgers = admin.ledgers(self.topic)
        zookeeper = KazooClient(self._pulsar.zookeeper)
        zookeeper.start()
        try:
            for number in numbers:
                zookeeper.delete(znode(ledgers[number].id))
        finally:
            zookeeper.stop()
            zookeeper.close()
        self.unload()

    def write(self, row: str) -> None:
        write(self._ours, self.topic, row)

    def read(self, lose: Callable[[str], None]) -> list[str]:
        began = time.monotonic()
        try:
            return read(self.brokers, self.ranges, lose)
        finally:
            assert time.monotonic() - began < WATCHDOG_S, "it hangs"

    def unload(self) -> None:
        path = self.topic.replace("://", "/")
        httpx.put(f"{self._pulsar.admin_url}/admin/v2/{path}/unload", timeout=60).raise_for_status()


@pytest.fixture
def lossy(passing_over: LocalPulsar) -> Iterator[Lossy]:
    with client(passing_over.service_url) as ours:
        yield Lossy(passing_over, ours)


def fail(what: str) -> None:
    raise InvalidInput(what)


@pytest.mark.parametrize("lost", [[2], [1, 2], [0, 1, 2]], ids=str)
def test_a_lost_end_is_not_known_until_a_newer_message_is_stored_and_then_a_loss(lossy: Lossy, lost: list[int]) -> None:
    lossy.lose(*lost)
    words = f"last message of {lossy.topic}: no answer.*ledger is lost.*publish a message to the topic"
    for ask in (lambda: lossy.read(fail), lambda: lossy.brokers.last(lossy.topic)):
        with pytest.raises(Unanswered, match=words):
            ask()
    lossy.write("newer")
    with pytest.raises(InvalidInput, match=f"data of {lossy.topic} was lost"):
        lossy.read(fail)
    told: list[str] = []
    left = [row for number, rows in enumerate(ROWS) if number not in lost for row in rows]
    assert lossy.read(told.append) == left
    assert told


def test_a_lost_start_is_a_loss(lossy: Lossy) -> None:
    lossy.lose(0)
    with pytest.raises(InvalidInput, match=f"data of {lossy.topic} was lost"):
        lossy.read(fail)


def test_a_read_waits_at_a_lost_ledger_and_goes_on_once_the_broker_passes_over_it(
    start_pulsar: Callable[..., LocalPulsar], caplog: pytest.LogCaptureFixture
) -> None:
    pulsar = start_pulsar()
    with client(pulsar.service_url) as ours, ThreadPoolExecutor(1) as pool:
        lossy = Lossy(pulsar, ours)
        lossy.lose(1)
        rows = pool.submit(read, lossy.brokers, lossy.ranges, fail)
        until(lambda: any("a ledger is lost" in text for text in caplog.messages), "it never says so", 300)
        assert not rows.done()
        setting = f"{pulsar.admin_url}/admin/v2/brokers/configuration/autoSkipNonRecoverableData/true"
        httpx.post(setting, timeout=60).raise_for_status()
        lossy.unload()
        assert rows.result(300) == [*ROWS[0], *ROWS[2]]
