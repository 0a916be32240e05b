"""Copy a query's checkpoint, also while the query runs, to any file system that Hadoop knows.

The copy is a consistent cut: all that the newest committed batch needs, and the logs up to it. Every file of it is
immutable once its batch is committed, so it doesn't matter when it is copied; what Spark cleans away meanwhile makes
us take a newer batch. Until the copy is whole its `metadata` is empty, so that Spark starts no query on it; last come
the commits, and `metadata`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from statestore.checkpoint import batch_ids, committed, moved_metadata, needs_of, plain_files
from statestore.checkpoint.files import Files, join
from statestore.checkpoint.hadoop_files import HadoopFiles
from statestore.checkpoint.logs import COMMITS, METADATA, OFFSETS
from statestore.errors import CutFailed, InvalidInput, NotFound
from statestore.hadoop.file_systems import Hadoop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ATTEMPTS = 10
_AT_ONCE = 8

Progress = Callable[[int, int, int], None]
"""Called after each file: files done, files in all, bytes copied."""


@dataclass(frozen=True, slots=True)
class Copied:
    """A finished copy.

    Attributes:
        batch: the last committed batch in it.
        files, bytes: what it consists of.
    """

    batch: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Cut:
    """What a copy is to hold, as paths below the checkpoint.

    Attributes:
        bulk: state and what belongs to it, and the sources' logs.
        operators: those of `bulk` that name the checkpoint's own address.
        logs: offsets and commits that must be there.
        history: older offsets and commits, which Spark may clean away meanwhile.
        beside: plain files at the top, such as a sink's.
    """

    batch: int
    bulk: frozenset[str]
    operators: frozenset[str]
    logs: frozenset[str]
    history: frozenset[str]
    beside: frozenset[str]


def is_checkpoint(names: Iterable[str]) -> bool:
    """Whether a folder with these names is a query's checkpoint."""
    return {METADATA, OFFSETS} <= set(names) or COMMITS in names


def copy_checkpoint(
    source: str,
    target: str,
    *,
    options: Mapping[str, object] | None = None,
    spark: SparkSession | None = None,
    progress: Progress = lambda *_: None,
) -> Copied:
    """Copy a checkpoint to a new place, where the same query goes on after the last batch that is in the copy.

    A query must not run on both: they would be one query to its sinks.

    Args:
        source, target: addresses of any scheme that Hadoop knows.
        options: Hadoop options `fs.bk.…`, for both.
        spark: whose JVM to use; see `Hadoop.of`.

    Raises:
        NotFound: there is nothing at the source.
        InvalidInput: no batch is committed there yet, or there is something at the target.
        CutFailed: files that the newest batch needs are missing, and no newer batch comes; or they went faster than
            they could be copied. What was begun at the target is removed, as it is after every other error.
    """
    return copy_with(Hadoop.of(spark, options), source, target, progress)


def copy_with(hadoop: Hadoop, source: str, target: str, progress: Progress = lambda *_: None) -> Copied:
    """As `copy_checkpoint`, through this access to Hadoop."""
    if hadoop.status(source) is None:
        raise NotFound(f"{source} does not exist")
    if hadoop.status(target) is not None:
        raise InvalidInput(f"There is something at {target}: a checkpoint is copied to a new place")
    copying = _Copying(hadoop, HadoopFiles(hadoop, source), HadoopFiles(hadoop, hadoop.qualified(target)), progress)
    # Looked at before anything is written: a source that can't be copied leaves no trace.
    cut = copying.newest(after=None)
    hadoop.write(copying.target.uri(METADATA), b"")
    try:
        return copying.run(cut)
    except BaseException:
        hadoop.delete(target, recursive=True)
        raise


def cut_of(files: Files) -> Cut:
    """Return what a copy at the newest committed batch holds.

    Raises:
        InvalidInput: no batch is committed.
        CutFailed: something that the batch needs is missing or damaged; the query may have cleaned it away meanwhile.
    """
    batches = committed(files)
    if not batches:
        raise InvalidInput("The checkpoint has no committed batch yet: there is nothing to go on from")
    batch = batches[-1]
    needs = needs_of(files, batch)
    if needs.gaps:
        gap = needs.gaps[0]
        raise CutFailed(
            f"Batch {batch} can't be copied: {gap.path}: {gap.reason}"
            + (f"; {len(needs.gaps)} such files" if len(needs.gaps) > 1 else "")
        )
    kinds = {path: need.kind for path, need in needs.files.items()}
    logs = {path for path, kind in kinds.items() if kind in ("offsets", "commits")}
    history = {
        join(log, str(number)) for log in (OFFSETS, COMMITS) for number in batch_ids(files, log) if number <= batch
    }
    return Cut(
        batch,
        bulk=frozenset(kinds.keys() - logs - {METADATA}),
        operators=frozenset(path for path, kind in kinds.items() if kind == "operator"),
        logs=frozenset(logs),
        history=frozenset(history - logs),
        beside=frozenset(plain_files(files)) - {METADATA},
    )


class _Copying:
    def __init__(self, hadoop: Hadoop, source: HadoopFiles, target: HadoopFiles, progress: Progress) -> None:
        self.hadoop, self.source, self.target, self.progress = hadoop, source, target, progress
        self.lock = threading.Lock()
        self.lengths: dict[str, int] = {}
        self.total = 0

    def run(self, cut: Cut) -> Copied:
        for _ in range(_ATTEMPTS):
            try:
                self.total = len(cut.bulk | cut.logs | cut.history | cut.beside) + 1
                self.copy(cut.bulk - self.lengths.keys(), cut.operators)
                self.copy((cut.beside | self.of(cut, OFFSETS)) - self.lengths.keys())
                # Read now, since they may be cleaned away soon, and written last.
                commits = {path: self.source.read(path) for path in sorted(self.of(cut, COMMITS))}
                metadata = self.source.read(METADATA)
                break
            except NotFound as gone:
                # What is there already is immutable, and serves the newer batch too.
                cut = self.newest(after=cut, why=gone)
        else:
            raise CutFailed(
                f"Files of {self.source.uri('')} were cleaned away faster than they could be copied, "
                f"{_ATTEMPTS} times. Let Spark keep more batches: spark.sql.streaming.minBatchesToRetain"
            )
        for path in self.lengths.keys() - cut.bulk - cut.logs - cut.history - cut.beside:
            self.hadoop.delete(self.target.uri(path))
            del self.lengths[path]
        self.copy(cut.history - self.lengths.keys(), may_be_gone=True)
        for path in commits.keys() - self.lengths.keys():
            self.hadoop.write(self.target.uri(path), commits[path])
            self.note(path, len(commits[path]))
        # A file that was replaced while it was copied, such as a snapshot, may need others than those that we took.
        for gap in needs_of(self.target, cut.batch).gaps[:1]:
            raise CutFailed(
                f"The copy is not whole: {gap.path}: {gap.reason}. Copy again; `statestore verify` says more"
            )
        self.hadoop.write(self.target.uri(METADATA), metadata, overwrite=True)
        self.note(METADATA, len(metadata))
        return Copied(cut.batch, len(self.lengths), sum(self.lengths.values()))

    def newest(self, after: Cut | None, why: Exception | None = None) -> Cut:
        """The newest cut; a batch that was tried before and has not become whole has lost files for good."""
        tried = after.batch if after else None
        for _ in range(_ATTEMPTS):
            newest = max(committed(self.source), default=None)
            if newest is not None and newest == tried:
                break
            try:
                return cut_of(self.source)
            except CutFailed as error:
                # If the query runs, this was cleaned away while it was looked at, and a newer batch is there.
                why, tried = error, newest
        raise CutFailed(f"No newer batch than {tried} is whole in {self.source.uri('')}: {why}") from why

    def of(self, cut: Cut, log: str) -> frozenset[str]:
        return frozenset(path for path in cut.logs if path.startswith(f"{log}/"))

    def copy(self, paths: Iterable[str], operators: frozenset[str] = frozenset(), may_be_gone: bool = False) -> None:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            futures = [pool.submit(self.copy_one, path, path in operators) for path in sorted(paths)]
            for future in futures:
                try:
                    future.result()
                except NotFound:
                    if not may_be_gone:
                        pool.shutdown(cancel_futures=True)
                        raise
                except BaseException:
                    pool.shutdown(cancel_futures=True)
                    raise

    def copy_one(self, path: str, operator: bool) -> None:
        if operator:
            data = moved_metadata(self.source.read(path), self.target.uri(""))
            self.hadoop.write(self.target.uri(path), data)
            length = len(data)
        else:
            length = self.hadoop.copy(self.source.uri(path), self.target.uri(path))
        self.note(path, length)

    def note(self, path: str, length: int) -> None:
        with self.lock:
            self.lengths[path] = length
            self.progress(len(self.lengths), self.total, sum(self.lengths.values()))
