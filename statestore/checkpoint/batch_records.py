"""The records of a checkpoint about one batch, parsed: plans, commit, the sources' logs, operators and their stores.

Nothing is decided here. A file that is missing or can't be read is noted as such: `statestore.checkpoint.needs` says
what that means.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from statestore.checkpoint import logs
from statestore.checkpoint.files import Files, join
from statestore.checkpoint.logs import OFFSETS, CommitLogEntry
from statestore.checkpoint.operators import STATE, Operator, concluded, has_schemas, operator_ids, read_operator
from statestore.checkpoint.progression import wrong_offsets
from statestore.checkpoint.rocksdb import SstTable, read_snapshot
from statestore.checkpoint.sources import SourceLog, numbers_of, source_logs
from statestore.checkpoint.stores import Chain, Gap, StoreFile, chain, chain_of, store_files
from statestore.errors import Damaged, NotFound, StateStoreError, Unavailable, Unreadable


@dataclass(frozen=True, slots=True)
class TablesRecord:
    """The files that belong to a snapshot of RocksDB.

    Attributes:
        tables: those that its zip names; an error, if it can't be read.
        present: paths of the files in their folders, from the store's folder on.
    """

    tables: tuple[SstTable, ...] | StateStoreError
    present: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StoreRecord:
    """A state store.

    Attributes:
        partition: its number.
        folder: relative to the checkpoint.
        uid: the unique id of the state; empty in checkpoint format 1.
        have: all files of the store, of any version.
        chain: those that make up the state after the batch.
        has_schema: a schema lies beside its files. Looked at only where the operator names none, in partition 0.
        snapshots: what belongs to each zip of the chain, by its path.
    """

    partition: int
    folder: str
    uid: str
    have: tuple[StoreFile, ...]
    chain: Chain
    has_schema: bool
    snapshots: Mapping[str, TablesRecord]


@dataclass(frozen=True, slots=True)
class OperatorRecord:
    """A stateful operator.

    Attributes:
        number: its id.
        said: what is known of it, by its metadata or concluded from its folders; None: neither.
        error: why its metadata can't be read.
        has_schemas: it has a folder of schemas. Looked at only where there is no metadata.
        schemas_gone: files with schemas that the metadata names, and that are not there.
        stores: of each partition.
    """

    number: int
    said: Operator | None
    error: StateStoreError | None
    has_schemas: bool = False
    schemas_gone: frozenset[str] = frozenset()
    stores: tuple[StoreRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchRecords:
    """All that is said of a batch.

    Attributes:
        plans: ids of the batches that are planned.
        wrong_offsets: offsets that can't be right.
        sources: their logs, by folder; none where the last batch has no plan.
        read_up_to: {folder of a source: the number up to which the plan reads its log}; empty if it can't be read.
        commit: of the batch; an error, if it can't be read.
        has_uids: the state is in checkpoint format 2. Looked at only where the commit is missing.
        has_state: there is a folder for state.
        operators: by id.
    """

    plans: Collection[int]
    wrong_offsets: Sequence[Gap]
    sources: Mapping[str, SourceLog]
    read_up_to: Mapping[str, int]
    commit: CommitLogEntry | StateStoreError
    has_uids: bool
    has_state: bool
    operators: Mapping[int, OperatorRecord]


NO_COMMIT = CommitLogEntry(0, 0, {})


def read_batch(files: Files, batch: int, planned: bool) -> BatchRecords:
    """Read what a checkpoint says of a batch. Args: as of `statestore.checkpoint.needs.needs_of`."""
    plans, last = logs.batch_ids(files, OFFSETS), batch + planned
    wrong = tuple(wrong_offsets(files, last))
    sources, numbers = _read_sources(files, last) if last in plans else ({}, {})
    if batch < 0:
        return BatchRecords(plans, wrong, sources, numbers, NO_COMMIT, False, False, {})
    commit = _read_commit(files, batch)
    known = commit if isinstance(commit, CommitLogEntry) else NO_COMMIT
    has_uids = isinstance(commit, NotFound) and planned and _has_uids(files)
    operators = {number: _read(files, number, batch, known) for number in sorted({*operator_ids(files), *known.uids})}
    return BatchRecords(plans, wrong, sources, numbers, commit, has_uids, STATE in files.list(""), operators)


def stores_of(operator: Operator, commit: CommitLogEntry) -> Iterator[tuple[int, str, str, str]]:
    """Yield each store of an operator: partition, name, folder, and its state's unique id ("" in format 1)."""
    uids: Sequence[Sequence[str]] = commit.uids.get(operator.id, ())
    for partition in range(max(operator.partitions, len(uids))):
        for index, store in enumerate(operator.stores):
            of_partition = uids[partition] if partition < len(uids) else ()
            uid = of_partition[index] if index < len(of_partition) else ""
            yield partition, store, operator.folder(partition, store), uid


def chain_for(
    files: Files,
    folder: str,
    have: Sequence[StoreFile],
    version: int,
    uid: str,
    from_snapshot: bool = False,
    *,
    from_empty: bool = False,
) -> Chain:
    """Return what makes up a version of a store, in either checkpoint format."""
    found = chain_of(files, folder, have, version, uid, from_empty) if uid else chain(folder, have, version)
    if from_snapshot and not found.base and not found.gaps:
        gap = Gap(join(folder, "*.zip"), "the store has column families, which only a snapshot brings back")
        return Chain(version, found.files, (gap,))
    return found


def _read_sources(files: Files, plan: int) -> tuple[Mapping[str, SourceLog], Mapping[str, int]]:
    there = source_logs(files)
    try:
        return there, numbers_of(logs.read_offsets(files, plan))
    except (Unreadable, NotFound, Unavailable):
        return there, {}  # the offsets themselves are named as damaged


def _read_commit(files: Files, batch: int) -> CommitLogEntry | StateStoreError:
    try:
        return logs.read_commit(files, batch)
    except (NotFound, Unreadable, Unavailable) as error:
        return error


def _has_uids(files: Files) -> bool:
    """Whether the state is in checkpoint format 2: each version has a name that only the commit tells."""
    for number in operator_ids(files):
        try:
            operator = read_operator(files, number, 0)
        except (NotFound, Unreadable, Unavailable):
            continue
        for store in operator.stores:
            if any(file.uid for file in store_files(files, operator.folder(0, store))):
                return True
    return False


def _read(files: Files, number: int, batch: int, commit: CommitLogEntry) -> OperatorRecord:
    error: StateStoreError | None = None
    try:
        said = read_operator(files, number, batch)
    except (NotFound, Unreadable, Unavailable) as unread:  # NotFound: Spark has cleaned it away since it was listed
        if not isinstance(unread, Damaged) or "v2" in files.list(join(STATE, str(number), "_metadata")):
            return OperatorRecord(number, None, unread)
        said, error = concluded(files, number), unread
    folders = {folder: files.list(folder) for folder in {schema.rpartition("/")[0] for schema in said.schemas}}
    gone = (schema for schema in said.schemas if schema.rpartition("/")[2] not in folders[schema.rpartition("/")[0]])
    stores = (
        _read_store(files, folder, uid, partition, batch, named=bool(said.schemas))
        for partition, _, folder, uid in stores_of(said, commit)
    )
    has = not said.metadata and has_schemas(files, number)
    return OperatorRecord(number, said, error, has, frozenset(gone), tuple(stores))


def _read_store(files: Files, folder: str, uid: str, partition: int, batch: int, *, named: bool) -> StoreRecord:
    have = store_files(files, folder)
    has_schema = partition == 0 and not named and "schema" in files.list(join(folder, "_metadata"))
    made_of = chain_for(files, folder, have, batch + 1, uid, named)
    zips = {file.path: _read_tables(files, folder, file.path) for file in made_of.files if file.kind == "zip"}
    return StoreRecord(partition, folder, uid, have, made_of, has_schema, zips)


def _read_tables(files: Files, folder: str, snapshot: str) -> TablesRecord:
    try:
        tables = read_snapshot(files.read(snapshot)).tables
    except (Unreadable, NotFound, Unavailable) as error:
        return TablesRecord(error)
    parts = {table.path.partition("/")[0] for table in tables}
    return TablesRecord(
        tables, frozenset(f"{part}/{name}" for part in parts for name in files.list(join(folder, part)))
    )
