"""The writers that Spark calls by `format("pulsar")` with `guarantee="at-least-once"`: rows, no transaction.

    options and columns checked → tasks: send → await receipts → close producers → Spark is told → it calls commit

Rows are visible as soon as the broker has them. A task is done once each of its rows has its receipt. So when Spark
calls `commit`, each partition was written as a whole by some run of its task, and what other runs sent is there too.
Spark itself does the rest. It runs a failed task again, and fails the save or the micro-batch if not every task is
done. A micro-batch that failed is handed over again at the query's next start.

One case is left that no task can see. When files of a shuffle got lost while a stage writes, Spark computes them again
for the tasks that are not done. If rows then lie in other partitions than before, one could be in none that was
written. Spark compares checksums of the files, and fails the job where they differ; a task refuses to write where that
is switched off. docs/why/no-writer-by-name.md says what was measured.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from eos.by_name.columns import WrittenColumns, columns_of
from eos.by_name.options import WriteOptions
from eos.delivery.row_writer import BatchTransaction, WriteSettings
from eos.delivery.task import task_writer
from eos.delivery.task_failure import read, without_a_transaction, written
from eos.errors import EosError, FrameTooLarge, InvalidInput, NetworkError, Unacknowledged
from eos.pickling import PickledByName
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.schemas import Registered
from eos.sinks.error_translation import out_of_reach
from eos.sinks.options import SinkOptions
from eos.sinks.schemas import check_columns
from eos.spark.capabilities import Capability, has
from eos.spark.pyspark_api import ENDS_A_MICRO_BATCH, is_worker
from eos.spark.stages import COMPARES_SHUFFLES

log = logging.getLogger("eos.by_name")


@dataclass(frozen=True, slots=True)
class TaskDone(PickledByName, WriterCommitMessage):
    """The report of a task that need not run again.

    Attributes:
        problem: of `eos.delivery.task_failure`, where some of its rows can't be written; None: all of them are.
    """

    problem: str | None = None


@dataclass(frozen=True)
class PartitionWriter(PickledByName):
    """The common part of both writers. It is picklable, and sent to every task.

    Attributes:
        client: of the cluster.
        settings: how rows become frames.
        columns: which columns become what.
        partitions: how many the topic has, as the driver was told.
    """

    client: Client
    settings: WriteSettings
    columns: WrittenColumns
    partitions: Mapping[str, int] = field(default_factory=dict)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        """Write the rows of a task; return once each has its receipt and the producers are closed.

        A problem that another run of the task would have too is returned, for `commit` to raise. Raises Unacknowledged.
        """
        context = TaskContext.get()
        assert context is not None
        place = context.partitionId()
        try:
            _refuse_unseen_changes(context)
            self._write_whole(map(self.columns.message, iterator), place)
        except EosError as error:
            problem = written(error, place, {})
            if problem is None:
                raise without_a_transaction(error, f"Spark's partition {place}") from error
            return TaskDone(problem)
        return TaskDone()

    def _write_whole(self, batches: Iterator[pa.RecordBatch], place: int) -> None:
        """Write every batch; return once each row has its receipt and the producers are closed.

        A topic may take smaller frames than its broker (its policy `maxMessageSize`), which only a refusal tells. Spark
        runs a failed task in a new process, which has learned nothing, or not at all in local mode. So rows are held
        until they have their receipts, and after a refusal they are sent again in smaller frames. Each refusal can
        repeat what it did not concern, as any other failure does: once for each topic with such a policy, and for each
        cut. A message that is refused alone is no FrameTooLarge.

        Args: the rows; Spark's number of the task's partition. Raises what `write_whole` raises.
        """
        held: list[pa.RecordBatch] = []
        size = first_row = 0
        while True:
            learned = self.client.frame_limits.learned
            to = BatchTransaction(None, 0, self.partitions)
            writer = task_writer(self.client, self.settings, to, place, f"task-{place}", first_row)
            try:
                for batch in held:
                    writer.write(batch)
                for batch in batches:
                    held.append(batch)
                    size += batch.nbytes
                    writer.write(batch)
                    if size >= self.settings.max_in_flight_bytes:
                        writer.send_rest()
                        writer.await_receipts()
                        first_row += sum(one.num_rows for one in held)
                        held, size = [], 0
                writer.send_rest()
                writer.finish()
                return
            except Exception as error:  # also one of the rows' own source, which Spark raises here
                writer.abandon()
                if not isinstance(error, FrameTooLarge) or self.client.frame_limits.learned == learned:
                    raise
                if first_row:  # rows that are not held any more, and that no other writer asks about
                    writer.refuse_a_topic_made_again()
                log.info("Spark's partition %d: rows are sent again in smaller frames: %s", place, error)


class BatchWriter(PartitionWriter, DataSourceArrowWriter):
    """Writes a DataFrame: `df.write`, and INSERT INTO."""

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Return if every task has written all its rows. Raises InvalidInput, Unacknowledged."""
        see_that_all_is_written(messages, "this DataFrame")

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Say what is left of a failed save: nothing can be taken back."""
        log.warning("the save failed. Rows of this DataFrame may be visible, and some are lacking. %s", _NO_WAY_BACK)


class StreamWriter(PartitionWriter, DataSourceStreamArrowWriter):
    """Writes the micro-batches of a query: `df.writeStream`."""

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Return if every task has written all its rows: then Spark notes the micro-batch. Raises as `BatchWriter`."""
        see_that_all_is_written(messages, f"batch {batchId}")

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Say what is left of a failed micro-batch."""
        log.warning(
            "batch %d failed: some of it may be visible. It is written again when the query starts again. %s",
            batchId,
            _NO_WAY_BACK,
        )


_NO_WAY_BACK = 'guarantee="at-least-once" has no transaction to hide them'


def batch_writer(options: WriteOptions, schema: StructType) -> BatchWriter:
    """Return the writer of a DataFrame. Raises InvalidInput; nothing is written."""
    return BatchWriter(*_planned(options, schema))


def stream_writer(options: WriteOptions, schema: StructType) -> StreamWriter:
    """Return the writer of a micro-batch. Raises InvalidInput; nothing is written.

    Spark makes another one to end the micro-batch, when all is written: there no broker is asked.
    """
    return StreamWriter(*_planned(options, schema, ask=not is_worker(ENDS_A_MICRO_BATCH)))


def see_that_all_is_written(messages: Sequence[WriterCommitMessage | None], what: str) -> None:
    """Return if each task has written all its rows.

    Args: the report of each task; what was to be written.

    Raises InvalidInput for rows that can't be written, Unacknowledged where a task has reported nothing.
    """
    for message in messages:
        if not isinstance(message, TaskDone):
            raise Unacknowledged(f"Not each task of {what} has reported its rows as written; some may be visible.")
        if message.problem is not None:
            raise without_a_transaction(read(message.problem)[0], what)


def _planned(
    options: WriteOptions, schema: StructType, *, ask: bool = True
) -> tuple[Client, WriteSettings, WrittenColumns, dict[str, int]]:
    sink, client = options.sink, Client(options.cluster)
    columns = columns_of(schema, sink.value_format, topic=sink.topic, named=sink.named)
    for note in columns.roles.notes.values() if ask else ():
        log.info("%s", note)
    partitions, registered = _asked(client, options, columns) if ask else ({}, None)
    settings = replace(sink.settings(inf, {}), schema=registered)
    return client, settings, columns, partitions


def _asked(client: Client, options: WriteOptions, columns: WrittenColumns) -> tuple[dict[str, int], Registered | None]:
    """Return what the brokers say of the topic: how many partitions it has, and by which schema values are written."""
    topic = options.sink.topic
    try:
        with client:  # this process only plans: tasks write, each process by its own client
            if topic is None:
                client.connect()
                return {}, None
            return {topic: client.partitions(topic)}, _schema(client, options.sink, topic, columns)
    except InvalidInput:
        raise
    except NetworkError as error:
        raise out_of_reach('format("pulsar")', options.cluster.service_url, error) from error


def _schema(client: Client, options: SinkOptions, topic: str, columns: WrittenColumns) -> Registered | None:
    if options.value_format == "raw":
        return None
    return check_columns(columns.given, columns.roles, options.value_format, topic, client.schema(topic))


def _refuse_unseen_changes(context: TaskContext) -> None:
    """Refuse to write where Spark does not see that a shuffle was computed again and differs."""
    told = context.getLocalProperty(COMPARES_SHUFFLES)
    if told is None and has(Capability.COMPARES_SHUFFLES):
        return  # its default
    if (told or "").lower() != "true":
        raise InvalidInput(
            f"{COMPARES_SHUFFLES} is {told or 'not there'}. Spark would not see that a shuffle, computed anew because "
            "its files got lost, is another one, and rows could be in none of the partitions that were written. "
            'guarantee="at-least-once" needs it: leave it at its default, true.'
        )
