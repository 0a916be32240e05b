"""What proves that each task of a stage ran once, and what is asked for it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from eos.errors import NotCommitted
from eos.spark import stages
from eos.spark.capabilities import Capability, has
from eos.spark.stages import COMPARES_SHUFFLES, ShuffleWatch, compares_shuffles, keep_records, prove_run
from tests.waiting import until


class Context:
    """A SparkContext. Args: what it knows of jobs and stages; its Java twin; the group of its jobs."""

    def __init__(self, records: Any, jsc: Any, group: str | None = None) -> None:
        self._records, self._jsc, self._group = records, jsc, group

    def statusTracker(self) -> Any:  # noqa: N802
        return self._records

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802
        assert name == "spark.jobGroup.id"
        return self._group


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_LONG_S", 0.05)


def told(**stage: int) -> Any:
    """A session whose status store has one stage of two tasks."""
    info = SimpleNamespace(
        **{"currentAttemptId": 0, "numTasks": 2, "numCompletedTasks": 2, "numFailedTasks": 0} | stage
    )
    return showing(lambda: info if stage.get("numTasks") != 0 else None)


def showing(look: Callable[[], Any], wait: Callable[[], None] = lambda: None) -> Any:
    """A session that shows a stage, and whose listeners are waited for."""
    return with_records(SimpleNamespace(getStageInfo=lambda _: look()), wait)


def with_records(records: Any, wait: Callable[[], None], group: str | None = None) -> Any:
    bus = SimpleNamespace(listenerBus=lambda: SimpleNamespace(waitUntilEmpty=wait))
    return SimpleNamespace(sparkContext=Context(records, SimpleNamespace(sc=lambda: bus), group))


@pytest.mark.parametrize(
    ("stage", "partitions", "once", "at_least_once"),
    [
        ({}, [1, 0], True, True),
        ({"numFailedTasks": 1}, [0, 1], False, True),
        ({"numCompletedTasks": 3}, [0, 1], False, True),  # a copy of a slow task ended, too
        ({"numCompletedTasks": 1}, [0, 1], False, False),
        ({"currentAttemptId": 1}, [0, 1], False, False),
        ({"numTasks": 3, "numCompletedTasks": 3}, [0, 1], False, False),
        ({"numTasks": 0}, [0, 1], False, False),  # nothing is known of it
    ],
)
def test_what_proves_that_each_partition_ran(
    stage: dict[str, int], partitions: list[int], once: bool, at_least_once: bool
) -> None:
    for retries, proven in ((False, once), (True, at_least_once)):
        if proven:
            prove_run(told(**stage), [5], partitions, retries=retries)
        else:
            with pytest.raises(NotCommitted, match=r"[Ss]tage 5"):
                prove_run(told(**stage), [5], partitions, retries=retries)


class Timeout(Py4JJavaError):  # type: ignore[misc]
    """What a slow listener of somebody else's makes of waiting."""

    def __init__(self) -> None:
        Exception.__init__(self, "The event queue is not empty")


def test_a_slow_listener_of_somebody_elses_does_not_fail_a_batch() -> None:
    """Those of the UI are in another queue, and know the stage long before it has caught up."""
    waits: list[None] = []
    proven = SimpleNamespace(currentAttemptId=0, numTasks=1, numCompletedTasks=1, numFailedTasks=0)

    def wait() -> None:
        waits.append(None)
        raise Timeout

    prove_run(showing(lambda: proven if len(waits) >= 2 else None, wait), [5], [0])
    assert len(waits) == 2


def test_a_stage_that_failed_is_told_at_once() -> None:
    looks: list[None] = []

    def look() -> Any:
        looks.append(None)
        return SimpleNamespace(currentAttemptId=1, numTasks=1, numCompletedTasks=0, numFailedTasks=0)

    with pytest.raises(NotCommitted, match="2 attempts"):
        prove_run(showing(look), [5], [0])
    assert len(looks) == 1


class Jobs:
    """Records of jobs, which listeners learn of late. Each job has the group, and its stages' attempts."""

    def __init__(self) -> None:
        self.told: dict[int, tuple[str | None, list[int | None]]] = {}
        self.late: dict[int, tuple[str | None, list[int | None]]] = {}

    def catch_up(self) -> None:
        self.told.update(self.late)

    def getJobIdsForGroup(self, group: str | None) -> list[int]:  # noqa: N802
        return [job for job, (its, _) in self.told.items() if its == group]

    def getJobInfo(self, job: int) -> Any:  # noqa: N802
        return SimpleNamespace(stageIds=[10 * job + place for place in range(len(self.told[job][1]))])

    def getStageInfo(self, stage: int) -> Any:  # noqa: N802
        attempt = self.told[stage // 10][1][stage % 10]
        return None if attempt is None else SimpleNamespace(stageId=stage, currentAttemptId=attempt)


@pytest.mark.parametrize("group", ["run", None])
@pytest.mark.parametrize(
    ("jobs", "refused"),
    [
        ({}, False),  # the plan was optimised away
        ({5: [0, 0], 6: [0, None, 0]}, False),
        ({5: [0, 1]}, True),
        ({5: [1, 0], 6: [0]}, True),  # a stage before the last one, by a job of its own
    ],
)
def test_a_stage_that_ran_again_is_seen_of_any_job_since_the_watch_began(
    group: str | None, jobs: dict[int, list[int | None]], refused: bool
) -> None:
    known = Jobs()
    known.told = {3: (group, [1]), 4: ("another", [0])}
    known.late = {job: (group, attempts) for job, attempts in jobs.items()} | {7: ("another", [2])}
    watch = ShuffleWatch(with_records(known, known.catch_up, group))
    if not refused:
        return watch.refuse_another_attempt()
    with pytest.raises(NotCommitted, match=r"Stage 5[01] had 2 attempts"):
        watch.refuse_another_attempt()


def test_listeners_that_stay_behind_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_LONGEST_S", 0.0)

    def wait() -> None:
        raise Timeout

    watch = ShuffleWatch(with_records(Jobs(), wait))
    with pytest.raises(NotCommitted, match="not known whether a stage ran twice"):
        watch.refuse_another_attempt()


@pytest.mark.parametrize("told", ["true", "false", None])
def test_spark_compares_shuffles_if_it_can_and_is_told_to(told: str | None) -> None:
    session: Any = SimpleNamespace(conf=SimpleNamespace(get={COMPARES_SHUFFLES: told}.__getitem__))
    assert compares_shuffles(session) is (has(Capability.COMPARES_SHUFFLES) and told == "true")


def test_stages_that_the_ui_drops_are_known_all_the_same(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `spark.ui.retainedStages` may be set low; here it counts as low whatever it is."""
    monkeypatch.setattr(stages, "ENOUGH_STAGES", 10_000)
    monkeypatch.setattr(stages, "_own", type(stages._own)())
    keep_records(spark)
    records = stages._own[spark.sparkContext]
    keep_records(spark)
    assert stages._own[spark.sparkContext] is records, "one for each application"
    tracker, before = spark.sparkContext.statusTracker(), records.getStageInfo(1 << 30)
    assert before is None
    spark.sparkContext.setJobGroup("kept", "")
    spark.range(0, 10, numPartitions=2).rdd.count()
    # Spark's own records lag behind its jobs, each by a listener of its own.
    job, *others = until(lambda: tracker.getJobIdsForGroup("kept"))
    assert others == []
    info = until(lambda: tracker.getJobInfo(job))
    assert info is not None
    (stage,) = info.stageIds
    until(lambda: records.getStageInfo(stage) is not None)
    prove_run(spark, [stage], [0, 1])
    assert records.getJobIdsForGroup("kept") == [job]
    assert records.getJobInfo(1 << 30) is None
    found = records.getJobInfo(job)
    assert found is not None
    assert found.stageIds == [stage]
    until(
        lambda: records.getStageInfo(stage) == tracker.getStageInfo(stage),
        lambda: f"{records.getStageInfo(stage)} beside {tracker.getStageInfo(stage)}",
    )
