"""The executor side: a `mapInArrow` function that writes one Spark partition into the transaction.

One summary row comes back for each task, after its producers are closed. A task that
Spark retries refuses to write at all, except without a transaction: there it writes all its rows again. The driver
afterwards checks what a task can't see (a second stage attempt): `eos.spark.stages.prove_run`.

The transaction is not part of the function but a local property of the Spark job: so the
driver can plan the job while the transaction is being opened. Each run has a property of a name of its own: threads
of a driver that write side by side may share their properties (`pyspark.inheritable_thread_target`), and a task must
never read the transaction of another sink or job.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.types import LongType, StringType, StructType

from eos.delivery.producers import FreshProducers
from eos.delivery.row_writer import BatchTransaction, RowWriter, WriteReport, WriteSettings, send_all
from eos.delivery.task_failure import written
from eos.errors import NotCommitted
from eos.pulsar.net.client import Client
from eos.pulsar.wire.txn import TxnId
from eos.spark.jobs import Task

# Not as text, which Spark would parse for each batch.
SUMMARY = (
    StructType()
    .add("stage", LongType())
    .add("partition", LongType())
    .add("report", StringType())
    .add("problem", StringType())
)


def new_carrier() -> str:
    """Return a new name of the local property that carries the transactions of one run to their tasks."""
    return f"eos.transaction.{uuid.uuid4().hex}"


def transaction_property(transaction: BatchTransaction) -> str:
    """Return the value of the local property that the tasks of a batch need."""
    txn = transaction.txn
    known = [dict(transaction.partitions), dict(transaction.frame_limits)]
    return json.dumps([None if txn is None else [txn.most, txn.least], transaction.batch_id, *known])


def writing_task(client: Client, settings: WriteSettings, carrier: str) -> Task:
    """Return the function for `mapInArrow`; it yields one row of `SUMMARY` for each task.

    Args: of the cluster; how to write; the name of the local property with the transaction.

    `report` is the JSON of rows, bytes and frames for each topic. After a problem none counts, and it names the topics
    that the task may have sent to. `problem` is by `eos.delivery.task_failure`, or null.
    """

    def write_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        transaction = _transaction(carrier, context.getLocalProperty(carrier))
        again = context.attemptNumber()
        if transaction.txn is not None and again > 0:
            raise NotCommitted(
                f"Attempt {again} of a writing task refuses to run. The first one may have written into this batch's "
                "transaction already. The batch is written again in a new transaction."
            )
        place, batch = context.partitionId(), str(transaction.batch_id)
        writer = task_writer(
            client, settings, transaction, place, f"batch-{batch}-task-{place}", **{"eos.batch": batch}
        )
        try:
            report, problem = write_whole(batches, writer), None
        except Exception as error:
            # Nothing of it counts, but the driver must know where frames may be on their way.
            report = WriteReport(rows=dict.fromkeys(writer.topics, 0))
            problem = written(error, place, writer.frame_limits)
            if problem is None:
                raise
        yield pa.RecordBatch.from_pydict(
            {
                "stage": [context.stageId()],
                "partition": [place],
                "report": [json.dumps([report.rows, report.bytes, report.frames])],
                "problem": pa.array([problem], pa.string()),
            }
        )

    return write_partition


def task_writer(
    client: Client,
    settings: WriteSettings,
    transaction: BatchTransaction,
    place: int,
    role: str,
    first_row: int = 0,
    /,
    **properties: str,
) -> RowWriter:
    """Return the writer of a task.

    Args: of the cluster; how to write; where; Spark's number of the task's partition; as what the task is introduced
    to brokers; the number of the first row that it is given.
    """
    who = settings.introduced(role, **properties, **{"eos.task": str(place)})
    producers = FreshProducers(client, settings.max_in_flight_bytes, introduction=who)
    return RowWriter(settings, transaction, producers, place, first_row)


def parse_report(text: str) -> WriteReport:
    """Return what a summary row's `report` says."""
    return WriteReport(*json.loads(text))


def _transaction(carrier: str, text: str | None) -> BatchTransaction:
    if text is None:
        raise NotCommitted(f"The Spark job of a writing task lacks the local property {carrier!r}: no sink began it.")
    txn, batch_id, partitions, limits = json.loads(text)
    return BatchTransaction(None if txn is None else TxnId(*txn), batch_id, partitions, limits)


def write_whole(batches: Iterable[pa.RecordBatch], writer: RowWriter) -> WriteReport:
    """Write every batch, and return once each row has its receipt and the producers are closed."""
    try:
        report = send_all(writer, batches)
        writer.finish()
    except Exception:
        writer.abandon()
        raise
    return report
