"""The two ways of a DataFrame's rows into a transaction: sent by the driver, or by the tasks of a Spark job.

Each is used as `eos.commit.ports.DeliveryPort` says: `send` for each transaction, then `finish`, or `abandon`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame

from eos.delivery.abort_record import physical_topics
from eos.delivery.producers import OpenProducers
from eos.delivery.row_writer import BatchTransaction, RowWriter, WriteReport, WriteSettings, send_all
from eos.delivery.task import parse_report, transaction_property
from eos.delivery.task_failure import read
from eos.pulsar.net.client import Client
from eos.pulsar.wire.txn import TxnId
from eos.spark import jobs, stages


@dataclass(slots=True)
class DriverPath:
    """Rows that were collected, and are sent by the driver's own process.

    Attributes:
        rows: all of them.
        settings: how rows become frames.
        producers: those that stay open from batch to batch.
        partitions: how many partitions the topic has of rows that name none.
    """

    rows: pa.Table
    settings: WriteSettings
    producers: OpenProducers
    partitions: Mapping[str, int]
    _writer: RowWriter | None = None

    def send(self, txn: TxnId | None, batch_id: int) -> WriteReport:
        """Send every row into the transaction of a batch, or into none.

        Raises InvalidInput for a row that can't be written, and what the network layer raises.
        """
        transaction = BatchTransaction(txn, batch_id, self.partitions)
        self._writer = RowWriter(self.settings, transaction, self.producers, batch_id)
        return send_all(self._writer, self.rows.to_batches())

    def await_receipts(self) -> None:
        """Await the receipts of what was sent so far."""
        if self._writer is not None:
            self._writer.await_receipts()

    def finish(self) -> None:
        """Await the receipts, and put the producers by."""
        if self._writer is not None:
            self._writer.finish()

    def abandon(self) -> set[str]:
        """Give up the producers in use. Returns the physical topics on which a frame may still be on its way."""
        return set() if self._writer is None else self._writer.abandon()


@dataclass(slots=True)
class TaskPath:
    """A planned Spark job whose tasks send the rows.

    Attributes:
        job: it yields one row of `SUMMARY` for each task.
        client: the driver's, which learns from the tasks how large the frames of a topic may be.
        partitions: how many partitions the topic has of rows that name none.
        carrier: the local property by which its tasks get their transaction.
        topics: where its rows may go, as far as that is known without running it.
        names_topics: each row may name its topic: then there may be others.
        told: the topics that its tasks have reported.
        watched: whether Spark does not compare shuffles that it computes again.
    """

    job: DataFrame
    client: Client
    partitions: Mapping[str, int]
    carrier: str
    topics: Collection[str]
    names_topics: bool = False
    told: set[str] = field(default_factory=set)
    watched: bool = False
    _all_told: bool = False
    _began: bool = False
    _proven: bool = False
    _stages: list[int] = field(default_factory=list)
    _ran: list[int] = field(default_factory=list)
    _retries: bool = False
    _watch: stages.ShuffleWatch | None = None

    def send(self, txn: TxnId | None, batch_id: int) -> WriteReport:
        """Run the job, whose tasks write into the transaction of a batch, or into none. Raises what Spark raises.

        InvalidInput for a row that can't be written; NotCommitted for a frame that its topic did not take.
        """
        transaction = BatchTransaction(txn, batch_id, self.partitions, self.client.frame_limits.learned)
        self._retries = txn is None
        self._began, self._proven, self._all_told = True, False, False
        self._watch = stages.ShuffleWatch(self.job.sparkSession) if self.watched else None
        with jobs.local_property(self.job.sparkSession, self.carrier, transaction_property(transaction)):
            summaries = self.job.collect()
        total = WriteReport()
        for row in summaries:
            total.merge(parse_report(row.report))
        self.told.update(total.rows)
        self._all_told = True
        problems = [read(row.problem) for row in summaries if row.problem is not None]
        for _, limits in problems:
            self.client.frame_limits.learn(limits)
        if problems:
            raise problems[0][0]
        self._stages, self._ran = [row.stage for row in summaries], [row.partition for row in summaries]
        return total

    def finish(self) -> None:
        """Prove that each task ran once; without a transaction, that it ran. Raises NotCommitted if that is not so."""
        stages.prove_run(self.job.sparkSession, self._stages, self._ran, retries=self._retries)
        self._proven = True
        if self._watch is not None:
            self._watch.refuse_another_attempt()

    def abandon(self) -> set[str]:
        """Return the physical topics on which a task may still send.

        None where each task is proven to have reported once. Of any other job a task may be running: Spark does not
        wait for the Python process of a task that it has killed, nor for tasks of a stage that it has given up.
        """
        return physical_topics(self.client, {*self.topics, *self.told}, self.partitions) if self.may_send else set()

    @property
    def may_send(self) -> bool:
        """Whether a task may still send, or send again."""
        return self._began and not self._proven

    @property
    def may_send_elsewhere(self) -> bool:
        """Whether a task may still send to a topic that rows name, and that the driver does not know."""
        return self.may_send and self.names_topics and not self._all_told
