"""Rescaling: the state of a query in another number of partitions, in a new checkpoint.

Spark fixes the number of state partitions with the first batch. Its own offline repartitioning writes state again, as a
batch that reads nothing: after batch n comes n + 1, with the offsets of n, and the query goes on with n + 2. Here it
works on a copy, and what it has written is compared with what it has read.

1. COPY       a cut of the checkpoint, or a savepoint, at the last committed batch; its `metadata` is empty.
2. LOOK       each row of the state lies in the partition that its key says: Spark knows by what this query partitions.
3. REWRITE    Spark's own code; for its default provider, which that doesn't know, ours (`hdfs_backed`).
4. CLEAN      files that only batches before need are removed, and so are partitions that no longer exist.
5. COMPARE    the same rows as before, each in the partition that its key says now.
6. DECLARE    the sink's file in it says that no batch n + 1 may be in the output.
7. FINISH     `metadata` is written: it is a checkpoint.

A crash before the last step leaves a folder on which Spark starts nothing; an error removes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from eos.commit.registration import REGISTRATION, Registration
from eos.spark.capabilities import READ_STATE, Capability, require
from statestore.bk.address import is_bk
from statestore.checkpoint.files import Files, HadoopFiles, join
from statestore.checkpoint.logs import (
    COMMITS,
    METADATA,
    SINKS_SINCE,
    check_whole,
    read_commit,
    with_sinks_of,
    without_sinks,
)
from statestore.checkpoint.needs import committed, needs_of, plain_files, registration_of, restart_of
from statestore.checkpoint.operators import STATE
from statestore.checkpoint.place import check_free
from statestore.checkpoint.raw_state import (
    HDFS_BACKED,
    ROCKSDB,
    BatchState,
    check_address,
    key_schema,
    read_kept,
    session_for,
)
from statestore.checkpoint.transfer import Progress, copy_checkpoint
from statestore.errors import CutFailed, Damaged, InvalidInput
from statestore.hadoop.file_systems import Hadoop
from statestore.rewriting import hdfs_backed
from statestore.rewriting.fingerprints import Fingerprint, fingerprints
from statestore.savepoints import bookkeeper
from statestore.savepoints.savepoint import is_name
from statestore.savepoints.store import SavepointStore
from statestore.savepoints.topic import is_topic
from statestore.whole_numbers import check_count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The operators whose partitioning key Spark can say (StatePartitionKeyExtractorFactory).
OPERATORS: Mapping[str, str] = {
    "stateStoreSave": "aggregation",
    "sessionWindowStateStoreSaveExec": "session windows",
    "dedupe": "dropDuplicates",
    "dedupeWithinWatermark": "dropDuplicatesWithinWatermark",
    "symmetricHashJoin": "stream-stream join",
    "transformWithStateExec": "transformWithState",
    "transformWithStateInPandasExec": "transformWithState",
    "transformWithStateInPySparkExec": "transformWithState",
    "flatMapGroupsWithState": "flatMapGroupsWithState",
    "applyInPandasWithState": "applyInPandasWithState",
}


@dataclass(frozen=True, slots=True)
class Rescaled:
    """A checkpoint whose state has another number of partitions than before.

    Attributes:
        checkpoint: its address.
        query: the id of the query, as before.
        state_of: the batch whose state it is.
        batch: the new batch with the rewritten state. The query goes on with the one after it.
        partitions_before, partitions: of each operator's state.
        rows: the number of rows of all operators and stores.
        operators: Spark's names for them.
    """

    checkpoint: str
    query: str
    state_of: int
    batch_id: int
    partitions_before: int
    partitions: int
    rows: int
    operators: tuple[str, ...]


def rescale(
    source: str,
    target: str,
    partitions: int,
    *,
    spark: SparkSession,
    options: Mapping[str, object] | None = None,
    progress: Progress = lambda *_: None,
) -> Rescaled:
    """Make a new checkpoint with the state of a query in so many partitions. The original is never touched.

    Start the query with the new checkpoint as its location. It has the same id, and goes on. Run it on one of the two
    only.

    Args:
        source: the checkpoint of a query that has ended with its last batch committed, on any file system that Hadoop
            knows. Or the name of a savepoint in the target's tree.
        target: an address where nothing is.
        partitions: 1 or more, and another number than now.
        spark: the session whose executors rewrite the state.
        options: Hadoop options `fs.bk.…`.
        progress: called with the files that are copied.

    Raises:
        NotFound: there is no such checkpoint or savepoint.
        InvalidInput: it can't be rescaled, or there is something at the target. Nothing was written, except where Spark
            doesn't know a variable of transformWithState.
        SparkLacks: this Spark can't rescale it. A newer one can.
        CutFailed: the checkpoint is incomplete, or changes too fast.
        Damaged: the rewritten state is not the original one. The unfinished target is removed, as after every other
            error.
        Unavailable: Spark or the file system could not do it.
    """
    check_count("partitions", partitions, 1)
    if is_topic(source):
        raise InvalidInput(
            f"{source} is a topic. Restore the savepoint on it (statestore restore), and rescale the checkpoint that "
            "you get"
        )
    if is_name(source) and not is_bk(target):
        raise InvalidInput(
            f"{source} is the name of a savepoint, whose state is rescaled within its tree. The target must be a bk:// "
            f"address there, not {target}. If a checkpoint is meant, give its address, with a / in it"
        )
    hadoop = Hadoop.of(spark, options)
    work = _Rescaling(hadoop, hadoop.qualified(target), partitions, spark, options)
    check_address(work.target)
    check_free(hadoop, work.target, None if is_name(source) else source)
    if is_name(source):
        store = SavepointStore.of(target, options, spark)
        store.ready(source)
        bookkeeper.restore_to(store, source, lambda savepoint: work.run(savepoint.batch_id, savepoint.query))
    else:
        from eos.spark.query import is_run_on  # needs PySpark, whose absence Hadoop has explained by now

        files = HadoopFiles(hadoop, source)
        check_whole(files, source)
        if is_run_on(spark, hadoop.qualified(source)):
            raise InvalidInput(
                f"A query of this application runs on {source}. End it first, by statestore.stop_with_savepoint, and "
                "rescale then"
            )
        refuse_in_doubt(files, source)
        check(read_kept(files, max(committed(files))), partitions, source)

        def prepare(batch: int, query: str) -> None:
            refuse_in_doubt(files, source)  # a query that runs has begun another batch while this one was copied
            work.run(batch, query)
            refuse_gone_on(files, source, batch)

        copy_checkpoint(hadoop, source, work.target, progress, lambda cut: prepare(cut.batch_id, cut.query))
    assert work.done is not None
    return work.done


def refuse_in_doubt(files: Files, source: str) -> None:
    """Refuse a checkpoint whose last batch is planned and not committed.

    Its rows may be in the output already. Going on without it would read its input again, in another batch.

    Raises:
        InvalidInput: it is so, or no batch is committed.
    """
    done, planned = restart_of(files)
    if done < 0:
        raise InvalidInput(f"{source} has no committed batch yet. There is no state to rescale")
    if planned:
        raise InvalidInput(
            f"Batch {done + 1} of {source} was begun and is not committed. Its rows may be in the output. Either the "
            "query runs, or it was stopped or killed in that batch. Let it end with a whole batch, by "
            "statestore.stop_with_savepoint or .trigger(availableNow=True), and rescale then"
        )


def refuse_gone_on(files: Files, source: str, batch: int) -> None:
    """Refuse what was made of a checkpoint whose query has run another batch meanwhile.

    Raises:
        InvalidInput: it has, or is about to.
    """
    refuse_in_doubt(files, source)
    if (newest := max(committed(files))) != batch:
        raise InvalidInput(
            f"The query of {source} runs. It was at batch {batch}, and is at batch {newest} by now. Stop it, by "
            "statestore.stop_with_savepoint, and rescale then"
        )


def check(kept: BatchState, partitions: int, source: str) -> None:
    """Refuse state that can't be rescaled.

    Raises:
        InvalidInput: it names what is in the way.
        SparkLacks: this Spark can't rescale it. A newer one can.
    """
    if not kept.operators:
        raise InvalidInput(
            f"The query of {source} keeps no state. Set spark.sql.shuffle.partitions, and start it again"
        )
    if kept.provider not in (ROCKSDB, HDFS_BACKED):
        raise InvalidInput(
            f"The state of {source} is kept by {kept.provider or 'an unknown provider'}. It can be rewritten where it "
            f"is kept by {ROCKSDB} or {HDFS_BACKED}"
        )
    if kept.provider == HDFS_BACKED:
        require(Capability.READS_STATE, *READ_STATE)
    else:
        require(Capability.REWRITES_STATE, f"Rescaling state that {ROCKSDB} keeps", READ_STATE[1])
    known = OPERATORS if kept.provider == ROCKSDB else {name: OPERATORS[name] for name in hdfs_backed.OPERATORS}
    for operator in kept.operators:
        if operator.name not in known:
            raise InvalidInput(
                f"Operator {operator.id} of {source} is {operator.name or 'unknown'}, and by what its state is "
                f"partitioned is not known. With {kept.provider} it is for {', '.join(dict.fromkeys(known.values()))}"
            )
    if kept.provider == HDFS_BACKED:
        hdfs_backed.check_format(kept)
    if kept.partitions is None:
        raise InvalidInput(
            f"The offsets of batch {kept.batch} of {source} don't say how many partitions the state has. Let the query "
            "run a batch with this version of Spark first"
        )
    if kept.partitions == partitions:
        raise InvalidInput(f"The state of {source} has {partitions} partitions already. There is nothing to do")


class _Rescaling:
    """One rescaling: `run` is called when the copy is there, but for `metadata`."""

    def __init__(
        self,
        hadoop: Hadoop,
        target: str,
        partitions: int,
        spark: SparkSession,
        options: Mapping[str, object] | None,
    ) -> None:
        self.hadoop, self.target, self.partitions = hadoop, target, partitions
        self.spark, self.options = spark, options
        self.done: Rescaled | None = None

    def run(self, batch: int, query: str) -> None:
        """Rewrite the state after a batch."""
        files = HadoopFiles(self.hadoop, self.target)
        kept = read_kept(files, batch)
        check(kept, self.partitions, self.target)
        assert kept.partitions is not None
        registered = _registration(files)
        session = session_for(self.spark, kept, self.options)
        before = fingerprints(session, self.target, kept, batch, kept.partitions)
        _check_places(before, kept.partitions)
        if kept.provider == HDFS_BACKED:
            keys = {one.id: key_schema(session, self.target, batch, one.id) for one in kept.operators}
            hdfs_backed.rewrite(self.hadoop, files, kept, self.partitions, keys)
        else:
            with _without_sinks(self.hadoop, files, kept):
                _repartition(session, self.hadoop, self.target, self.partitions)
        new = max(committed(files))
        _clean(self.hadoop, files, new, self.partitions)
        after = fingerprints(session, self.target, kept, new, self.partitions)
        _compare(before, after, self.partitions)
        if registered is not None:
            self.hadoop.replace(files.uri(REGISTRATION), _jumping(registered, batch, new).text.encode())
        rows = sum(one.rows for one in after.values())
        names = tuple(operator.name for operator in kept.operators)
        self.done = Rescaled(
            checkpoint=self.target,
            query=query,
            state_of=batch,
            batch_id=new,
            partitions_before=kept.partitions,
            partitions=self.partitions,
            rows=rows,
            operators=names,
        )


def _registration(files: HadoopFiles) -> Registration | None:
    registered = registration_of(files)
    if registered is not None and registered.rolls_forward_from is not None:
        raise InvalidInput(
            "The checkpoint is being rolled forward to its sink's output. Finish that (statestore restore --in-step), "
            "and rescale then"
        )
    return registered


def _jumping(registered: Registration, batch: int, new: int) -> Registration:
    """The note for the sink: batches after `batch` up to `new` are not the query's."""
    before = registered.jumped
    first = before[0] if before is not None and before[1] == batch else batch + 1
    return replace(registered, jumped=(first, new))


@contextmanager
def _without_sinks(hadoop: Hadoop, files: HadoopFiles, kept: BatchState) -> Iterator[None]:
    """Within the block a commit of v3 has the version that tells the checkpoint's format; the new commit is of v3 too.

    Spark 4.3 takes the version of the commit for the format, which is 1 or 2 (StateRewriter
    .verifyCheckpointFormatVersion), and so refuses each query that was run with enableSinkEvolution.
    """
    path = join(COMMITS, str(kept.batch))
    before = files.read(path)
    if read_commit(files, kept.batch).version < SINKS_SINCE:
        yield
        return
    hadoop.replace(files.uri(path), without_sinks(before, kept.format))
    yield
    new = join(COMMITS, str(max(committed(files))))
    hadoop.replace(files.uri(new), with_sinks_of(before, files.read(new)))
    hadoop.replace(files.uri(path), before)


def _repartition(session: SparkSession, hadoop: Hadoop, target: str, partitions: int) -> None:
    from py4j.protocol import Py4JJavaError

    own: Any = session
    try:
        own._streamingCheckpointManager.repartition(target, partitions)
    except Py4JJavaError as error:
        kind = str(error.java_exception.getClass().getSimpleName())
        if kind.startswith(("StateRepartition", "StateRewriter")):
            raise InvalidInput(f"Spark can't rescale this state: {error.java_exception.getMessage()}") from error
        with hadoop.explained(target):
            raise


def _clean(hadoop: Hadoop, files: HadoopFiles, batch: int, partitions: int) -> None:
    """Remove files that only batches before this one need: above all, partitions that no longer exist."""
    needs = needs_of(files, batch)
    for gap in needs.gaps[:1]:
        raise CutFailed(f"The state that Spark has rewritten is not whole: {gap.path}: {gap.reason}")
    for operator in files.list(STATE):
        for name in files.list(f"{STATE}/{operator}"):
            if name.isdecimal() and int(name) >= partitions:
                hadoop.delete(files.uri(f"{STATE}/{operator}/{name}"), recursive=True)
    kept = {*needs.files, *plain_files(files), METADATA}
    root = files.uri("")
    for status in list(hadoop.walk(root)):
        path = status.uri.removeprefix(root).lstrip("/")
        if path.startswith((f"{STATE}/", "commits/", "offsets/")) and path not in kept:
            hadoop.delete(status.uri)


def _check_places(found: Mapping[tuple[int, str], Fingerprint], partitions: int) -> None:
    for (operator, store), one in found.items():
        if one.misplaced:
            raise InvalidInput(
                f"{one.misplaced} of {one.rows} rows of operator {operator}, store {store}, lie in another of "
                f"{partitions} partitions than Spark's key for them says. This query partitions its state by something "
                "else, and Spark can't rescale it"
            )


def _compare(
    before: Mapping[tuple[int, str], Fingerprint], after: Mapping[tuple[int, str], Fingerprint], partitions: int
) -> None:
    for (operator, store), old in before.items():
        new = after[operator, store]
        if (old.rows, old.sum) != (new.rows, new.sum) or new.misplaced:
            raise Damaged(
                f"The rewritten state of operator {operator}, store {store}, is not what was there: {new.rows} rows in "
                f"place of {old.rows}, {new.misplaced} of them in another of {partitions} partitions than their key "
                "says. Nothing was kept of it. The original is as it was"
            )
