"""One run of a query on a sink: from its first batch until the next run's, or until the sink is closed.

A run takes the sink over once. It decides about each batch by the control log, and then tries. Each try is
one transaction. A try that is known to have failed was aborted, and is made again in a new one; a try whose outcome is
unknown is settled by the control log first.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, TypeVar

from pyspark.sql import SparkSession

from eos.commit.attempt import attempt
from eos.commit.control_log import Marker
from eos.commit.decision import Identity
from eos.commit.owner import Owner
from eos.commit.registration import KEEP, REGISTRATION, Registration, keeps_state, retained_since, stateful_operators
from eos.commit.retry import OwnerSettings
from eos.config import Cluster
from eos.delivery.abort_record import PATIENCE_S
from eos.delivery.batch import BatchDelivery
from eos.delivery.delivery import Delivery, Write, least_care
from eos.errors import CommitUnknown, Fenced, InvalidInput, NotCommitted, ReplayFailed, TookTooLong, Unacknowledged
from eos.preflight.recovery import check_recovery, danger
from eos.preflight.retention import check_expiry, check_retention, holders, written_partitions
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.topics import namespace_of
from eos.sinks.metrics import Metrics, timing
from eos.sinks.options import SinkOptions
from eos.spark import jobs, stages
from eos.spark import query as spark
from eos.spark.capabilities import Capability, has
from eos.spark.jobs import OldGarbage
from eos.steps import Step

log = logging.getLogger("eos.sink")

T = TypeVar("T")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 10.0

_LOOK_AGAIN = 100  # batches, at most, until the run looks again which markers savepoints need


@dataclass(frozen=True, slots=True)
class RunContext:
    """The things that a run needs at its start.

    Attributes:
        options: the sink's.
        client: the cluster.
        metrics: called with steps and outcomes.
        session: of the run's first batch.
        query: the streaming query; None outside one.
        identity: of the run's first batch.
        batch_id: that batch's.
        taken: the last batch that was taken in the run, and why it is not taken again; changed by each.
    """

    options: SinkOptions
    client: Client
    metrics: Metrics
    session: SparkSession
    query: spark.Query | None
    identity: Identity
    batch_id: int
    taken: dict[int, str] = field(default_factory=dict)


class Run:
    """A run that writes nothing: its checkpoint is a copy beside a live query.

    Attributes:
        run_id: Spark's.
        query: the streaming query; None outside one.
        jumped: as in `Registration`.
    """

    writes: ClassVar[bool] = False
    """Whether a batch that it was not given is missing from the output."""

    _AGAIN: ClassVar[tuple[type[BaseException], ...]] = (InvalidInput, NotCommitted, Fenced)
    """After these the same batch is taken again. The last is for good: the owner refuses all later calls."""

    def __init__(
        self, run_id: str, query: spark.Query | None, metrics: Metrics, taken: dict[int, str] | None = None
    ) -> None:
        self.run_id, self.query, self._metrics = run_id, query, metrics
        self.jumped: tuple[int, int] | None = None
        self._taken = {} if taken is None else taken
        self._old = OldGarbage()

    def take(self, batch_id: int, writes: Sequence[Write], identity: Identity) -> None:
        """Write the batch once, or skip it where the log has it. Raises what `Sink.__call__` does.

        Spark hands a batch over once in a run, so a second time is a second part of it. After a failure it is taken
        again if nothing of it can be visible. If that is not known it isn't: the log may show it as committed, and
        then it would be skipped, though it need not hold the rows of the second call.
        """
        taken = self._taken
        if taken.get(batch_id):
            raise InvalidInput(taken[batch_id])
        taken.clear()
        again = "Start the query again. Spark hands the batch over, and the control log decides."
        if self.query is None:
            again = "Give the eos.Identity another run_id and call the sink again for it. The control log decides."
        taken[batch_id] = (
            f"The outcome of batch {batch_id} is unknown, and this run of the query cannot find out whether "
            f"these are the same rows. {again}"
        )
        try:
            self._write(batch_id, writes, identity)
        except self._AGAIN:
            del taken[batch_id]
            raise
        except ReplayFailed as error:
            taken[batch_id] = str(error)
            raise
        self._old.collect()
        taken[batch_id] = _taken_already(batch_id)

    def tell(self, metrics: Metrics) -> None:
        """Count and time for another sink of the same name from now on."""
        self._metrics = metrics

    @property
    def newest(self) -> Marker | None:
        """The MARKER of the newest batch that is committed, as far as this run has asked: never."""
        return None

    def _write(self, batch_id: int, writes: Sequence[Write], identity: Identity) -> None:
        self._skip(batch_id, writes, "this checkpoint is a shadow of a live one")

    def close(self) -> None:
        """Close what is open."""

    def _skip(self, batch_id: int, writes: Sequence[Write], why: str) -> int:
        """Write nothing, `why` says because of what, run the DataFrames, and count their rows. Raises ReplayFailed."""
        log.info("batch %d: nothing is written, since %s", batch_id, why)
        self._metrics.skipped(self.newest)
        try:
            return sum(jobs.run_to_end(write.df) for write in writes)
        except Exception as error:
            raise ReplayFailed(
                f"Nothing of batch {batch_id} was to be written, since {why}. Spark runs it all the same, for the "
                f"state of the query, and could not: {spark.reason(error)}. Start the query again."
            ) from error


class WritingRun(Run):
    """A run that writes each batch by tries. Args: what it begins with."""

    writes = True
    _delivery: Delivery

    def __init__(self, start: RunContext) -> None:
        super().__init__(start.identity.run_id, start.query, start.metrics, start.taken)
        self._options = start.options
        self._observer = timing(lambda: self._metrics, start.options.observer)

    def _delivery_of(
        self, start: RunContext, last_rows: int | None, time_limit_s: float, named: Iterable[str] = ()
    ) -> Delivery:
        """Make the delivery of the run. Args: what it begins with; the others as of `Delivery`, `WriteSettings`."""
        options, query = start.options, start.query
        stages.keep_records(start.session)
        facts = {
            "spark.app.id": start.session.sparkContext.applicationId,
            "spark.query.name": None if query is None else query.name,
            "spark.query.id": None if query is None else query.query_id,
            "spark.run.id": None if query is None else query.run_id,
        }
        admin_url = options.admin_url
        settings = options.settings(time_limit_s, facts)
        ask = (
            None
            if admin_url is None
            else partial(written_partitions, admin_url, start.client.cluster, options.control_topic, PATIENCE_S)
        )
        return Delivery(
            start.client,
            settings,
            options.small_batch_rows,
            last_rows=last_rows,
            least_care=least_care(start.session),
            compares_shuffles=stages.compares_shuffles(start.session),
            last_topics=tuple(named),
            named=set(named),
            ask=ask,
        )

    def _tries(self, batch_id: int, once: Callable[[], T]) -> T:
        """Try a batch, with pauses of chance between the tries: sinks that failed together don't come back together.

        A try that has learned a smaller frame limit does not count. A batch needs several such tries for each topic
        that has the policy, and a new process has learned nothing. They end, since each limit is an eighth of the last.
        """
        number, failed, longest_s = 1, 0, _FIRST_PAUSE_S
        while True:
            learned = self._delivery.frame_limits
            try:
                return once()
            except BaseException as why:
                failed += self._delivery.frame_limits == learned
                if not self._worth_another_try(why) or failed >= self._options.attempts:
                    raise
                log.warning("batch %d: try %d failed (%s). The sink tries again", batch_id, number, why)
            self._sleep(random.uniform(0, longest_s))
            number, longest_s = number + 1, min(2 * longest_s, _LONGEST_PAUSE_S)

    def _returns(self, batch_id: int) -> None:
        self._observer(Step.RETURN, "before", batch_id)
        self._observer(Step.RETURN, "after", batch_id)

    def _stopped(self, failed: BaseException | None = None) -> bool:
        return self.query is not None and not self.query.is_active(failed)

    def _sleep(self, seconds: float) -> None:
        """Sleep, but wake up soon after the query was stopped."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._stopped():
            time.sleep(min(0.1, left))

    def _worth_another_try(self, error: BaseException) -> bool:
        can_pass = isinstance(error, (NotCommitted, CommitUnknown, Unacknowledged))
        return can_pass and not isinstance(error, TookTooLong) and not self._stopped(error)


class OwningRun(WritingRun):
    """A run that owns the sink.

    Args: what it begins with; what the checkpoint says of the sink; `unlogged` as in `Owner.take_over`.
    """

    _look_after = _LOOK_AGAIN
    _since_look = 0  # batches that were taken since; their ids may have gaps

    def __init__(self, start: RunContext, registered: Registration | None, unlogged: int | None = None) -> None:
        super().__init__(start)
        spark.refuse_speculation(start.session)
        self._registered = registered
        self.jumped = None if registered is None else registered.jumped
        # Well before the newest markers are all others than when a savepoint was made.
        self._look_after = min(_LOOK_AGAIN, max(1, start.options.markers_kept // 10))
        self._owner = self._owner_of(start.client)
        try:
            self._take_over(start.client, start.identity, start.batch_id, unlogged)
        except BaseException:
            self._owner.close()
            raise
        newest = self.newest
        last_rows = None if newest is None else sum(newest.rows.values())
        named = () if newest is None else newest.rows
        self._delivery = self._delivery_of(start, last_rows, start.options.transaction_timeout_s, named)

    @property
    def newest(self) -> Marker | None:
        """The MARKER of the newest batch that is committed."""
        return self._owner.view.newest

    def _owner_of(self, client: Client) -> Owner:
        options = self._options
        return Owner(
            client,
            options.name,
            options.control_topic,
            OwnerSettings(
                ttl_s=options.transaction_timeout_s,
                markers_retained=options.markers_kept,
                markers_retained_since=self._markers_since(),
            ),
            observer=self._observer,
            stopped=self._stopped,
            holders=lambda coordinator, _: (
                None if options.admin_url is None else holders(options.admin_url, client.cluster, coordinator)
            ),
            sleep=self._sleep,
        )

    def _take_over(self, client: Client, identity: Identity, batch_id: int, unlogged: int | None) -> None:
        options = self._options
        self._owner.make_log(self._registered)
        if options.admin_url is not None:
            self._owner.insist(partial(self._check_policies, options.admin_url, client.cluster), "the admin API")
        self._owner.take_over(identity.query_id, identity.run_id, self._registered, identity.principal, unlogged)
        if self.query is not None:
            described = has(Capability.DESCRIBES_OPERATORS)
            stateful = keeps_state(self._registered, self.query.has_state(), batch_id, described)
            operators = stateful_operators(self._registered, self.query.operators())
            registration = replace(self._owner.registration, stateful=stateful, operators=operators)
            self.query.register(REGISTRATION, registration.text)

    def _check_policies(self, admin_url: str, cluster: Cluster) -> None:
        """Refuse policies that the sink cannot work with. Raises NetworkError while the admin API does not answer."""
        options = self._options
        check_retention(admin_url, cluster, options.control_topic)
        if self.query is None:  # nothing but the log remembers what is written
            check_expiry(admin_url, cluster, options.control_topic)
        with Admin(admin_url, cluster.credentials, cluster.tls, cluster.request_timeout_s) as admin:
            if options.topic is not None:
                check_recovery(admin, namespace_of(options.topic))
            if told := danger(admin):
                log.log(logging.WARNING if told.certain else logging.INFO, told.text)

    def _write(self, batch_id: int, writes: Sequence[Write], identity: Identity) -> None:
        if self._since_look >= self._look_after:
            self._owner.log.retain_markers_since(self._markers_since())
            self._since_look = 0
        self._since_look += 1
        delivery = BatchDelivery(self._delivery, batch_id, writes)
        try:
            self._tries(batch_id, lambda: self._try(batch_id, identity, delivery))
        finally:
            self._metrics.delivered(delivery.seconds)
        newest = self.newest
        if newest is not None and newest.txn == delivery.sent_in:
            self._note_commit(newest, delivery.frames)
        elif newest is not None and (newest.batch_id, newest.run_id) == (batch_id, self.run_id) and self.query:
            raise InvalidInput(_taken_already(batch_id))  # Spark hands a batch over once in a run
        else:
            self._warn_of_more_rows(batch_id, self._skip(batch_id, writes, "the control log has it as committed"))
        self._returns(batch_id)

    def _warn_of_more_rows(self, batch_id: int, rows: int) -> None:
        """Warn where a replay has more rows than its MARKER: a run that was killed may have missed a second call.

        This is not an error. A function that was changed may give other rows, and so do the clock and chance.
        """
        newest = self.newest
        committed = None if newest is None or newest.batch_id != batch_id else sum(newest.rows.values())
        if committed is not None and rows > committed:
            log.warning(
                "Batch %d is committed with %d rows, and now has %d rows. It is not written again. If an earlier run "
                "ended between two calls of the sink for the batch, %d rows are missing from the output. Write them by "
                "hand. Otherwise the function of foreachBatch was changed, or its rows depend on time or chance.",
                *(batch_id, committed, rows, rows - committed),
            )

    def close(self) -> None:
        """Close the producers. Another run can take the sink over again."""
        self._delivery.close()
        self._owner.close()

    def _try(self, batch_id: int, identity: Identity, delivery: BatchDelivery) -> None:
        """Decide by the log, then write the batch in one transaction where that is the decision."""
        try:
            attempt(self._owner, batch_id, identity, delivery)
        finally:
            self._metrics.transaction_ended()

    def _note_commit(self, marker: Marker, frames: Mapping[str, int]) -> None:
        rows, size = sum(marker.rows.values()), sum(marker.bytes.values())
        self._delivery.committed(rows, size, marker.rows)
        self._metrics.committed(marker, frames, marker.txn)
        log.info("%s", self._metrics.story(marker))

    def _markers_since(self) -> int | None:
        """The first batch whose marker must be retained: the oldest savepoint's, or of a roll forward under way."""
        needed = retained_since(self.query.read(KEEP)) if self.query is not None else None
        rolled = self._registered.rolls_forward_from if self._registered is not None else None
        return min((batch for batch in (needed, rolled) if batch is not None), default=None)


def _taken_already(batch_id: int) -> str:
    return (
        f"This run of the query has written or skipped batch {batch_id} already. The first rows stay, and "
        "these rows are not written. Put both writes into one `with sink.batch(batch_id) as txn:`."
    )
