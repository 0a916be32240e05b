"""The driver side of the exactly-once sink: what `foreachBatch` calls.

    with sink.batch(batch_id) as txn:    # collects the writes; nothing is open yet
        txn.write(df)
    # on leaving: take over once for a query run, decide by the log, then try

Each try is one transaction. A try that is known to have failed was aborted, and is made
again in a new one; a try whose outcome is unknown is settled by the control log first.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from eos.commit import attempt as micro_batch
from eos.commit.attempt import Written
from eos.commit.control_log import KEEP, REGISTRATION, Registration, fits, kept_since
from eos.commit.decision import Action, Identity
from eos.commit.owner import Owner, Settings
from eos.delivery.delivery import Delivered, Delivery, Prepared
from eos.delivery.writer import Report, WriteSettings
from eos.doctor.retention import check_retention, holders
from eos.errors import CommitUnknown, EosError, InvalidInput, NetworkError, NotCommitted, Stopped
from eos.pulsar.net.client import Client
from eos.pulsar.wire.txn import TxnId
from eos.sinks.columns import canonical
from eos.sinks.metrics import Metrics, Snapshot
from eos.sinks.options import SinkOptions
from eos.sinks.topics import valid_topic
from eos.spark import jobs
from eos.spark import query as spark
from eos.steps import Step

log = logging.getLogger("eos.sink")

_LOOK_AGAIN = 100  # batches until the sink looks again which markers savepoints need


@dataclass(slots=True)
class Batch:
    """The writes of one micro-batch. All of them become one transaction when the block ends."""

    batch_id: int
    _sink: Sink
    _writes: list[tuple[DataFrame, str | None]] = field(default_factory=list)
    _prepared: list[Prepared] = field(default_factory=list)

    def write(self, df: DataFrame, topic: str | None = None) -> None:
        """Add the rows of a DataFrame to the batch; they are sent when the block ends.

        Args:
            df: message columns, see `eos.sinks.columns`.
            topic: in place of the sink's own topic.

        Raises:
            InvalidInput: a column is wrong, or the topic does not exist.
        """
        self._writes.append(self._sink._planned(df, topic))


class Sink:
    """Writes each micro-batch of one streaming query as one Pulsar transaction.

    Call it as the function of `foreachBatch`, or use `batch()` in a function of your own to
    write several DataFrames and topics in one transaction. It is not for several queries at
    once: each needs a sink with a name of its own.
    """

    def __init__(self, service_url: str, options: SinkOptions) -> None:
        self._options = options
        self._cluster = options.cluster(service_url)
        self._client = Client.shared(self._cluster)
        self._metrics = Metrics()
        self._observer = self._metrics.timing(options.observer)
        self._owner: Owner | None = None
        self._query: spark.Query | None = None
        self._run_id: str | None = None
        self._registered: Registration | None = None
        self._topics: set[str] = set()
        self._lock = threading.Lock()
        settings = WriteSettings(
            cluster=self._cluster,
            topic=options.topic,
            key_hash=options.key_hash,
            compression=options.compression,
            max_in_flight_bytes=options.max_in_flight_bytes,
            time_limit_s=options.transaction_timeout_s,
        )
        self._delivery = Delivery(settings, options.observer, options.small_batch_rows)
        self._check_cluster()

    @property
    def metrics(self) -> Snapshot:
        """The sink's counters and the times of its steps."""
        return self._metrics.snapshot()

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        """Write one micro-batch exactly once; this is what `foreachBatch` calls.

        Raises:
            InvalidInput: something must be changed by hand; see its subclasses.
            NotCommitted: every try failed and was aborted. Restarting the query is safe.
            CommitUnknown: the outcome could not be settled in time. Restarting the query is safe.
            Fenced: another driver owns the sink now.
        """
        with self.batch(batch_id) as txn:
            txn.write(df)

    @contextmanager
    def batch(self, batch_id: int, identity: Identity | None = None) -> Iterator[Batch]:
        """Collect the writes of one micro-batch and commit them together at the end of the block.

        A block that raises has written nothing. On a replay nothing is sent, but the
        DataFrames are run to their end, as stateful queries need.

        Args:
            batch_id: as Spark gives it.
            identity: whose batch it is and of which input. Found by itself inside foreachBatch;
                outside a streaming query it must be given.
        """
        with self._lock:
            collected = Batch(batch_id, self)
            yield collected
            if not collected._writes:
                raise InvalidInput(
                    f"Batch {batch_id} has no txn.write(). Write an empty DataFrame if the batch has no rows: "
                    "the log must know that its input was used."
                )
            self._commit(collected, identity)

    def close(self) -> None:
        """Close the sink's producers. Another driver, or this one, can take the sink over again."""
        self._delivery.close()
        if self._owner is not None:
            self._owner.close()
            self._owner = None

    def _planned(self, df: DataFrame, topic: str | None) -> tuple[DataFrame, str | None]:
        if not isinstance(df, ClassicDataFrame):
            raise InvalidInput(
                f"The sink was given a {type(df).__module__}.{type(df).__name__}; it needs a DataFrame of Spark in "
                "classic mode, since it reads the query's checkpoint through the driver's JVM."
            )
        where = valid_topic(topic) if topic is not None else self._options.topic
        if where is not None:
            self._require_topic(where)
        options = self._options
        columns = canonical(
            df, options.value_format, topic_given=where is not None, ignore_null_fields=options.ignore_null_fields
        )
        return columns, where

    def _commit(self, batch: Batch, identity: Identity | None) -> None:
        if identity is None:
            identity = self._identify(batch)
        if self._is_shadow(identity):
            self._skip(batch, run=True)
            return
        owner = self._own(identity, batch._writes[0][0].sparkSession)
        batch_id = batch.batch_id
        if batch_id % _LOOK_AGAIN == 0:
            owner.keep_markers_since(self._markers_since())
        tries = Retrying(
            stop=stop_after_attempt(self._options.attempts),
            wait=wait_random_exponential(multiplier=0.2, max=10),
            retry=retry_if_exception(_worth_another_try),
            sleep=self._sleep,
            before_sleep=lambda state: log.warning(
                "batch %d: try %d failed (%s); trying again",
                batch_id,
                state.attempt_number,
                state.outcome.exception() if state.outcome else "",
            ),
            reraise=True,
        )
        for attempt in tries:
            with attempt:
                self._try(owner, batch, identity, first=attempt.retry_state.attempt_number == 1)
        self._observer(Step.RETURN, "before", batch_id)
        self._observer(Step.RETURN, "after", batch_id)

    def _try(self, owner: Owner, batch: Batch, identity: Identity, *, first: bool) -> None:
        """Decide by the log, then write the batch in one transaction, or skip it."""
        if self._stopped():
            raise Stopped(f"The query was stopped; batch {batch.batch_id} is written when it starts again.")
        if owner.unsettled:
            owner.settle()
        if micro_batch.decide(owner, batch.batch_id, identity) is Action.SKIP:
            self._skip(batch, run=first)
            return
        try:
            micro_batch.attempt(
                owner,
                batch.batch_id,
                identity,
                write=lambda txn, _: self._deliver(batch, txn),
                meanwhile=lambda: self._prepare(batch),
            )
        finally:
            self._metrics.transaction_ended()
        newest = owner.view.newest
        if newest is not None:
            rows, size = sum(newest.rows.values()), sum(newest.bytes.values())
            self._delivery.committed(rows, size)
            self._metrics.committed(rows, size)

    def _skip(self, batch: Batch, *, run: bool) -> None:
        """Write nothing; run the DataFrames to their end unless a try of this call has run them already."""
        log.info("batch %d: nothing is written", batch.batch_id)
        self._metrics.skipped()
        if run:
            for df, _ in batch._writes:
                jobs.run_to_end(df)

    def _prepare(self, batch: Batch) -> None:
        """Collect or plan each write; a second try finds collected rows, and plans jobs anew."""
        with self._around_spark(batch):
            for place, (df, topic) in enumerate(batch._writes):
                if place == len(batch._prepared):
                    batch._prepared.append(self._delivery.prepare(df, topic))
                else:
                    batch._prepared[place] = self._delivery.prepare(df, topic, batch._prepared[place].rows)

    def _deliver(self, batch: Batch, txn: TxnId) -> Written:
        """Send every write of the batch into the transaction."""
        total = Report()
        sent: list[Delivered] = []
        try:
            with self._around_spark(batch):
                for prepared in batch._prepared:
                    sent.append(self._delivery.deliver(prepared, txn, batch.batch_id))
                    total.merge(sent[-1].report)
        except BaseException:
            for one in sent:
                one.abandon()
            raise
        return Written(total.rows, total.bytes, lambda: self._finish(batch, sent))

    def _finish(self, batch: Batch, sent: Sequence[Delivered]) -> None:
        """Await what was sent; after a failure the rest is abandoned."""
        with self._around_spark(batch):
            for place, one in enumerate(sent):
                try:
                    one.finish()
                except BaseException:
                    for later in sent[place + 1 :]:
                        later.abandon()
                    raise

    @contextmanager
    def _around_spark(self, batch: Batch) -> Iterator[None]:
        """Turn the failure of a Spark job into Stopped, or into NotCommitted with the reason in few words."""
        try:
            yield
        except EosError:
            raise
        except Exception as error:
            log.debug("batch %d: the Spark job failed", batch.batch_id, exc_info=True)
            # Not chained: on a long text with a Py4JJavaError in it, Spark's own pattern for such
            # errors (StreamExecution.PROXY_ERROR) overflows the stack of the query's thread.
            if self._stopped():
                raise Stopped(
                    f"The query was stopped while batch {batch.batch_id} was being written. It is aborted, and is "
                    "written when the query starts again."
                ) from None
            raise NotCommitted(f"Spark could not run it: {spark.reason(error)}") from None

    def _identify(self, batch: Batch) -> Identity:
        """Return whose batch it is, as Spark tells inside foreachBatch."""
        session = batch._writes[0][0].sparkSession
        query = spark.current_query(session, self._query)
        if query is None:
            raise InvalidInput(
                "The sink was not called from foreachBatch, so it can't tell which query and input the batch belongs "
                "to. Outside a streaming query use sink.batch(batch_id, identity=eos.Identity(...))."
            )
        self._query = query
        return Identity(query.query_id, query.run_id, query.offsets(batch.batch_id), self._options.principal)

    def _is_shadow(self, identity: Identity) -> bool:
        """Tell whether the checkpoint is a copy beside a live query; looked up once for each run of the query."""
        if self._run_id != identity.run_id:
            self.close()
            self._registered, self._run_id = self._registration(), identity.run_id
            if self._registered is not None and self._registered.shadow:
                fits(self._registered, self._options.name, self._options.control_topic)
                log.warning("this checkpoint is a shadow of a live one: nothing is written to any topic")
        return self._registered is not None and self._registered.shadow

    def _own(self, identity: Identity, session: SparkSession) -> Owner:
        """Take the sink over, once for each run of the query."""
        if self._owner is not None:
            return self._owner
        spark.refuse_speculation(session)
        options = self._options
        owner = Owner(
            self._client,
            options.name,
            options.control_topic,
            Settings(
                ttl_s=options.transaction_timeout_s,
                markers_kept=options.markers_kept,
                markers_kept_since=self._markers_since(),
            ),
            observer=self._observer,
            stopped=self._stopped,
            holders=self._holders,
            sleep=self._sleep,
        )
        self._client.ensure_topic(options.control_topic)
        if options.admin_url is not None:
            check_retention(options.admin_url, self._cluster, options.control_topic)
        owner.take_over(identity.query_id, identity.run_id, self._registered, identity.principal)
        if self._query is not None:
            self._query.register(REGISTRATION, owner.registration.text)
        newest = owner.view.newest
        self._delivery.begin(session, sum(newest.rows.values()) if newest is not None else None)
        self._owner = owner
        return owner

    def _markers_since(self) -> int | None:
        """The first batch whose marker must be kept: that of the oldest savepoint, or of a roll forward under way."""
        kept = kept_since(self._query.read(KEEP)) if self._query is not None else None
        rolled = self._registered.rolls_forward_from if self._registered is not None else None
        return min((batch for batch in (kept, rolled) if batch is not None), default=None)

    def _holders(self, coordinator: int, _topic: str) -> str | None:
        admin_url = self._options.admin_url
        return None if admin_url is None else holders(admin_url, self._cluster, coordinator)

    def _registration(self) -> Registration | None:
        text = self._query.read(REGISTRATION) if self._query is not None else None
        return None if text is None else Registration.parse(text)

    def _check_cluster(self) -> None:
        """Refuse a broker out of reach, one without transactions, and a missing topic."""
        try:
            self._client.coordinators()
            if self._options.topic is not None:
                self._require_topic(self._options.topic)
        except NetworkError as error:
            raise InvalidInput(
                f"The sink can't use {self._cluster.service_url}: {error}. Check the address, and that the broker runs."
            ) from error

    def _require_topic(self, topic: str) -> None:
        if topic not in self._topics:
            self._client.partitions(topic)
            self._topics.add(topic)

    def _stopped(self) -> bool:
        return self._query is not None and not self._query.is_active()

    def _sleep(self, seconds: float) -> None:
        """Sleep, but wake up soon after the query was stopped."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._stopped():
            time.sleep(min(0.1, left))


def _worth_another_try(error: BaseException) -> bool:
    return isinstance(error, (NotCommitted, CommitUnknown)) and not isinstance(error, Stopped)
