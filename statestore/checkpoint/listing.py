"""The content of a checkpoint: a query's batches, the versions of its state, and the state's rows as a
DataFrame."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eos.spark.capabilities import READ_STATE, Capability, require
from statestore.checkpoint import logs
from statestore.checkpoint.batch_records import stores_of
from statestore.checkpoint.files import Files, HadoopFiles, join
from statestore.checkpoint.logs import COMMITS, OFFSETS, CommitLogEntry
from statestore.checkpoint.operators import operator_ids, read_operator
from statestore.checkpoint.raw_state import FORMAT, check_address, session_of
from statestore.checkpoint.stores import StoreFile, store_files, whole_versions
from statestore.errors import InvalidInput, NotFound, StateStoreError
from statestore.hadoop.file_systems import Hadoop

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """A micro-batch that the logs still know.

    Attributes:
        committed: whether it is done. At most the last one is planned only.
        planned_ms: when Spark planned it; 0 if its offsets are cleaned away.
        committed_ms: when it was done; 0 if it is not, or if its commit is not there, as in a restored checkpoint.
        watermark_ms: the event-time watermark it ran with; 0 if the query has none.
        sources: the offset of each source up to which it reads, as JSON; None where there is none.
    """

    id: int
    committed: bool
    planned_ms: int
    committed_ms: int
    watermark_ms: int
    sources: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class StoreVersions:
    """The state of one operator in one partition.

    Attributes:
        operator: its id; `operator_name` is what Spark calls it.
        store: "default", or one of the four of a join.
        versions: those that can be loaded, lowest first; batch B makes version B + 1.
        snapshots: the versions that are there whole.
        files: deltas, snapshots, changelogs and zips.
        bytes: of these and of the tables (SST files) beside them.
        tables: how many tables there are.
        written_ms: when the newest of its files was written.
    """

    operator: int
    operator_name: str
    partition: int
    store: str
    versions: tuple[int, ...]
    snapshots: tuple[int, ...]
    files: int
    bytes: int
    tables: int
    written_ms: int


@dataclass(frozen=True, slots=True)
class Snapshots:
    """A checkpoint.

    Attributes:
        read_ms: when this was read, milliseconds since the epoch: ages count from here.
        batches: lowest first.
        stores: by operator, partition and store.
    """

    uri: str
    query_id: str
    read_ms: int
    batches: tuple[CommittedBatch, ...]
    stores: tuple[StoreVersions, ...]

    @property
    def bytes(self) -> int:
        """Of all state together."""
        return sum(store.bytes for store in self.stores)

    @property
    def loadable(self) -> tuple[int, ...]:
        """The committed batches whose state is there in each store, lowest first."""
        whole = [set(store.versions) for store in self.stores]
        return tuple(
            batch.id
            for batch in self.batches
            if batch.committed and all(batch.id + 1 in versions for versions in whole)
        )


def snapshots(uri: str, *, spark: SparkSession | None = None, options: Mapping[str, object] | None = None) -> Snapshots:
    """List what a checkpoint holds.

    Args:
        uri: the checkpoint, on any file system that Hadoop knows.
        spark: the session whose JVM and options to use. None: the active session's, or a new JVM.
        options: Hadoop options `fs.bk.…`.

    Raises:
        NotFound: there is no checkpoint.
        Damaged: its logs or metadata can't be read. `verify` says more.
        Unavailable: the file system does not answer.
    """
    return read_snapshots(HadoopFiles(Hadoop.of(spark, options, make_root=False), uri), uri)


def read_snapshots(files: Files, uri: str = "") -> Snapshots:
    """Read what a checkpoint holds, from any folder.

    A query may run meanwhile. If Spark cleans files away under the reader's eyes, the reader begins again.

    Raises:
        NotFound: there is no checkpoint.
        Damaged: its logs or metadata can't be read. `verify` says more.
    """
    logs.check_checkpoint(files, uri)
    for _ in range(_ATTEMPTS - 1):
        with suppress(NotFound):
            return _read_snapshots(files, uri)
    return _read_snapshots(files, uri)


def _read_snapshots(files: Files, uri: str) -> Snapshots:
    query_id = logs.read_query_id(files)
    plans, commits = logs.batch_ids(files, OFFSETS), logs.batch_ids(files, COMMITS)
    batches, last = [], max(commits, default=-1)
    for batch in sorted({*plans, *commits}):
        offsets = logs.read_offsets(files, batch) if batch in plans else None
        batches.append(
            CommittedBatch(
                batch,
                batch <= last,
                offsets.time_ms if offsets else 0,
                commits[batch].mtime_ms if batch in commits else 0,
                offsets.watermark_ms if offsets else 0,
                offsets.sources if offsets else (),
            )
        )
    stores = tuple(_stores(files, {batch: logs.read_commit(files, batch) for batch in commits}))
    return Snapshots(uri, query_id, int(time.time() * 1000), tuple(batches), stores)


def read_state(
    uri: str,
    batch_id: int | None = None,
    operator_id: int = 0,
    *,
    spark: SparkSession,
    store_name: str | None = None,
    join_side: str | None = None,
    state_variable: str | None = None,
    options: Mapping[str, object] | None = None,
) -> DataFrame:
    """Read state back through Spark's own state data source.

    The data source looks for files in the checkpoint format that its session would write. If the session is set to
    another one than the checkpoint has, the rows come from a session of the same application with the same settings but
    for this one.

    Args:
        uri: the checkpoint.
        batch_id: the state after this committed batch. None: after the last one.
        operator_id: which stateful operator, as `snapshots` lists them.
        spark: a session that `configure_spark` made.
        store_name: a store other than "default", such as one of the four of a join.
        join_side: "left" or "right", in place of `store_name`: the rows that a side of a join keeps.
        state_variable: of transformWithState, the name of the state that the processor asked for.
        options: further options of the data source, such as {"flattenCollectionTypes": False}.

    Returns:
        key (a struct), value (a struct) and partition_id. Maps, lists and change feeds have other columns.

    Raises:
        InvalidInput: both a store and a side of a join, or an address at which Spark finds no state. Spark's own errors
            pass, such as that of a missing batch.
    """
    if store_name is not None and join_side is not None:
        raise InvalidInput("Give store_name or join_side, not both. A side of a join is read from two stores")
    check_address(uri)
    named: dict[str, Any] = {
        "batchId": batch_id,
        "operatorId": operator_id,
        "storeName": store_name,
        "joinSide": join_side,
        "stateVarName": state_variable,
        **(options or {}),
    }
    require(Capability.READS_STATE, *READ_STATE)
    reader = _session(spark, uri, batch_id).read.format("statestore")
    for name, value in named.items():
        if value is not None:
            reader = reader.option(name, str(value).lower() if isinstance(value, bool) else str(value))
    return reader.load(uri)


def _session(spark: SparkSession, uri: str, batch_id: int | None) -> SparkSession:
    """A session that reads the checkpoint's format, as a commit tells it."""
    files = HadoopFiles(Hadoop.of(spark), uri)
    try:
        batch = max(logs.batch_ids(files, COMMITS)) if batch_id is None else batch_id
        its_format = logs.read_commit(files, batch).format
    except (ValueError, StateStoreError):
        return spark  # there is no such batch: the data source says so
    return spark if spark.conf.get(FORMAT, "1") == str(its_format) else session_of(spark, its_format)


def _stores(files: Files, commits: Mapping[int, CommitLogEntry]) -> Iterator[StoreVersions]:
    last = max(commits, default=-1)
    for number in operator_ids(files):
        operator = read_operator(files, number, last)
        named = {
            batch: {folder: uid for _, _, folder, uid in stores_of(operator, commit)}
            for batch, commit in commits.items()
            if commit.uids
        }
        for partition, store, folder, _ in stores_of(operator, commits.get(last, CommitLogEntry(0, 0, {}))):
            have = store_files(files, folder)
            parts = ("SSTs", "logs") if any(file.kind == "zip" for file in have) else ()
            tables = [table for part in parts for table in files.list(join(folder, part)).values()]
            uids = {batch + 1: folders[folder] for batch, folders in named.items() if folders.get(folder)}
            yield StoreVersions(
                operator=number,
                operator_name=operator.name,
                partition=partition,
                store=store,
                versions=_loadable(have, uids),
                snapshots=tuple(sorted({file.version for file in have if file.is_snapshot})),
                files=len(have),
                bytes=sum(file.length for file in have) + sum(table.length for table in tables),
                tables=len(tables),
                written_ms=max((file.mtime_ms for file in have), default=0),
            )


def _loadable(have: tuple[StoreFile, ...], uids: Mapping[int, str]) -> tuple[int, ...]:
    """In format 1 each version with a whole chain; in format 2 those that a commit names and that have a file."""
    if uids:
        there = {(file.version, file.uid) for file in have}
        return tuple(version for version, uid in sorted(uids.items()) if (version, uid) in there)
    return whole_versions(have)
