"""Which files a committed batch needs: what Spark reads to go on after it, and what a cut of a checkpoint must hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from eos.commit.registration import REGISTRATION, Registration
from eos.errors import DamagedLog, NewerVersion
from statestore.checkpoint import logs
from statestore.checkpoint.files import Files, join
from statestore.checkpoint.logs import COMMITS, OFFSETS, CommitLogEntry
from statestore.checkpoint.operators import STATE, Operator, concluded, has_schemas, operator_ids, read_operator
from statestore.checkpoint.progression import wrong_offsets
from statestore.checkpoint.rocksdb import read_snapshot
from statestore.checkpoint.sources import numbers_of, source_logs
from statestore.checkpoint.stores import CHECKSUM, Chain, Gap, StoreFile, chain, chain_of, store_files
from statestore.errors import Damaged, InvalidInput, NotFound, Unavailable, Unreadable

SCHEMA = "_metadata/schema"


@dataclass(frozen=True, slots=True)
class Need:
    """A file that is needed, and is there unless `Needs.gaps` names it.

    Attributes:
        path: relative to the checkpoint.
        kind: metadata, offsets, commits, source, "source name" (its content isn't read), operator, schema; of state:
            delta, snapshot, changelog, zip, table, crc.
        length: bytes that it must have; None if nothing says.
    """

    path: str
    kind: str
    length: int | None = None


@dataclass(frozen=True, slots=True)
class StoreNeeds:
    """One state store, and what makes up its state after a batch.

    Attributes:
        folder: relative to the checkpoint.
        uid: the unique id of the state; empty in checkpoint format 1.
        have: all files of the store, of any version.
        chain: those that make up this state.
        tables: those that belong to its zip.
        from_snapshot: it has column families, which no changelog can make: Spark writes a snapshot whenever one is
            added (RocksDB.createColFamilyIfAbsent), and can't begin with an empty store.
    """

    folder: str
    uid: str
    have: tuple[StoreFile, ...]
    chain: Chain
    tables: tuple[str, ...]
    from_snapshot: bool

    def without(self, files: Files, *paths: str) -> Chain:
        """What makes up the state once Spark has failed over some snapshots."""
        have = [file for file in self.have if file.path not in paths]
        return chain_for(files, self.folder, have, self.chain.version, self.uid, self.from_snapshot, from_empty=True)


@dataclass(slots=True)
class Needs:
    """What Spark needs to go on after a batch.

    Attributes:
        batch: its id; its state has the version `batch` + 1.
        planned: the batch after it is planned already, and runs first.
        files: by path, in the order in which Spark reads them.
        gaps: what is missing or keeps the rest from being known.
        notes: what is odd but harmless.
        stores: what of it makes up the state.
    """

    batch: int
    planned: bool = False
    files: dict[str, Need] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stores: list[StoreNeeds] = field(default_factory=list)

    def add(self, path: str, kind: str, length: int | None = None) -> None:
        """Note a file."""
        self.files[path] = Need(path, kind, length)


def committed(files: Files) -> tuple[int, ...]:
    """Return the ids of the batches that are committed and not yet cleaned away, lowest first."""
    return tuple(logs.batch_ids(files, COMMITS))


def committed_batch(files: Files, where: str, batch: int | None, otherwise: str) -> int:
    """Return a batch that is committed and still there.

    Args:
        where: the checkpoint's address, for messages.
        batch: the one to be; None: the newest.
        otherwise: what is amiss where none is, in words.

    Raises InvalidInput: there is no such batch, or none at all.
    """
    batches = committed(files)
    if not batches:
        raise InvalidInput(f"{where} has no committed batch yet: {otherwise}")
    if batch is not None and batch not in batches:
        raise InvalidInput(
            f"Batch {batch} is not committed, or was cleaned away, in {where}. There are {batches[0]} … {batches[-1]}"
        )
    return batches[-1] if batch is None else batch


def restart_of(files: Files) -> tuple[int, bool]:
    """Return the batch after which Spark goes on, -1 for none, and whether the next one is planned already.

    The newest file of `offsets` decides (MicroBatchExecution.populateStartOffsets): its batch is run again unless
    `commits` has it too. Commits before that are not asked for.
    """
    plan = max(logs.batch_ids(files, OFFSETS), default=-1)
    done = max(committed(files), default=-1)
    return (plan - 1, True) if plan > done else (done, False)


def plain_files(files: Files) -> list[str]:
    """Return the names of the files at the top of a checkpoint: Spark's `metadata`, and what a sink remembers there."""
    return [name for name, entry in files.list("").items() if not entry.is_directory and not name.startswith(".")]


def noted_operators(files: Files) -> int | None:
    """Return how many stateful operators the query has at least, as our sink has noted it; None: nothing says so."""
    with suppress(NotFound, Unavailable, DamagedLog, NewerVersion):
        return Registration.parse(files.read(REGISTRATION).decode(errors="replace")).operators
    return None


def needs_of(files: Files, batch: int, planned: bool = False, expected: int | None = None) -> Needs:
    """Return what Spark needs to go on after a batch.

    Reads the logs, the operators' metadata, and of each store one zip and, in checkpoint format 2, one changelog.
    Nothing that is missing or damaged is an error here: `Needs.gaps` names it.

    Args:
        batch: a committed one; or, with `planned`, the one before the planned one, -1 for none.
        expected: how many stateful operators the query has, if the caller knows it better than the checkpoint.
    """
    found = Needs(batch, planned)
    found.add(logs.METADATA, "metadata")
    plans = logs.batch_ids(files, OFFSETS)
    last = batch + planned
    for number in range(max(last - 1, 0), last + 1):
        found.add(join(OFFSETS, str(number)), "offsets")
        if number not in plans:
            found.gaps.append(Gap(join(OFFSETS, str(number)), f"Spark reads it to go on after batch {batch}"))
    found.gaps += wrong_offsets(files, last)
    if last in plans:
        _add_sources(files, found, last)
    if batch < 0:
        return found
    commit = _add_commit(files, found)
    operators = {*operator_ids(files), *commit.uids}
    noted = expected if expected is not None else noted_operators(files) or 0
    for operator in range(max(max(operators, default=-1) + 1, noted)):
        if operator in operators:
            _add_operator(files, found, operator, commit)
        else:
            reason = (
                f"the query has {noted} stateful operators" if operator < noted else "operators are numbered from 0"
            )
            found.gaps.append(Gap(join(STATE, str(operator)), f"{reason}: its state is lost"))
    if not operators and not noted and STATE in files.list(""):
        found.gaps.append(Gap(STATE, "the folder is there, and no operator in it: its state is lost"))
    return found


def _add_commit(files: Files, found: Needs) -> CommitLogEntry:
    """Before a planned batch only checkpoint format 2 needs it: it names the files of the state."""
    path = join(COMMITS, str(found.batch))
    try:
        commit = logs.read_commit(files, found.batch)
    except NotFound:
        if not found.planned:
            found.add(path, "commits")
            found.gaps.append(Gap(path, f"batch {found.batch} is not committed"))
        elif _has_uids(files):
            found.gaps.append(Gap(path, "in checkpoint format 2 it names the state that the next batch starts from"))
    except (Unreadable, Unavailable) as error:
        found.add(path, "commits")
        found.gaps.append(Gap.of(path, error))
    else:
        found.add(path, "commits")
        return commit
    return CommitLogEntry(0, 0, {})


def _has_uids(files: Files) -> bool:
    """Whether the state is in checkpoint format 2: each version has a name that only the commit tells."""
    for number in operator_ids(files):
        try:
            operator = read_operator(files, number, 0)
        except (Unreadable, Unavailable):
            continue
        for store in operator.stores:
            if any(file.uid for file in store_files(files, operator.folder(0, store))):
                return True
    return False


def _add_sources(files: Files, found: Needs, plan: int) -> None:
    there = source_logs(files)
    for log in there.values():
        for path in log.read:
            found.add(path, "source")
        for path in log.named:
            found.add(path, "source name")
    try:
        numbers = numbers_of(logs.read_offsets(files, plan))
    except (Unreadable, NotFound, Unavailable):
        return  # the offsets themselves are named as damaged
    for folder, number in numbers.items():
        newest = there[folder].newest if folder in there else -1
        found.gaps += there[folder].gaps if folder in there else ()
        if newest < number:
            ends = f"the log ends at {newest}" if newest >= 0 else "the log is lost"
            found.gaps.append(Gap(join(folder, str(number)), f"{OFFSETS}/{plan} reads up to here, and {ends}"))


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


def _add_operator(files: Files, found: Needs, number: int, commit: CommitLogEntry) -> None:
    folder = join(STATE, str(number), "_metadata")
    try:
        operator = read_operator(files, number, found.batch)
    except (Unreadable, Unavailable) as error:
        if not isinstance(error, Damaged) or "v2" in files.list(folder):
            found.gaps.append(Gap.of(folder, error))
            return
        lacks = f"metadata that can't be read ({error})"
        operator = concluded(files, number)
    else:
        lacks = "" if operator.metadata else "no operator metadata"
    if not operator.metadata and has_schemas(files, number):
        found.gaps.append(Gap(join(folder, "v2", "*"), f"state/{number} has schemas, which Spark finds by it"))
    elif lacks:
        found.notes.append(
            f"state/{number} has {lacks}: its stores were concluded from its folders, and Spark's state data source "
            "can't read it"
        )
    if operator.metadata:
        found.add(operator.metadata, "operator")
    there: Mapping[str, object] = {}
    for schema in operator.schemas:
        found.add(schema, "schema")
        folder, _, name = schema.rpartition("/")
        there = files.list(folder)
        if name not in there:
            found.gaps.append(Gap(schema, f"the metadata of operator {number} names this schema"))
    for partition, _, folder, uid in stores_of(operator, commit):
        have = store_files(files, folder)
        if partition == 0 and not operator.schemas:
            schema = join(folder, SCHEMA)
            if "schema" in files.list(join(folder, "_metadata")):
                found.add(schema, "schema")
            elif operator.metadata:
                # StateSchemaCompatibilityChecker.getExistingKeyAndValueSchema
                found.notes.append(f"{schema} is not there: Spark writes it again without comparing")
        from_snapshot = bool(operator.schemas)
        made_of = chain_for(files, folder, have, found.batch + 1, uid, from_snapshot)
        found.gaps += made_of.gaps
        tables: tuple[str, ...] = ()
        for file in made_of.files:
            found.add(file.path, file.kind, None)
            if file.has_checksum:
                found.add(file.path + CHECKSUM, "crc")
            if file.kind == "zip":
                tables = _add_tables(files, found, folder, file)
        found.stores.append(StoreNeeds(folder, uid, have, made_of, tables, from_snapshot))


def _add_tables(files: Files, found: Needs, folder: str, snapshot: StoreFile) -> tuple[str, ...]:
    try:
        tables = read_snapshot(files.read(snapshot.path)).tables
    except (Unreadable, NotFound, Unavailable) as error:
        found.gaps.append(Gap.of(snapshot.path, error, "what belongs to this snapshot can't be known: "))
        return ()
    there = {part: files.list(join(folder, part)) for part in {table.path.partition("/")[0] for table in tables}}
    for table in tables:
        path = join(folder, table.path)
        part, _, name = table.path.partition("/")
        found.add(path, "table", table.length)
        if name not in there[part]:
            found.gaps.append(Gap(path, f"{snapshot.path} refers to it"))
    return tuple(join(folder, table.path) for table in tables)
