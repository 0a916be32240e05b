"""A streaming query without Spark on a real broker, made of the sink's own parts. Spark's part is played here."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from eos.commit.attempt import attempt
from eos.commit.control_topic import control_topic
from eos.commit.decision import Identity
from eos.commit.owner import Owner
from eos.commit.retry import OwnerSettings
from eos.config import Cluster
from eos.delivery.producers import FreshProducers
from eos.delivery.row_writer import BatchTransaction, RowWriter, WriteReport, WriteSettings, send_all
from eos.errors import CommitUnknown, NotCommitted
from eos.pulsar.net.client import Client
from eos.pulsar.wire.txn import TxnId
from statestore.drills.judge import rows
from tests.simulation.job import Sends

BATCHES, SIZE, PARTITIONS = 4, 40, 2
HIT = 1
"""The batch that the accidents happen to."""

_QUERY = "a query"


Write = Callable[[TxnId], WriteReport]
"""Writes a batch into a transaction."""


class Died(BaseException):
    """The driver is gone, with no chance to clean up."""


@dataclass
class Query:
    """A query: its input, its checkpoint, and where it writes.

    Attributes:
        committed: the batches that Spark has noted as committed.
    """

    service_url: str
    topic: str
    name: str
    folder: Path
    committed: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        for batch in range(BATCHES):
            rows.write_input(self.folder, batch, SIZE, at_ms=1_700_000_000_000)
        # A client of its own: executors are other processes, which don't know what the driver has asked for.
        self._client = Client(Cluster(self.service_url))

    @property
    def control(self) -> str:
        return control_topic(self.name, self.topic)

    def rows_of(self, batch: int) -> pa.RecordBatch:
        """The messages of a batch, as Spark would hand them over."""
        inputs = rows.read_input(self.folder).query(f"batch == {batch}")
        places = [(int(p), int(s)) for p, s in zip(inputs["p"], inputs["s"], strict=True)]
        values = [json.dumps({"p": p, "s": s, "batch": batch}) for p, s in places]
        return pa.record_batch({"value": values, "key": [f"p{p}" for p, _ in places]})

    def task(self, txn: TxnId, batch: int, kind: type[RowWriter] = RowWriter) -> RowWriter:
        """A task that writes into a transaction."""
        settings = WriteSettings(self.topic, "murmur3", "none", 1 << 20)
        return kind(settings, BatchTransaction(txn, batch), FreshProducers(self._client, 1 << 20))


class Driver:
    """A driver: one run of the query. It takes the sink over at once."""

    def __init__(self, query: Query, owner: type[Owner] = Owner, client: Callable[[Cluster], Client] = Client) -> None:
        self.query = query
        self.client = client(Cluster(query.service_url))
        self.client.ensure_topic(query.control)
        self.owner = owner(self.client, query.name, query.control, OwnerSettings(ttl_s=60))
        self.run_id = f"run {id(self)}"
        self.owner.take_over(_QUERY, self.run_id)

    def identity(self, batch: int) -> Identity:
        return Identity(_QUERY, self.run_id, f"offsets of batch {batch}")

    def run(self, until: int = BATCHES) -> None:
        """Run the batches that are not noted yet, up to `until`."""
        for batch in range(max(self.query.committed, default=-1) + 1, until):
            self.batch(batch)

    def batch(self, batch: int, write: Write | None = None) -> None:
        """Write a batch as the sink does, trying again where that is right, and let Spark note it."""
        for tries_left in reversed(range(3)):
            try:
                attempt(self.owner, batch, self.identity(batch), Sends(write or self.writing(batch)))
                break
            except (NotCommitted, CommitUnknown):
                write = None
                if not tries_left:
                    raise
        self.query.committed.add(batch)

    def writing(self, batch: int, kind: type[RowWriter] = RowWriter) -> Write:
        """The writer of a batch: one task, whose rows have their receipts and whose producers are closed."""

        return lambda txn: deliver(self.query.task(txn, batch, kind), self.query.rows_of(batch))


def deliver(task: RowWriter, messages: pa.RecordBatch) -> WriteReport:
    """Let a task send messages, await their receipts and close its producers."""
    report = send_all(task, [messages])
    task.finish()
    return report
