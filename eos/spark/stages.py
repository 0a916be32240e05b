"""How often the tasks of a job ran, by Spark's own record of its stages (AppStatusStore, Spark 4.3)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext, SparkJobInfo, SparkStageInfo
from pyspark.sql import SparkSession

from eos.errors import NotCommitted
from eos.spark.capabilities import Capability, has

Jvm = Any  # py4j objects have no types

ENOUGH_STAGES: Final = 200
"""Where Spark retains fewer ended stages than this for its UI, other jobs could push the sink's out before it looks."""

_QUICK_S = 0.02
_LONG_S = 1.0
_LONGEST_S = 60.0
_PAUSES_S = (0.002, 0.05)
"""Seconds: of quick looks, of slower ones, and in all; the pauses between looks, quick and slow."""

COMPARES_SHUFFLES: Final = "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch"
"""Spark's option, true by default from 4.2 on: a job fails if its input was computed again and is not the same."""

_GROUP: Final = "spark.jobGroup.id"

_own: WeakKeyDictionary[SparkContext, Records] = WeakKeyDictionary()


class Records(Protocol):
    """The facts about jobs and stages that are known: `pyspark.StatusTracker` fits it."""

    def getJobIdsForGroup(self, jobGroup: str | None) -> list[int]:  # noqa: N802, N803
        """Return the jobs of a group; None: those of no group."""
        ...

    def getJobInfo(self, jobId: int) -> SparkJobInfo | None:  # noqa: N802, N803
        """Return what is known of a job."""
        ...

    def getStageInfo(self, stageId: int) -> SparkStageInfo | None:  # noqa: N802, N803
        """Return what is known of a stage."""
        ...


def keep_records(session: SparkSession) -> None:
    """Have stages remembered long enough, also where the UI is to retain few. Call it before the first job."""
    context = session.sparkContext
    conf: Jvm = context._jsc.getConf()
    retained = (conf.getInt(f"spark.ui.{name}", 1000) for name in ("retainedStages", "retainedJobs"))
    if min(retained) < ENOUGH_STAGES and context not in _own:
        _own[context] = _OwnRecords(context, conf.clone())


class _OwnRecords:
    """A second listener of Spark's own kind beside that of the UI, with a store of its own: see `Records`."""

    def __init__(self, context: SparkContext, conf: Jvm) -> None:
        jvm: Jvm = context._jvm
        of: Jvm = context._jsc
        none = jvm.scala.Option.empty()
        retained = {"retainedStages": ENOUGH_STAGES, "retainedTasks": 1, "retainedJobs": ENOUGH_STAGES}
        for name, value in {**retained, "liveUpdate.period": -1}.items():
            conf.set(f"spark.ui.{name}", str(value))
        status = jvm.org.apache.spark.status
        store = status.ElementTrackingStore(jvm.org.apache.spark.util.kvstore.InMemoryStore(), conf)
        listener = status.AppStatusListener(store, conf, True, none, none)
        started = jvm.org.apache.spark.scheduler.SparkListenerApplicationStart
        # It missed the start of the application, and would stumble over the end without it.
        app_id = jvm.scala.Option.apply(context.applicationId)
        listener.onApplicationStart(started("eos", app_id, context.startTime, "", none, none, none))
        of.sc().addSparkListener(listener)
        self._tracker: Jvm = jvm.org.apache.spark.SparkStatusTracker(of.sc(), status.AppStatusStore(store, none, none))

    def getJobIdsForGroup(self, jobGroup: str | None) -> list[int]:  # noqa: N802, N803
        """See `Records`."""
        return list(self._tracker.getJobIdsForGroup(jobGroup))

    def getJobInfo(self, jobId: int) -> SparkJobInfo | None:  # noqa: N802, N803
        """See `Records`."""
        found = self._tracker.getJobInfo(jobId)
        if not found.isDefined():
            return None
        job = found.get()
        return SparkJobInfo(jobId, list(job.stageIds()), str(job.status()))

    def getStageInfo(self, stageId: int) -> SparkStageInfo | None:  # noqa: N802, N803
        """See `Records`."""
        found = self._tracker.getStageInfo(stageId)
        if not found.isDefined():
            return None
        stage = found.get()
        return SparkStageInfo(stageId, *(getattr(stage, fact)() for fact in SparkStageInfo._fields[1:]))


def prove_run(
    session: SparkSession, stage_ids: Sequence[int], partitions: Sequence[int], *, retries: bool = False
) -> None:
    """Return only if every partition of the writing stage was run exactly once; with `retries`, at least once.

    Spark retries tasks, and after a FetchFailed it runs partitions again in a new stage
    attempt with attemptNumber 0, which a Python task can't see. `collect()` returns one
    right row each all the same, so the rows prove nothing: the stage's own record does.

    The record is kept by a listener, a moment late but in order. It is a proof as soon as it
    shows that all tasks of the stage's first attempt have succeeded and none has failed: what
    makes Spark run a partition of a result stage again is a task that failed, or one that was
    lost, whose second run refuses to write and fails. `listenerBus().waitUntilEmpty()` waits for
    every listener of the application, ten seconds at most, so we look for a while by ourselves first,
    and go on looking where a slow listener of somebody else's holds it up.

    With `retries` a task that failed does no harm, since its second run has written the whole partition again. A second
    attempt of the stage does: its partitions may hold other rows than those of the first, where a shuffle before it
    was computed anew, and a row could be in none that was written.

    Raises:
        NotCommitted: a partition ran twice, may have, or nothing is known of the stage.
    """
    stages = set(stage_ids)
    if not stages:
        return  # the plan was optimised away: no task ran, so none wrote
    if len(stages) > 1:
        raise NotCommitted(f"The writing tasks ran in more than one stage ({sorted(stages)}): partitions ran twice.")
    (stage_id,) = stages
    stage: SparkStageInfo | None = None
    for stage in _looks(session, stage_id):
        if stage is not None and _ran(stage, partitions, retries):
            return
        if stage is not None and (stage.currentAttemptId != 0 or (stage.numFailedTasks and not retries)):
            break  # nothing that comes later changes that
    if stage is None:
        raise NotCommitted(f"Spark knows nothing of stage {stage_id} any more, so it is not proven to have run once.")
    if stage.currentAttemptId != 0:
        raise NotCommitted(
            f"Stage {stage_id} had {stage.currentAttemptId + 1} attempts: Spark ran partitions again after losing "
            "shuffle files."
        )
    raise NotCommitted(
        f"Stage {stage_id} is not proven to have run each partition{'' if retries else ' once'}: "
        f"{stage.numTasks} tasks, {stage.numCompletedTasks} completed, {stage.numFailedTasks} failed, "
        f"{len(partitions)} reported."
    )


def _looks(session: SparkSession, stage_id: int) -> Iterator[SparkStageInfo | None]:
    """Look at a stage until Spark has reported all of it, or for a minute."""
    context = session.sparkContext
    records = _records(context)
    began = time.monotonic()
    quick, slow = _PAUSES_S
    while (passed_s := time.monotonic() - began) < _LONG_S:
        yield records.getStageInfo(stage_id)
        time.sleep(quick if passed_s < _QUICK_S else slow)
    while time.monotonic() - began < _LONGEST_S and not _all_told(context):
        yield records.getStageInfo(stage_id)
    yield records.getStageInfo(stage_id)


def _records(context: SparkContext) -> Records:
    return _own.get(context) or context.statusTracker()


def _all_told(context: SparkContext) -> bool:
    """Wait until all listeners know what has happened, ten seconds at most, and tell whether they do."""
    of: Jvm = context._jsc
    try:
        of.sc().listenerBus().waitUntilEmpty()
    except Py4JJavaError:  # a TimeoutException: a listener is slow
        return False
    return True


def _ran(stage: SparkStageInfo, partitions: Sequence[int], retries: bool) -> bool:
    once = stage.numCompletedTasks == stage.numTasks and stage.numFailedTasks == 0
    return (
        stage.currentAttemptId == 0
        and (once or (retries and stage.numCompletedTasks >= stage.numTasks))
        and sorted(partitions) == list(range(stage.numTasks))
    )


def compares_shuffles(session: SparkSession) -> bool:
    """Tell whether Spark fails the session's job whose shuffle was computed again and has other rows now."""
    return has(Capability.COMPARES_SHUFFLES) and (session.conf.get(COMPARES_SHUFFLES) or "").lower() == "true"


class ShuffleWatch:
    """Watches the jobs that a thread starts from now on, where Spark does not compare shuffles.

    When files of a shuffle got lost, Spark computes them again for the tasks that are not done. The rows may lie in
    other partitions now, as by chance or by the order in which they came. Then one row is in two of the partitions that
    were read, and another one in none. Each partition has run once all the same: of what is collected, and also of the
    writing stage, where a stage before it was the one that ran again.

    The jobs are told by their group. In a query it is the run, and a job outside of one may have none.
    """

    def __init__(self, session: SparkSession) -> None:
        """Args: a session of the application; its thread is the one that starts the jobs."""
        self._context = session.sparkContext
        self._group: str | None = self._context.getLocalProperty(_GROUP)
        self._before = max(self._jobs(), default=-1)

    def refuse_another_attempt(self) -> None:
        """Return if each stage of the jobs had one attempt, once they have ended.

        Raises NotCommitted: a stage had another one, or that cannot be known.
        """
        until = time.monotonic() + _LONGEST_S
        while not _all_told(self._context):
            if time.monotonic() > until:
                raise NotCommitted("Some of Spark's listeners are slow, so it is not known whether a stage ran twice.")
        records = _records(self._context)
        for job in (records.getJobInfo(job) for job in self._jobs() if job > self._before):
            for stage in map(records.getStageInfo, () if job is None else job.stageIds):
                # None: Spark did not run it, and forgets such stages first.
                if stage is not None and stage.currentAttemptId != 0:
                    raise NotCommitted(
                        f"Stage {stage.stageId} had {stage.currentAttemptId + 1} attempts. Spark ran partitions again "
                        "after losing shuffle files, and it does not compare the new rows with the old ones. Rows "
                        "could be missing, and others be there twice."
                    )

    def _jobs(self) -> list[int]:
        return list(_records(self._context).getJobIdsForGroup(self._group))
