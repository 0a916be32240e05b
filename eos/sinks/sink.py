"""The driver side of the sink: what `foreachBatch` calls.

with sink.batch(batch_id) as txn:    # collects the writes; nothing is open yet
    txn.write(df)
# on leaving: the query's run (`eos.sinks.run`) takes the batch
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import NoReturn

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from eos.commit.decision import Identity
from eos.delivery.delivery import Write
from eos.errors import CommitUnknown, EosError, InvalidInput, NetworkError
from eos.sinks.columns import ColumnRoles
from eos.sinks.context import SinkContext
from eos.sinks.error_translation import as_it_leaves, before_the_log, words_of
from eos.sinks.foreach_batch import (
    IDENTITY_IN_A_QUERY,
    noted_if_it_fails,
    queries_of_stray,
    query_of_call,
    refuse_another_batch,
    refuse_another_type,
    refuse_identity_in_a_query,
)
from eos.sinks.metrics import Snapshot
from eos.sinks.options import SinkOptions
from eos.sinks.shared_run import SharedRun, shared_run
from eos.sinks.write_request import WriteRequest
from eos.spark import query as spark

log = logging.getLogger("eos.sink")


@dataclass(slots=True)
class Batch:
    """The writes of one micro-batch. All of them become one transaction when the block ends."""

    batch_id: int
    _sink: Sink
    _query: spark.Query | None = None  # whose batch function runs in the thread of the block
    _identity: Identity | None = None
    _run_id: str | None = None  # of the identity that was given, which may be wrong otherwise
    _session: SparkSession | None = None  # of the first DataFrame
    _writes: list[Write] = field(default_factory=list)
    _requests: list[WriteRequest] = field(default_factory=list)  # what was asked for, planned or not
    _error: BaseException | None = None  # of the first write that failed
    _ended: bool = False  # the block
    _over: bool = False  # the outcome is known
    _turn: threading.Lock = field(default_factory=threading.Lock)  # threads of the block may write, too

    def write(self, df: DataFrame, topic: str | None = None) -> None:
        """Add the rows of a DataFrame to the batch. They are sent when the block ends.

        A write that raises fails the whole batch, even where the block goes on.

        Args:
            df: message columns, see `eos.sinks.columns`.
            topic: in place of the sink's own topic.

        Raises:
            InvalidInput: a column is wrong, the topic does not exist, or the block has ended.
            CommitUnknown: the brokers did not answer about the topic. Nothing was written.
        """
        try:
            options = self._sink._context.options
            self._requests.append(WriteRequest(df, options.topic if topic is None else topic, options))
            self._refuse_after_the_end()
            self._session = self._session or getattr(df, "sparkSession", None)  # before planning, which may fail
            with before_the_log(self.batch_id):
                planned = self._sink._context.plan.write(df, topic)
            with self._turn:
                self._refuse_after_the_end()
                self._writes.append(planned)
        except BaseException as error:
            with self._turn:
                self._error = self._error or error
                late = self._over
            if late:
                self._sink._failed(self, error, late=True)
            raise

    def _end_block(self) -> None:
        with self._turn:
            self._ended = True

    def _end(self) -> None:
        """Raise where a write came too late, while the batch was written."""
        with self._turn:
            self._over = True
            if self._error is not None:
                raise self._error

    def _refuse_after_the_end(self) -> None:
        if self._ended:
            raise InvalidInput(
                f"txn.write() came after the block of batch {self.batch_id} had ended. These rows are not written. "
                "Write inside of `with sink.batch(batch_id) as txn:`."
            )

    def _refuse_a_part(self) -> None:
        """Refuse what is left of a batch where the block has swallowed the error of a write."""
        if self._error is None:
            return
        error = self._error
        kind = CommitUnknown if isinstance(error, CommitUnknown) else InvalidInput
        raise kind(
            f"A txn.write() of the block of batch {self.batch_id} failed, and the block went on. The batch would lack "
            f"its rows, so nothing of it is written. Let errors of txn.write() leave the block. The error was: "
            f"{words_of(error)}"
        ) from None


class Sink:
    """Writes each micro-batch of one streaming query as one Pulsar transaction, or by the guarantee it was made with.

    Call it as the function of `foreachBatch`, or use `batch()` in a function of your own to write several DataFrames
    and topics in one transaction. Each query needs a sink of its own, with its own name.
    """

    def __init__(self, service_url: str, options: SinkOptions) -> None:
        self._context = SinkContext(service_url, options)
        self._shared: SharedRun | None = None  # of the run that it was last called in
        self._turn = threading.RLock()
        self._context.start()

    @noted_if_it_fails
    def __reduce__(self) -> NoReturn:
        raise InvalidInput(
            "A sink stays in the driver. It can't be sent to executors, as foreach(sink) would, nor to a Spark Connect "
            "server. Call it by foreachBatch(sink), in Spark's classic mode."
        )

    @property
    def metrics(self) -> Snapshot:
        """The sink's counters and the times of its steps."""
        return self._context.metrics.snapshot()

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        """Write one micro-batch with the sink's guarantee. `foreachBatch` calls this.

        Raises:
            InvalidInput: something must be changed by hand, see its subclasses. Also for a batch that this run of the
                query has already taken, and for the batch after a failed one.
            NotCommitted: every try failed and was aborted. Restarting the query is safe.
            CommitUnknown: the outcome could not be settled in time. Restarting the query is safe.
            Unacknowledged: every try without a transaction failed. Restarting the query writes the batch again.
            ReplayFailed: a replay or a shadow, which writes no rows, failed in Spark. Restarting the query is safe.
            Fenced: another driver owns the sink now.
        """
        with self.batch(batch_id) as txn:
            txn.write(df)

    def check(self, df: DataFrame, topic: str | None = None) -> ColumnRoles:
        """Refuse a DataFrame if a batch would refuse its columns. It may be a streaming one that has not started.

        Nothing runs, and nothing is written or registered. Each call asks for the topic's newest schema. The call can't
        see faults of single rows, such as a null that the schema forbids, or a wrong topic or partition in a row. With
        `register_schema` it does not offer the new version to the broker, which may still refuse it.

        Args:
            df: message columns, see `eos.sinks.columns`.
            topic: in place of the sink's own topic.

        Returns:
            The use of each column, and the columns that are not written: `print(sink.check(df))`.

        Raises:
            InvalidInput: a column is wrong, the topic does not exist, the columns do not fit its schema, or the
                broker does not answer.
        """
        try:
            return self._context.plan.check(df, topic)
        except InvalidInput:
            raise
        except NetworkError as error:
            raise self._context.out_of_reach(error) from error

    @contextmanager
    def batch(self, batch_id: int, identity: Identity | None = None) -> Iterator[Batch]:
        """Collect the writes of one micro-batch and commit them together at the end of the block.

        If the block raises, nothing was written. On a replay no row is sent, but Spark runs the DataFrames to their
        end, since stateful queries need this.

        Args:
            batch_id: as Spark gives it.
            identity: the query and the input of the batch. Inside `foreachBatch` the sink finds both by itself, and
                refuses this argument. Outside a streaming query it is required.

        Raises the errors of a call of the sink, at the end of the block.
        """
        query = self._query_here()
        stray = identity is None and query is None
        with nullcontext() if stray else self._turn:  # a stray thread may be awaited by one that has its turn
            collected = Batch(batch_id, self, query)
            try:
                refuse_another_type(batch_id)
                if isinstance(identity, Identity) and isinstance(identity.run_id, str):
                    collected._run_id = identity.run_id
                refuse_another_type(batch_id, identity)
                collected._identity = identity
                if identity is not None and query is not None:
                    raise InvalidInput(IDENTITY_IN_A_QUERY)
                if not stray:
                    self._context.plan.begin(collected._run_id if query is None else query.run_id)
                with self._context.observed(batch_id, stray=stray):
                    try:
                        yield collected
                    finally:
                        collected._end_block()
                    collected._refuse_a_part()
                    if not collected._writes:
                        raise InvalidInput(
                            f"Batch {batch_id} has no txn.write(). Write an empty DataFrame if the batch has no rows. "
                            "The log must know that its input was used."
                        )
                    self._take(collected)
                    collected._end()
            except BaseException as error:
                self._failed(collected, error)
                raise

    def close(self) -> None:
        """Close the sink's producers. Another driver, or this one, can take the sink over again."""
        with self._turn:
            if self._shared is not None:
                self._shared.close()

    def _take(self, batch: Batch) -> None:
        """Give the batch to the run of the query that it belongs to, which begins with its first batch."""
        session, query, identity = batch._writes[0].df.sparkSession, batch._query, batch._identity
        try:
            if identity is None:
                query = query or query_of_call(session)
                refuse_another_batch(query, batch.batch_id)
                offsets = query.offsets(batch.batch_id)
                identity = Identity(query.query_id, query.run_id, offsets, self._context.options.principal)
            else:
                refuse_identity_in_a_query(session, identity)
            self._context.metrics.identified(identity)
            shared = self._shared_run(identity.run_id, query)
            shared.take(self._context.run(session, query, identity, batch.batch_id), batch._writes, batch._requests)
        except (EosError, Py4JError, PySparkException) as error:
            left = as_it_leaves(error, batch.batch_id, query)
        else:
            return
        raise left from None

    def _shared_run(self, run_id: str, query: spark.Query | None) -> SharedRun:
        """Return what is shared in this run. One of another query that runs still goes on beside it."""
        before = self._shared
        if before is not None and before.run_id == run_id:
            return before
        if before is not None and (before.query is None or not before.query.is_active()):
            before.close()
        context = self._context
        self._shared = shared_run(context.cluster.service_url, context.options, run_id, query)
        return self._shared

    def _failed(self, batch: Batch, error: BaseException, *, late: bool = False) -> None:
        """Note that a batch failed in its run, which user code may swallow. Raises nothing."""
        options, identity = self._context.options, batch._identity
        with suppress(*spark.JVM_GONE):
            stray = batch._query is None
            found = [batch._query] if batch._query else queries_of_stray(batch._session, identity, options.name)
            for query in found:
                stopped, in_hand = not query.is_active(error), query.batch_in_hand()
                # The batch that Spark hands over is missing, whichever id the caller gave. A stray thread may be late.
                earlier = (stray or late) and isinstance(batch.batch_id, int)
                failed = min(batch.batch_id, in_hand) if earlier else in_hand
                service_url = self._context.cluster.service_url
                shared = shared_run(service_url, options, query.run_id, query)
                shared.failed(failed, error, batch._requests, stopped=stopped)
                if stray:  # no error reaches the query's own thread, and no batch would ever be written
                    query.end_after_batch()
            if found:
                return
        if batch._run_id is not None:
            self._shared_run(batch._run_id, None).failed(batch.batch_id, error, batch._requests)
        elif stray:
            log.error("Batch %s failed outside of the thread of a query. No query was found. %s", batch.batch_id, error)

    def _query_here(self) -> spark.Query | None:
        """Return the query whose batch function runs in this thread; None: none, or it can't be asked for."""
        try:
            return spark.current_query(None, None if self._shared is None else self._shared.query)
        except spark.JVM_GONE:
            return None
