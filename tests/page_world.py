"""What a page takes for granted: a checkpoint of another program, and sinks in the states that the page speaks of."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from eos.commit.control_topic import HOLD, control_topic
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from tests.contract.raw import client
from tests.integration.sparkless import Sink
from tests.page_reader import Reader
from tests.unit.inspect.test_checkpoints import checkpoint
from tests.waiting import until

QUERY, RUN, LATER_RUN = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "abc")
"""As Spark writes ids."""


@dataclass(frozen=True)
class Addresses:
    """Where a reader's Pulsar answers."""

    service_url: str
    admin_url: str

    @classmethod
    def of(cls, reader: Reader) -> Addresses:
        """Return those of the Pulsar that the reader has started."""
        environment = reader.env()
        return cls(environment["EOS_SERVICE_URL"], environment["EOS_ADMIN_URL"])

    def topic(self, name: str) -> str:
        """Make a topic, unless it is there, and return its full name."""
        made = httpx.put(f"{self.admin_url}/admin/v2/persistent/public/default/{name}", timeout=60)
        assert made.is_success or made.status_code == httpx.codes.CONFLICT, made.text
        return f"persistent://public/default/{name}"


@contextmanager
def driver(here: Addresses, name: str, run: str = RUN) -> Iterator[Sink]:
    """Run the sink of a name, which writes to the topic of that name, until the driver ends or dies."""
    sink = Sink(here, lambda _stem: here.topic(name), name, QUERY, run)
    try:
        yield sink
    finally:
        sink.client.close()
    with Admin(here.admin_url) as admin:
        until(lambda: not admin.connected(control_topic(name, sink.topic), HOLD), "the broker thinks it lives")


def another_programs_checkpoint(reader: Reader) -> None:
    """A query has written to `flights` by another sink, and its last batch is in doubt."""
    Addresses.of(reader).topic("flights")
    begun_ms = round(time.time() * 1000) - 60_000
    folder = checkpoint(reader.home / "flights", begun=3, committed=2, begun_ms=begun_ms)
    reader.places["/data/flights/checkpoint"] = str(folder)


def sinks_of_the_runbook(reader: Reader) -> None:
    """`delays` is new, the second driver of `flights` and the one of `flights-by-hour` died, `routes` is damaged.

    `counts` is the sink of State on BookKeeper, which the reader has tried before.
    """
    here = Addresses.of(reader)
    with driver(here, "delays"):
        pass
    with driver(here, "flights") as first:
        first.write(15)
    with driver(here, "flights", LATER_RUN) as second:
        second.write(16)
        second.die_in_the_middle(17)
    with driver(here, "flights-by-hour") as only:
        only.die_in_the_middle(0)
    with client(here.service_url) as connected:
        _damage(connected, control_topic("routes", here.topic("routes")))


def _damage(connected: Client, log: str) -> None:
    """Have another program write to a sink's control topic."""
    connected.ensure_topic(log)
    with connected.producer(log) as producer:
        producer.send_record(b"hello", None)


BEFORE: dict[str, Callable[[Reader], None]] = {
    "docs/how-to/migrate.md, block 1": another_programs_checkpoint,
    "docs/how-to/runbook.md, block 0": sinks_of_the_runbook,
}
"""What to make before a block, by the block's place."""
