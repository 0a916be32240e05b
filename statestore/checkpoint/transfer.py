"""Copy a query's checkpoint, also while the query runs, to any file system that Hadoop knows.

The copy is a cut at the newest committed batch, with the logs up to it. If Spark cleans files away meanwhile, the copy
takes a newer batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from statestore.checkpoint.cut import Cut, cut_of, write_order
from statestore.checkpoint.files import HadoopFiles
from statestore.checkpoint.logs import METADATA
from statestore.checkpoint.needs import committed, needs_of
from statestore.checkpoint.place import NewCheckpoint, check_free
from statestore.errors import CutFailed, NotFound
from statestore.hadoop.file_systems import Hadoop

_ATTEMPTS = 10
_AT_ONCE = 8

Progress = Callable[[int, int, int], None]
"""Called after each file: files done, files in all, bytes copied."""


@dataclass(frozen=True, slots=True)
class Copied:
    """A finished copy.

    Attributes:
        batch_id: the last committed batch in it.
        files, bytes: what it consists of.
    """

    batch_id: int
    files: int
    bytes: int


def copy_checkpoint(
    hadoop: Hadoop,
    source: str,
    target: str,
    progress: Progress = lambda *_: None,
    prepare: Callable[[Cut], None] = lambda cut: None,
    operators: int | None = None,
) -> Copied:
    """Copy a checkpoint to a new place, where the same query goes on after the last batch that is in the copy.

    A query must not run on both: they would be one query to its sinks.

    Args:
        hadoop: access to both.
        source, target: addresses of any scheme that it knows.
        prepare: called when all is there but the true `metadata`, so that Spark starts no query on it yet. An error
            that it raises removes the target.
        operators: how many stateful operators the query has; None: as many as our sink has noted, else not known.
            Then a warning says that state may be lost unseen.

    Raises:
        NotFound: there is nothing at the source.
        InvalidInput: no batch is committed there yet, or there is something at the target.
        CutFailed: files that the newest batch needs are missing, and no newer batch comes; or they went faster than
            they could be copied. The unfinished target is removed, as after every other error.
    """
    place = NewCheckpoint(hadoop, hadoop.qualified(target))
    check_free(hadoop, place.uri, source)
    copying = _Copying(hadoop, HadoopFiles(hadoop, source), place, progress, prepare, operators)
    # Looked at before anything is written: a source that can't be copied leaves no trace.
    cut = copying.newest(after=None)
    place.begin()
    try:
        return copying.run(cut)
    except BaseException:
        place.abandon()
        raise


def copy_into(place: NewCheckpoint, source: str, prepare: Callable[[Cut], None]) -> Copied:
    """Copy a checkpoint to a place that was begun, as `copy_checkpoint` does; the caller removes it after an error."""
    copying = _Copying(place.hadoop, HadoopFiles(place.hadoop, source), place, lambda *_: None, prepare)
    return copying.run(copying.newest(after=None))


class _Copying:
    def __init__(
        self,
        hadoop: Hadoop,
        source: HadoopFiles,
        target: NewCheckpoint,
        progress: Progress,
        prepare: Callable[[Cut], None],
        operators: int | None = None,
    ) -> None:
        self.hadoop, self.source, self.target = hadoop, source, target
        self.progress, self.prepare, self.operators = progress, prepare, operators
        self.lock = threading.Lock()
        self.lengths: dict[str, int] = {}
        self.total = self.size = 0

    def run(self, cut: Cut) -> Copied:
        for _ in range(_ATTEMPTS):
            try:
                self.total = len(cut.lengths) + len(cut.history)
                ordered = sorted(cut.lengths, key=write_order)
                last = [path for path in ordered if write_order(path)[0]]
                self.copy(path for path in ordered if path not in last and path not in self.lengths)
                # Read now, since they may be cleaned away soon, and written last.
                contents = {path: self.source.read(path) for path in last}
                break
            except NotFound as gone:
                # A file that is there already is immutable, and serves the newer batch too.
                cut = self.newest(after=cut, why=gone)
        else:
            raise CutFailed(
                f"Files of {self.source.uri('')} were cleaned away faster than they could be copied, "
                f"{_ATTEMPTS} times. Let Spark keep more batches: spark.sql.streaming.minBatchesToRetain"
            )
        for path in self.lengths.keys() - cut.lengths.keys() - cut.history:
            self.hadoop.delete(self.target.at(path))
            self.size -= self.lengths.pop(path)
        self.copy(cut.history - self.lengths.keys(), may_be_gone=True)
        metadata = contents.pop(METADATA)
        for path, data in contents.items():
            self.note(path, self.target.write(path, data))
        # A file that was replaced while it was copied, such as a snapshot, may need others than those that we took.
        for gap in needs_of(HadoopFiles(self.hadoop, self.target.uri), cut.batch_id, expected=self.operators).gaps[:1]:
            raise CutFailed(
                f"The copy is not whole: {gap.path}: {gap.reason}. Copy again; `statestore verify` says more"
            )
        self.prepare(cut)
        self.note(METADATA, self.target.write(METADATA, metadata))
        return Copied(cut.batch_id, len(self.lengths), self.size)

    def newest(self, after: Cut | None, why: Exception | None = None) -> Cut:
        """The newest cut; a batch that was tried before and has not become whole has lost files for good."""
        tried = after.batch_id if after else None
        for _ in range(_ATTEMPTS):
            newest = max(committed(self.source), default=None)
            if newest is not None and newest == tried:
                break
            try:
                return cut_of(self.source, self.source.uri(""), operators=self.operators)
            except CutFailed as error:
                # If the query runs, this was cleaned away while it was looked at, and a newer batch is there.
                why, tried = error, newest
        raise CutFailed(f"No newer batch than {tried} is whole in {self.source.uri('')}: {why}") from why

    def copy(self, paths: Iterable[str], may_be_gone: bool = False) -> None:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for future in [pool.submit(self.copy_one, path) for path in paths]:
                try:
                    future.result()
                except NotFound:
                    if not may_be_gone:
                        pool.shutdown(cancel_futures=True)
                        raise
                except BaseException:
                    pool.shutdown(cancel_futures=True)
                    raise

    def copy_one(self, path: str) -> None:
        self.note(path, self.target.copy(self.source.uri(path), path))

    def note(self, path: str, length: int) -> None:
        with self.lock:
            self.size += length - self.lengths.get(path, 0)
            self.lengths[path] = length
            self.progress(len(self.lengths), self.total, self.size)
