"""Total loss: checkpoint, driver and disk, and all bookies are gone; a savepoint on a topic brings the job back.

Two clusters run on this machine. The job's checkpoint is on the bookies of the first; its output, and a savepoint, are
on topics of the second. The driver is killed, the first cluster with all its data removed. The savepoint is restored to
the second cluster's own bookies, rolled forward to the sink's output, and the job goes on. The oracle accounts for the
output, and the state is compared with a recomputation.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from eos.config import Cluster
from eos.errors import TopicMissing
from eos.local import LocalPulsar
from eos.local import process as processes
from eos.pulsar.net.client import Client
from statestore import roll_forward
from statestore.checkpoint.listing import read_state, snapshots
from statestore.drills.acts import total_loss_job
from statestore.drills.acts.acts import Acts
from statestore.drills.acts.total_loss_job import CONF, EVERY, TotalLossSettings
from statestore.drills.admin import DrillAdmin
from statestore.drills.journal import AccountEvent, Fault, JobEvent, NotTested, PlannedFault, Recovered, StateEvent
from statestore.drills.judge import oracle, rows
from statestore.drills.later_transactions import end_later_transactions
from statestore.drills.processes import undisturbed
from statestore.errors import Unavailable
from statestore.hadoop.session import session
from statestore.roll_forward import Output, RollForwardStep
from statestore.savepoints import pulsar_topic

PLAN = (PlannedFault(1, "total loss", "state"),)
_JOB = "sums"
_PARTITIONS = 3
_SAVED_AT = 2
_FURTHER = 3
_PATIENCE_S = 240.0
_LOOK_S = 0.5
_NOT_TESTED = (
    NotTested("input that is lost too", "the job's input can be read again, as a topic's with a long enough retention"),
    NotTested(
        "file sources",
        "their logs are in the checkpoint: without it a roll forward is refused, see docs/how-to/savepoints.md",
    ),
    NotTested("the loss of the second cluster", "then the output is lost with it"),
)


@dataclass
class _Scene:
    """The running parts of the drill. `first` is lost, `second` stays."""

    first: LocalPulsar
    second: LocalPulsar
    job: TotalLossSettings
    log: Path

    @property
    def output(self) -> Output:
        return Output(Cluster(self.second.service_url), self.job.sink)

    def newest(self) -> int:
        """The newest batch that the sink has committed; -1 before the first."""
        with Client(Cluster(self.second.service_url)) as client:
            try:
                newest = self.output.log(client).newest
            except TopicMissing:
                return -1
        return -1 if newest is None else newest.batch_id


def lose_everything(folder: Path, acts: Acts) -> None:
    """Do it; the driver's log goes into `folder`.

    Raises:
        EosError: something could not be started, or did not answer in time.
    """
    stack = ExitStack()
    try:
        with acts.step("start two clusters"):
            first, second = LocalPulsar(), LocalPulsar()
            for cluster in (first, second):
                stack.callback(cluster.stop)
                cluster.launch()
            for cluster in (first, second):
                cluster.wait_until_ready()
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="statestore-drill-"))
        topic = "persistent://public/default/drill-sums"
        with DrillAdmin(second.admin_url) as admin:
            admin.create(topic, _PARTITIONS)
        job = TotalLossSettings(f"bk://{first.zookeeper}/drill/{_JOB}", second.service_url, topic, "drill-sums")
        acts.write(JobEvent(_JOB, stateful=True, topic=topic, checkpoint=job.checkpoint))
        scene = _Scene(first, second, job, folder / "driver.log")
        saved = _run_and_lose(scene, acts, Path(scratch))
        _bring_back(scene, acts, saved)
        for missing in _NOT_TESTED:
            acts.write(missing)
    finally:
        with undisturbed():
            stack.close()


def _run_and_lose(scene: _Scene, acts: Acts, scratch: Path) -> str:
    """Run the job, take a savepoint in between, and lose all but the second cluster; return the savepoint's topic."""
    topic = f"{scene.second.service_url}/public/default/drill-savepoints"
    command = [sys.executable, "-m", "statestore.drills.acts.total_loss_job", scene.job.to_json()]
    driver = processes.start(command, {"PYSPARK_PYTHON": sys.executable}, scene.log, scratch)
    try:

        def ended() -> bool:
            return driver.exit_code() is not None

        with acts.step("run the job"):
            _wait(scene, _SAVED_AT, ended)
        with acts.step("write a savepoint to a topic of the second cluster") as note:
            made = pulsar_topic.create("drill", scene.job.checkpoint, topic)
            note.detail = f"batch {made.batch_id}, {made.files} files, {made.size} bytes"
        with acts.step("let the job run on") as note:
            note.detail = f"the output is at batch {_wait(scene, made.batch_id + _FURTHER, ended)}"
    finally:
        driver.end()
    acts.tell("lose the driver, its disk, and the cluster with the checkpoint")
    scene.first.stop()
    acts.write(Fault(1, "total loss", "state", "driver killed; ZooKeeper and bookies killed, and their data removed"))
    return topic


def _bring_back(scene: _Scene, acts: Acts, saved: str) -> None:
    """Restore, roll forward, go on, and account for the output."""
    target = f"bk://{scene.second.zookeeper}/drill/{_JOB}"
    job = replace(scene.job, checkpoint=target)
    with session({}, CONF) as spark:
        began = time.monotonic()
        restored_s = 0.0

        def observe(step: RollForwardStep, batch: int) -> None:
            nonlocal restored_s
            if step is RollForwardStep.RESTORE:
                restored_s = time.monotonic() - began
            acts.tell(f"{step}: batch {batch}")

        with acts.step("restore the savepoint and roll it forward") as note:
            done = roll_forward.restore_in_step(saved, target, job.start, scene.output, spark=spark, observer=observe)
            note.detail = f"from batch {done.began_at} to {done.batch_id}. The restore took {restored_s:.1f} s"
        acts.check("the state is as far as the output", scene.newest() == done.batch_id, note.detail)
        found = snapshots(target, spark=spark)
        versions = min(len(store.versions) for store in found.stores)
        acts.write(StateEvent(_JOB, done.batch_id, versions, pulsar_topic.find(saved).size / 1e6 / restored_s))
        with acts.step("go on") as note:
            query = job.start(spark, target, EVERY)
            try:
                _wait(scene, done.batch_id + 1, lambda: not query.isActive)
                acts.write(Recovered(1, f"batch {done.batch_id + 1}"))
                _wait(scene, done.batch_id + _FURTHER, lambda: not query.isActive)
            finally:
                query.stop()
            # Stopped in the middle, perhaps: one more batch is run to its end, so that state and output are the same.
            job.start(spark, target, {"once": True}).awaitTermination()
            last = scene.newest()
            note.detail = f"the output is at batch {last}"
        with acts.step("account for the output"):
            committed = range(last + 1)
            state = {row.key[0]: (row.value[0], row.value[1]) for row in read_state(target, spark=spark).collect()}
            equal = state == rows.state(total_loss_job.inputs(committed), committed)
            end_later_transactions(job.service_url, job.topic)
            account, _ = oracle.judge(
                _JOB, job.service_url, job.topic, total_loss_job.expected(committed), state_equal=equal
            )
    acts.write(AccountEvent(**vars(account)))


def _wait(scene: _Scene, batch: int, ended: Callable[[], bool]) -> int:
    """Wait until the output is at this batch or beyond, and return where it is."""
    deadline = time.monotonic() + _PATIENCE_S
    while (newest := scene.newest()) < batch:
        if ended():
            raise Unavailable(f"The job ended at batch {newest}, before batch {batch}. See {scene.log}")
        if time.monotonic() > deadline:
            raise Unavailable(f"The job has not come to batch {batch} within {_PATIENCE_S:g} s, but to {newest}")
        time.sleep(_LOOK_S)
    return newest
