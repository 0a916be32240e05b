"""How long a takeover lasts, by how long the control log is.

    python -m tests.benchmarks.takeover [--records 1000000] [--markers-kept 1000]

The log of a sink in a namespace that retains everything is filled with the records of as many batches as a driver
would have written, each an entry of its own, an INTENT and a MARKER in turn. Only the batches around the takeovers
are real transactions: a MARKER that was sent plainly is read like one that was committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import typer

from eos.commit.attempt import attempt
from eos.commit.control_log import Intent, LogView, Marker, Record, encode
from eos.commit.control_topic import control_topic
from eos.commit.decision import Identity
from eos.commit.log_reader import read_log
from eos.commit.owner import Owner
from eos.commit.retry import OwnerSettings
from eos.config import Cluster
from eos.delivery.row_writer import WriteReport
from eos.local import LocalPulsar
from eos.pulsar.net.client import Client
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.txn import TxnId
from tests.contract.raw import RawProducer

NAME = "takeover"
TOPIC = control_topic(NAME, "persistent://public/default/any")
QUERY = "8a1c9f0e-3c57-4d0b-a0ab-6a0d5f6f0d11"
RUN = "b7a0c1f2-58c7-4f5e-9d34-0f4b3a8c2e90"
OFFSETS = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1790000000000,"conf":{}}\n{"topic":{"0":%d,"1":%d,"2":%d}}'
IN_FLIGHT = 2_000
"""Records that are sent before their receipts are read."""

REAL = 3
"""Batches that each driver writes after its takeover."""


class NoRows:
    """The delivery of a batch without rows."""

    def prepare(self) -> None:
        """There is nothing to collect."""

    def send(self, txn: TxnId) -> WriteReport:
        """There is nothing to send."""
        return WriteReport()

    def finish(self) -> None:
        """There is nothing to await."""

    def abandon(self) -> tuple[str, ...]:
        """There is nothing to give up."""
        return ()


@dataclass
class Log:
    """The control log on one broker.

    Attributes:
        broker: where it lies.
        settings: how many markers are retained.
        view: what it says.
        records: how many it has.
    """

    broker: LocalPulsar
    settings: OwnerSettings
    view: LogView
    records: int = 0

    def client(self) -> Client:
        """Return a client that has nothing open yet, as a new driver's."""
        return Client(Cluster(self.broker.service_url))

    def take_over(self) -> float:
        """Take the sink over with a new driver, which writes a few batches; return the seconds of the takeover."""
        with self.client() as client:
            owner = Owner(client, NAME, TOPIC, self.settings)
            began = time.monotonic()
            owner.make_log()
            owner.take_over(QUERY, RUN)
            took = time.monotonic() - began
            with closing(owner):
                following = 0 if owner.view.newest is None else owner.view.newest.batch_id + 1
                for batch_id in range(following, following + REAL):
                    attempt(owner, batch_id, Identity(QUERY, RUN, offsets(batch_id)), NoRows())
                self.view = owner.view
        self.records += 1 + 2 * REAL
        return took

    def fill(self, records: int, tell: Callable[[str], None]) -> None:
        """Write records until the log has so many, pipelined."""
        producer = RawProducer(self.broker.service_url, TOPIC)
        with closing(producer.connection):
            sent = 0
            while self.records < records:
                burst = self._burst(min(IN_FLIGHT, records - self.records + 1))
                for record in burst:
                    producer.send(encode(record), None, sent)
                    sent += 1
                for record in burst:
                    position = producer.event(60)
                    assert isinstance(position, MessageId), position
                    self.view.apply(record, position)
                self.records += len(burst)
                if sent % 100_000 == 0:
                    tell(f"{self.records:,} records")

    def _burst(self, records: int) -> list[Record]:
        """Make an INTENT and a MARKER for each of the next batches; `records` is rounded down to whole batches."""
        newest, number = self.view.newest, self.view.last_number
        assert newest is not None
        made: list[Record] = []
        for batch_id in range(newest.batch_id + 1, newest.batch_id + 1 + records // 2):
            txn = TxnId(newest.txn.most, 1_000_000 + batch_id)
            common = (QUERY, RUN, batch_id, 1, txn, None)
            made.append(Intent(number + 1, *common, self.view.expired))
            number += 2
            counts = {"persistent://public/default/any": 1_000}, {"persistent://public/default/any": 250_000}
            made.append(Marker(number, *common, *counts, offsets(batch_id), self.view.expired))
        return made

    def read_all(self) -> float:
        """Read the log from its earliest record to its last; return the seconds."""
        with self.client() as client:
            began = time.monotonic()
            read_log(client, TOPIC, self.settings)
            return time.monotonic() - began


def offsets(batch_id: int) -> str:
    """Return offsets such as those of a query on a topic of three partitions."""
    return OFFSETS % (batch_id, batch_id, batch_id)


def main(records: int = 1_000_000, markers_kept: int = 1_000) -> None:
    """Measure takeovers with a short log and a long one. Takes some minutes."""
    began = time.monotonic()

    def tell(line: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {line}", flush=True)

    with LocalPulsar(memory="2g", flags=(), tell=tell) as broker:
        settings = OwnerSettings(markers_retained=markers_kept)
        log = Log(broker, settings, LogView(markers_kept))
        tell(f"the first takeover, of an empty log: {log.take_over():.2f} s")
        log.fill(3 * markers_kept, tell)
        tell(f"a takeover behind {log.records:,} records: {log.take_over():.2f} s")
        log.fill(records, tell)
        for what in ("", ", once more"):
            tell(f"a takeover behind {log.records:,} records{what}: {log.take_over():.2f} s")
        broker.kill()
        broker.start()
        tell(f"a takeover behind {log.records:,} records, of a broker that was killed: {log.take_over():.2f} s")
        tell(f"reading all of the log: {log.read_all():.1f} s")


if __name__ == "__main__":
    typer.run(main)
