"""A topic of several ledgers that loses some of what it holds, and reads of it that were planned before."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import httpx
from kazoo.client import KazooClient

from eos.local import LocalCluster, LocalPulsar
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.wire.message_id import TopicLedger
from eos.source.batch_plan import batch_ranges
from eos.source.brokers import PulsarBrokers
from eos.source.options import SourceOptions, parse_options
from eos.source.ranges import Range
from tests.conftest import create_topic
from tests.integration.source.queries import read
from tests.integration.source.streams import write

WATCHDOG_S = 60


class LossyTopic:
    """A topic with a ledger for each list of rows.

    Attributes:
        options: of a table of it.
        brokers: a reader's, by these options.
        ranges: planned before anything was lost.
    """

    def __init__(
        self, pulsar: LocalPulsar | LocalCluster, ours: Client, rows: Sequence[Sequence[str]], **options: str
    ) -> None:
        self.pulsar, self.ours = pulsar, ours
        self.topic = create_topic(pulsar.admin_url, "lossy")
        ours.subscription(self.topic, "keeps", initial="earliest").close()
        for ledger in rows:
            write(ours, self.topic, *ledger)
            self.unload()
        urls = {"service.url": pulsar.service_url, "admin.url": pulsar.admin_url}
        self.options = urls | {"topic": self.topic} | options
        self.brokers = PulsarBrokers(parse_options(self.options, "batch"))
        self.ranges = self.planned()

    def planned(self, options: SourceOptions | None = None) -> list[Range]:
        """Plan a table; by the topic's own options unless others are given."""
        given = options or parse_options(self.options, "batch")
        return list(batch_ranges(self.brokers, given.start, given.end))

    def ledgers(self) -> list[TopicLedger]:
        with Admin(self.pulsar.admin_url) as admin:
            return admin.ledgers(self.topic)

    @contextmanager
    def metadata(self) -> Iterator[KazooClient]:
        """Give the ZooKeeper with the metadata of the ledgers; afterwards the broker loads the topic anew."""
        zookeeper = KazooClient(self.pulsar.zookeeper)
        zookeeper.start()
        try:
            yield zookeeper
        finally:
            zookeeper.stop()
            zookeeper.close()
        self.unload()

    def read(self, lose: Callable[[str], None]) -> list[str]:
        """Read what was planned, and end in time."""
        began = time.monotonic()
        try:
            return read(self.brokers, self.ranges, lose)
        finally:
            assert time.monotonic() - began < WATCHDOG_S, "it hangs"

    def unload(self) -> None:
        where = f"{self.pulsar.admin_url}/admin/v2/{self.topic.replace('://', '/')}/unload"
        httpx.put(where, timeout=60, follow_redirects=True).raise_for_status()
