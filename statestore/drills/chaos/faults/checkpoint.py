"""Faults to what a job remembers, done while it is down: its checkpoint, and its sink's control topic."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import statestore
from eos.commit.control_topic import control_topic
from eos.commit.registration import REGISTRATION
from statestore import savepoints
from statestore.checkpoint import logs
from statestore.checkpoint.files import HadoopFiles
from statestore.checkpoint.needs import needs_of
from statestore.drills.admin import DrillAdmin
from statestore.drills.chaos.fault_targets import FaultTargets
from statestore.drills.chaos.supervisor import Running
from statestore.hadoop.file_systems import Hadoop

_TRIES = 5
_STATE = re.compile(r"state/0/\d+/(\d+)(?:_[^.]*)?\.(?:changelog|zip)")


def corrupt_file(stage: FaultTargets, chance: random.Random) -> None:
    """Put other bytes in the place of a file's second half."""

    def damage(hadoop: Hadoop, uri: str) -> None:
        whole = hadoop.read(uri)
        hadoop.write(uri, whole[: len(whole) // 2] + bytes(byte ^ 0x5A for byte in whole[len(whole) // 2 :]), True)

    _damage_file(stage, chance, "corrupted", damage)


def delete_file(stage: FaultTargets, chance: random.Random) -> None:
    """Delete a file."""
    _damage_file(stage, chance, "deleted", lambda hadoop, uri: hadoop.delete(uri))


def delete_folder(stage: FaultTargets, chance: random.Random) -> None:
    """Delete the checkpoint as a whole."""
    running, name = _down_with_savepoint(stage, chance)
    Hadoop.of(options=stage.options).delete(running.spec.checkpoint, recursive=True)
    stage.done(f"the checkpoint of {running.spec.job} deleted while the job was down")
    # Of a job that reads topics the source refuses first: its subscription stands elsewhere than a new query begins.
    refusals = ("IdentityMismatch", "InvalidInput: startingOffsets")
    _expect(stage, running.spec.job, refusals, "a job without its checkpoint is refused")
    _restore(stage, running, name)


def delete_control_topic(stage: FaultTargets, chance: random.Random) -> None:
    """Delete a sink's control topic; the way out is a new name for the sink, as the error says."""
    running = _choose(stage, chance)
    spec = running.spec
    stage.stop(spec.job)
    topic = control_topic(spec.sink, spec.topic)
    with DrillAdmin(stage.cluster.admin_url) as admin:
        admin.force_delete(topic)
    stage.done(f"{topic} deleted while {spec.job} was down")
    _expect(stage, spec.job, "DamagedLog", "a sink without its control log is refused")
    Hadoop.of(options=stage.options).delete(f"{spec.checkpoint}/{REGISTRATION}")
    stage.supervisor.move(spec.job, sink=f"drill-{spec.job}-{stage.fault.n}")


def _expect(stage: FaultTargets, job: str, error: str | tuple[str, ...], what: str) -> None:
    """Start a job that must be refused with this error, or one of them.

    A broker that is not ready yet makes it fail otherwise.
    """
    for _ in range(_TRIES):
        refusal = stage.supervisor.try_to_start(job)
        if refusal is None or refusal.startswith(error):
            break
    stage.check(what, refusal is not None and refusal.startswith(error), refusal or "it ran")


def _damage_file(
    stage: FaultTargets, chance: random.Random, word: str, damage: Callable[[Hadoop, str], object]
) -> None:
    running, name = _down_with_savepoint(stage, chance)
    spec = running.spec
    hadoop = Hadoop.of(options=stage.options)
    path = chance.choice(_needed(hadoop, spec.checkpoint, spec.stateful))
    damage(hadoop, f"{spec.checkpoint}/{path}")
    stage.done(f"{path} of {spec.job} {word} while the job was down")
    report = statestore.verify(spec.checkpoint, options=stage.options, replicas=False)
    found = [finding for finding in report.findings if finding.severity == "error"]
    said = "; ".join(finding.message for finding in found)
    stage.check("verify names the file", any(finding.file == path for finding in found), said or "it found nothing")
    refusal = stage.supervisor.try_to_start(spec.job)
    if refusal is None:  # whether it went on rightly is told by the account
        savepoints.delete(name, stage.tree, options=stage.options)
        return
    _restore(stage, running, name)


def _needed(hadoop: Hadoop, checkpoint: str, stateful: bool) -> list[str]:
    """Files that the job needs: the query's id, the newest plan, the newest state."""
    files = HadoopFiles(hadoop, checkpoint)
    newest = max(logs.batch_ids(files, logs.COMMITS))
    needed = ["metadata", f"offsets/{newest}"]
    if stateful:
        needed.append(max(needs_of(files, newest).files, key=_version))
    return needed


def _version(path: str) -> int:
    match = _STATE.fullmatch(path)
    return int(match[1]) if match else -1


def _choose(stage: FaultTargets, chance: random.Random) -> Running:
    return stage.supervisor.jobs[chance.choice(sorted(stage.supervisor.jobs))]


def _down_with_savepoint(stage: FaultTargets, chance: random.Random) -> tuple[Running, str]:
    """Stop one of the jobs in good order and make a savepoint of it: its output is not ahead of that."""
    running = _choose(stage, chance)
    stage.stop(running.spec.job)
    name = f"drill-{stage.fault.n}"
    savepoints.create(name, running.spec.checkpoint, options=stage.options)
    return running, name


def _restore(stage: FaultTargets, running: Running, name: str) -> None:
    checkpoint = f"{stage.tree}/{running.spec.job}-{stage.fault.n}"
    savepoints.restore(name, checkpoint, options=stage.options)
    savepoints.delete(name, stage.tree, options=stage.options)
    stage.supervisor.move(running.spec.job, checkpoint=checkpoint)
