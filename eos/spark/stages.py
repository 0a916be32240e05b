"""How often the tasks of a writing job ran, by Spark's own record of its stages (AppStatusStore, Spark 4.3)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext, SparkStageInfo
from pyspark.sql import SparkSession

from eos.errors import NotCommitted

Jvm = Any  # py4j objects have no types

ENOUGH_STAGES: Final = 200
"""Where Spark retains fewer ended stages than this for its UI, other jobs could push the sink's out before it looks."""

_QUICK_S = 0.02
_LONG_S = 1.0
_LONGEST_S = 60.0
_PAUSES_S = (0.002, 0.05)
"""Seconds: of quick looks, of slower ones, and in all; the pauses between looks, quick and slow."""

_own: WeakKeyDictionary[SparkContext, Records] = WeakKeyDictionary()


class Records(Protocol):
    """The facts about stages that are known: `pyspark.StatusTracker` fits it."""

    def getStageInfo(self, stageId: int) -> SparkStageInfo | None:  # noqa: N802, N803
        """Return what is known of a stage."""
        ...


def keep_records(session: SparkSession) -> None:
    """Have stages remembered long enough, also where `spark.ui.retainedStages` is low. Call it before the first job."""
    context = session.sparkContext
    conf: Jvm = context._jsc.getConf()
    if conf.getInt("spark.ui.retainedStages", 1000) < ENOUGH_STAGES and context not in _own:
        _own[context] = _OwnRecords(context, conf.clone())


class _OwnRecords:
    """A second listener of Spark's own kind beside that of the UI, with a store of its own: see `Records`."""

    def __init__(self, context: SparkContext, conf: Jvm) -> None:
        jvm: Jvm = context._jvm
        of: Jvm = context._jsc
        none = jvm.scala.Option.empty()
        settings = {"retainedStages": ENOUGH_STAGES, "retainedTasks": 1, "retainedJobs": 1, "liveUpdate.period": -1}
        for name, value in settings.items():
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
    records: Records = _own.get(context) or context.statusTracker()
    began = time.monotonic()
    quick, slow = _PAUSES_S
    while (passed_s := time.monotonic() - began) < _LONG_S:
        yield records.getStageInfo(stage_id)
        time.sleep(quick if passed_s < _QUICK_S else slow)
    of: Jvm = context._jsc
    while time.monotonic() - began < _LONGEST_S:
        try:
            of.sc().listenerBus().waitUntilEmpty()
        except Py4JJavaError:  # a TimeoutException: a listener is slow
            yield records.getStageInfo(stage_id)
        else:
            break
    yield records.getStageInfo(stage_id)


def _ran(stage: SparkStageInfo, partitions: Sequence[int], retries: bool) -> bool:
    once = stage.numCompletedTasks == stage.numTasks and stage.numFailedTasks == 0
    return (
        stage.currentAttemptId == 0
        and (once or (retries and stage.numCompletedTasks >= stage.numTasks))
        and sorted(partitions) == list(range(stage.numTasks))
    )
