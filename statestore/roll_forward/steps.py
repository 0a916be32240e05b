"""Rolling forward, step by step. `statestore.roll_forward` says what each step leaves in a crash."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from eos.commit.registration import REGISTRATION, fits
from eos.config import Cluster
from eos.doctor.abort import OwnerAlive, refuse_if_owned
from eos.pulsar.net.client import Client
from statestore.checkpoint import Files, batch_ids, committed, read_query_id
from statestore.checkpoint.files import HadoopFiles, join
from statestore.checkpoint.logs import COMMITS, OFFSETS
from statestore.checkpoint.needs import registration_of
from statestore.checkpoint.place import remove
from statestore.checkpoint.sources import source_logs
from statestore.errors import InvalidInput, NotFound, Unavailable, Unreadable
from statestore.hadoop.file_systems import Hadoop
from statestore.roll_forward.jobs import Job
from statestore.roll_forward.plan import BatchInput, InputLog, Output, behind, check_sources, numbered
from statestore.savepoints import bookkeeper, pulsar_topic
from statestore.savepoints.restoration import restore
from statestore.savepoints.topic import is_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_ENDS_S = 60.0
_LEAVES_S = 10.0
_LOOK_S = 0.5


class RollForwardStep(StrEnum):
    """A step of a roll forward."""

    RESTORE = "restore"
    DECLARE = "declare"
    SOURCES = "sources"
    OFFSETS = "offsets"
    REPLAY = "replay"
    FINISH = "finish"


Observer = Callable[[RollForwardStep, int], None]
"""Called after each step, with the batch that the state is at, or that is being replayed."""


@dataclass(frozen=True, slots=True)
class RollForward:
    """A checkpoint that is in step with its output.

    Attributes:
        checkpoint: its address.
        began_at: the batch that its state was at.
        batch_id: the batch that its state and the output are at.
    """

    checkpoint: str
    began_at: int
    batch_id: int

    @property
    def replayed(self) -> int:
        """How many batches were run again."""
        return self.batch_id - self.began_at


def restore_in_step(
    savepoint: str,
    target: str,
    job: Job,
    output: Output,
    *,
    spark: SparkSession,
    name: str | None = None,
    source_logs_of: str | None = None,
    options: Mapping[str, object] | None = None,
    cluster: Cluster | None = None,
    observer: Observer = lambda step, batch: None,
) -> RollForward:
    """Restore a savepoint, and roll it forward to the sink's output. Run again, it goes on from where it stopped.

    Args:
        savepoint: its name in the target's tree, or the topic that it is on.
        target: the new checkpoint. The call goes on where an interrupted call has stopped.
        job: the user's query. Its sink must be the one of `output`.
        output: the sink's output, with which the state will be in step.
        spark: the session that the job runs in.
        name: the savepoint on the topic. None: the only one.
        source_logs_of: the checkpoint with the logs of file sources. None: the savepoint's own.
        options: Hadoop options `fs.bk.…`.
        cluster: credentials and TLS for the savepoint's topic.
        observer: called after each step.

    Raises:
        InvalidInput: it can't be brought in step, or a driver is at work on the sink (`OwnerAlive`). Nothing was
            changed, except where offsets differ or the state is ahead. Then the restored checkpoint is removed.
        NotFound, Damaged: there is no such savepoint, or the stored one is not what was written.
        Unavailable: a batch could not be replayed, or the server of the savepoint does not answer. Call again.
        NetworkError: the sink's cluster does not answer (`eos.errors`). Call again.
    """
    hadoop = Hadoop.of(spark, options)
    if is_topic(savepoint):
        found = pulsar_topic.find(savepoint, name, cluster)
        batch, query, source = found.batch_id, found.query, found.source
    else:
        held = bookkeeper.find(savepoint, target, options=options)
        batch, query, source = held.batch_id, held.query, held.source
    logs_of = source_logs_of or source
    if hadoop.status(target) is None:
        with Client(output.cluster) as client:
            log = output.log(client)
            lacked = behind(log, query, batch, known=False)
            refuse_if_owned(client, output.name, output.topic)
        if lacked:
            kept = log.inputs.get(batch)
            needed = numbered(None if kept is None else kept.offsets, lacked[-1].offsets)
            check_sources(HadoopFiles(hadoop, logs_of), logs_of, needed)
        restore(savepoint, target, name=name, options=options, spark=spark, cluster=cluster)
        try:
            lacked_by(HadoopFiles(hadoop, target), log, query, batch)
        except InvalidInput:
            remove(hadoop, target)
            raise
        observer(RollForwardStep.RESTORE, batch)
    elif _query_of(hadoop, target) != query:
        raise InvalidInput(f"{target} is the checkpoint of another query than savepoint {savepoint}. Name a new place")
    return roll_forward(target, job, output, spark=spark, source_logs_of=logs_of, options=options, observer=observer)


def roll_forward(
    checkpoint: str,
    job: Job,
    output: Output,
    *,
    spark: SparkSession,
    source_logs_of: str,
    options: Mapping[str, object] | None = None,
    observer: Observer = lambda step, batch: None,
) -> RollForward:
    """Roll a checkpoint forward to the sink's output, which its query has been ahead of it.

    No query may run on it, and no driver be at work on the sink: `OwnerAlive`. For the arguments and errors see
    `restore_in_step`.
    """
    hadoop = Hadoop.of(spark, options)
    files = HadoopFiles(hadoop, checkpoint)
    query = _query_of(hadoop, checkpoint)
    with Client(output.cluster) as client:
        began_at = newest_batch(files)
        log = output.log(client)
        lacked = lacked_by(files, log, query, began_at)
        if lacked:
            _refuse_while_owned(client, output)
            declare(hadoop, files, output, began_at + 1)
            observer(RollForwardStep.DECLARE, began_at)
            own = files.read(join(OFFSETS, str(began_at))).decode()
            take_logs(hadoop, files, source_logs_of, numbered(own, lacked[-1].offsets))
            observer(RollForwardStep.SOURCES, began_at)
        while lacked:
            planned = lacked[0]
            plan_next(hadoop, files, planned)
            observer(RollForwardStep.OFFSETS, planned.batch_id)
            run_once(job, spark, checkpoint, files, planned.batch_id)
            observer(RollForwardStep.REPLAY, planned.batch_id)
            # Read again: the sink may have found more in the log than could be read before it took over.
            lacked = behind(output.log(client), query, planned.batch_id)
    declare(hadoop, files, output, None)
    batch = newest_batch(files)
    observer(RollForwardStep.FINISH, batch)
    return RollForward(checkpoint, began_at, batch)


def _refuse_while_owned(client: Client, output: Output) -> None:
    """Refuse while a driver owns the sink: a target that is there may be the checkpoint of the live query.

    The sink of a replay that this process has begun before leaves within moments of its query's end.

    Raises:
        OwnerAlive: a driver stays.
    """
    deadline = time.monotonic() + _LEAVES_S
    while True:
        try:
            refuse_if_owned(client, output.name, output.topic)
            return
        except OwnerAlive:
            if time.monotonic() > deadline:
                raise
        time.sleep(_LOOK_S)


def _query_of(hadoop: Hadoop, checkpoint: str) -> str:
    try:
        return read_query_id(HadoopFiles(hadoop, checkpoint))
    except (NotFound, Unreadable) as error:
        raise InvalidInput(
            f"There is something at {checkpoint} that is not a whole checkpoint, perhaps what an interrupted restore "
            f"has left. Delete it, and restore again ({error})"
        ) from error


def newest_batch(files: HadoopFiles) -> int:
    """Return the newest committed batch. Raises InvalidInput where there is none."""
    batches = committed(files)
    if not batches:
        raise InvalidInput(f"{files.uri('')} has no committed batch to roll forward from")
    return batches[-1]


def lacked_by(files: HadoopFiles, log: InputLog, query: str, batch: int) -> tuple[BatchInput, ...]:
    """Return the MARKERs of the batches that a checkpoint at `batch` lacks, lowest first. Raises as `behind`."""
    registered = registration_of(files)
    offsets = files.read(join(OFFSETS, str(batch))).decode()
    return behind(log, query, batch, offsets, None if registered is None else registered.jumped)


def declare(
    hadoop: Hadoop, files: HadoopFiles, output: Output, since: int | None, *, shadow: bool | None = None
) -> None:
    """Write into the sink's file what the checkpoint is.

    Args:
        since: it is rolled forward from this batch on; None: it no longer is.
        shadow: whether it is a copy beside a live query, whose runs write nothing; None: as it was.

    Raises:
        InvalidInput: it was not used with this sink.
    """
    registered = registration_of(files)
    if registered is None:
        raise InvalidInput(
            f"{files.uri(REGISTRATION)} is missing. This checkpoint was not used with an exactly-once sink of "
            "this project"
        )
    fits(registered, output.name, output.topic)
    already = registered.rolls_forward_from
    if since is not None and already is not None:
        since = min(since, already)
    shadow = registered.shadow if shadow is None else shadow
    changed = replace(registered, rolls_forward_from=since, shadow=shadow)
    if changed != registered:
        hadoop.replace(files.uri(REGISTRATION), changed.text.encode())


def take_logs(hadoop: Hadoop, files: HadoopFiles, source: str, needed: Mapping[str, int]) -> None:
    """Replace the logs of sources by those of the original, which have the file of each number."""
    original = HadoopFiles(hadoop, source)
    check_sources(original, source, needed)
    if hadoop.qualified(source) == hadoop.qualified(files.uri("")):
        return  # restored to the original's address, and taken by an earlier call
    for folder in needed:
        hadoop.delete(files.uri(folder), recursive=True)
        for path in source_logs(original)[folder].files:
            hadoop.copy(original.uri(path), files.uri(path))


def plan_next(hadoop: Hadoop, files: HadoopFiles, planned: BatchInput) -> None:
    """Write the offsets of the next batch; what a query that was refused has planned instead is removed."""
    batch, text = planned.batch_id, planned.offsets.encode()
    plans = batch_ids(files, OFFSETS)
    for later in (number for number in plans if number > batch):
        hadoop.delete(files.uri(join(OFFSETS, str(later))))
    path = join(OFFSETS, str(batch))
    if batch not in plans or files.read(path) != text:
        hadoop.replace(files.uri(path), text)


def run_once(job: Job, spark: SparkSession, checkpoint: str, files: Files, batch: int) -> None:
    """Start the user's query for the one batch that is planned, and wait for its end.

    Raises:
        InvalidInput: the job goes on after it.
        Unavailable: the query failed, or ended without it.
    """
    from eos.spark.query import reason

    try:
        query = job(spark, checkpoint, {"once": True})
        try:
            _await_end(query, files, batch)
        finally:
            query.stop()
    except InvalidInput:
        raise
    except Exception as error:
        raise Unavailable(
            f"Batch {batch} could not be replayed: {reason(error)}. When its cause is gone, run the same command "
            "again. It goes on with this batch"
        ) from error
    plans, done = batch_ids(files, OFFSETS), batch_ids(files, COMMITS)
    if max(plans) != batch or batch not in done:
        raise Unavailable(
            f"The job's query ended without having run exactly batch {batch}. Its newest offsets are {max(plans)}, its "
            f"newest commit {max(done)}. Does it use the checkpoint and the trigger that it is given?"
        )


def _await_end(query: StreamingQuery, files: Files, batch: int) -> None:
    waited = 0.0
    while not query.awaitTermination(_LOOK_S):  # type: ignore[arg-type]  # seconds may have a fraction
        if batch in batch_ids(files, COMMITS):
            waited += _LOOK_S
        if waited > _ENDS_S:
            raise InvalidInput(
                "The job goes on after its batch. It must give the trigger that it gets to its query, "
                ".trigger(**trigger)"
            )
