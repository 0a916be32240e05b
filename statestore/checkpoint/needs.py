"""Which files a committed batch needs: what Spark reads to go on after it, and what a cut of a checkpoint must hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from eos.commit.registration import REGISTRATION, Registration
from eos.errors import DamagedLog, NewerVersion
from statestore.checkpoint import logs
from statestore.checkpoint.batch_records import BatchRecords, OperatorRecord, StoreRecord, chain_for, read_batch
from statestore.checkpoint.files import Files, join
from statestore.checkpoint.logs import COMMITS, OFFSETS
from statestore.checkpoint.operators import STATE, Operator
from statestore.checkpoint.stores import CHECKSUM, Chain, Gap, StoreFile
from statestore.errors import InvalidInput, NotFound, StateStoreError, Unavailable, Unreadable

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
        """The parts of the state once Spark has failed over some snapshots."""
        have = [file for file in self.have if file.path not in paths]
        return chain_for(files, self.folder, have, self.chain.version, self.uid, self.from_snapshot, from_empty=True)


@dataclass(slots=True)
class Needs:
    """The files that Spark needs to go on after a batch.

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


def registration_of(files: Files) -> Registration | None:
    """Return what our sink has noted of the query; None: it has noted nothing.

    Raises Unreadable, Unavailable, and for a note that is damaged or newer DamagedLog, NewerVersion.
    """
    try:
        return Registration.parse(files.read(REGISTRATION).decode(errors="replace"))
    except NotFound:
        return None


def read_note(files: Files) -> Registration | StateStoreError | None:
    """Return what our sink has noted of the query, or an error if that can't be read; None: it has noted nothing."""
    try:
        return registration_of(files)
    except (Unreadable, Unavailable) as error:
        return error
    except (DamagedLog, NewerVersion) as error:
        return Unreadable(str(error))


def noted_operators(files: Files) -> int | None:
    """Return how many stateful operators the query has at least, as our sink has noted it; None: nothing says so."""
    note = read_note(files)
    return note.operators if isinstance(note, Registration) else None


def needs_of(files: Files, batch: int, planned: bool = False, expected: int | None = None) -> Needs:
    """Return what Spark needs to go on after a batch.

    Reads the logs, the operators' metadata, and of each store one zip and, in checkpoint format 2, one changelog.
    Nothing that is missing or damaged is an error here: `Needs.gaps` names it.

    Args:
        batch: a committed one; or, with `planned`, the one before the planned one, -1 for none.
        expected: how many stateful operators the query has, if the caller knows it better than the checkpoint.
    """
    records = read_batch(files, batch, planned)
    noted = expected if expected is not None or batch < 0 else noted_operators(files)
    found = Needs(batch, planned)
    found.add(logs.METADATA, "metadata")
    _add_plans(records, found)
    if batch >= 0:
        _add_commit(records, found)
        _add_operators(records, found, noted or 0)
    return found


def _add_plans(records: BatchRecords, found: Needs) -> None:
    last = found.batch + found.planned
    for number in range(max(last - 1, 0), last + 1):
        found.add(join(OFFSETS, str(number)), "offsets")
        if number not in records.plans:
            found.gaps.append(Gap(join(OFFSETS, str(number)), f"Spark reads it to go on after batch {found.batch}"))
    found.gaps += records.wrong_offsets
    for log in records.sources.values():
        for path in log.read:
            found.add(path, "source")
        for path in log.named:
            found.add(path, "source name")
    for folder, number in records.read_up_to.items():
        log_of_source = records.sources.get(folder)
        newest = log_of_source.newest if log_of_source is not None else -1
        found.gaps += log_of_source.gaps if log_of_source is not None else ()
        if newest < number:
            ends = f"the log ends at {newest}" if newest >= 0 else "the log is lost"
            found.gaps.append(Gap(join(folder, str(number)), f"{OFFSETS}/{last} reads up to here, and {ends}"))


def _add_commit(records: BatchRecords, found: Needs) -> None:
    """Before a planned batch only checkpoint format 2 needs it: it names the files of the state."""
    path, commit = join(COMMITS, str(found.batch)), records.commit
    if isinstance(commit, NotFound) and found.planned:
        if records.has_uids:
            found.gaps.append(Gap(path, "in checkpoint format 2 it names the state that the next batch starts from"))
        return
    found.add(path, "commits")
    if isinstance(commit, NotFound):
        found.gaps.append(Gap(path, f"batch {found.batch} is not committed"))
    elif isinstance(commit, StateStoreError):
        found.gaps.append(Gap.of(path, commit))


def _add_operators(records: BatchRecords, found: Needs, noted: int) -> None:
    operators = records.operators
    for number in range(max(max(operators, default=-1) + 1, noted)):
        if number in operators:
            _add_operator(operators[number], found)
        else:
            reason = f"the query has {noted} stateful operators" if number < noted else "operators are numbered from 0"
            found.gaps.append(Gap(join(STATE, str(number)), f"{reason}. Its state is lost"))
    if not operators and not noted and records.has_state:
        found.gaps.append(Gap(STATE, "the folder is there, and no operator in it. Its state is lost"))


def _add_operator(record: OperatorRecord, found: Needs) -> None:
    number, operator = record.number, record.said
    folder = join(STATE, str(number), "_metadata")
    if operator is None:
        assert record.error is not None, "what is known of an operator is concluded where nothing is read"
        found.gaps.append(Gap.of(folder, record.error))
        return
    if not operator.metadata and record.has_schemas:
        found.gaps.append(Gap(join(folder, "v2", "*"), f"state/{number} has schemas, which Spark finds by it"))
    elif not operator.metadata:
        lacks = "no operator metadata" if record.error is None else f"metadata that can't be read ({record.error})"
        found.notes.append(
            f"state/{number} has {lacks}. Its stores were concluded from its folders, and Spark's state data source "
            "can't read it"
        )
    if operator.metadata:
        found.add(operator.metadata, "operator")
    for schema in operator.schemas:
        found.add(schema, "schema")
        if schema in record.schemas_gone:
            found.gaps.append(Gap(schema, f"the metadata of operator {number} names this schema"))
    for store in record.stores:
        _add_store(store, operator, found)


def _add_store(store: StoreRecord, operator: Operator, found: Needs) -> None:
    if store.partition == 0 and not operator.schemas:
        schema = join(store.folder, SCHEMA)
        if store.has_schema:
            found.add(schema, "schema")
        elif operator.metadata:
            # StateSchemaCompatibilityChecker.getExistingKeyAndValueSchema
            found.notes.append(f"{schema} is not there. Spark writes it again without comparing")
    found.gaps += store.chain.gaps
    tables: tuple[str, ...] = ()
    for file in store.chain.files:
        found.add(file.path, file.kind, None)
        if file.has_checksum:
            found.add(file.path + CHECKSUM, "crc")
        if file.kind == "zip":
            tables = _add_tables(store, file.path, found)
    found.stores.append(
        StoreNeeds(store.folder, store.uid, store.have, store.chain, tables, from_snapshot=bool(operator.schemas))
    )


def _add_tables(store: StoreRecord, snapshot: str, found: Needs) -> tuple[str, ...]:
    tables, present = store.snapshots[snapshot].tables, store.snapshots[snapshot].present
    if isinstance(tables, StateStoreError):
        found.gaps.append(Gap.of(snapshot, tables, "what belongs to this snapshot can't be known: "))
        return ()
    for table in tables:
        path = join(store.folder, table.path)
        found.add(path, "table", table.length)
        if table.path not in present:
            found.gaps.append(Gap(path, f"{snapshot} refers to it"))
    return tuple(join(store.folder, table.path) for table in tables)
