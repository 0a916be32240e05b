"""Which files a committed batch needs: what Spark reads to go on after it, and what a cut of a checkpoint must hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from statestore.checkpoint import logs
from statestore.checkpoint.files import Files, join
from statestore.checkpoint.logs import COMMITS, OFFSETS, Commit
from statestore.checkpoint.operators import Operator, operator_ids, read_operator
from statestore.checkpoint.rocksdb import read_snapshot
from statestore.checkpoint.stores import CHECKSUM, Chain, Gap, StoreFile, chain, chain_of, store_files
from statestore.errors import Damaged, NotFound, Unavailable

SCHEMA = "_metadata/schema"


@dataclass(frozen=True, slots=True)
class Need:
    """A file that is needed, and is there unless `Needs.gaps` names it.

    Attributes:
        path: relative to the checkpoint.
        kind: metadata, offsets, commits, source, operator, schema; of state: delta, snapshot, changelog, zip, table,
            crc.
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
    """

    folder: str
    uid: str
    have: tuple[StoreFile, ...]
    chain: Chain

    def without(self, files: Files, path: str) -> Chain:
        """What would make up the state if one file were not there."""
        have = [file for file in self.have if file.path != path]
        return chain_for(files, self.folder, have, self.chain.version, self.uid)


@dataclass(slots=True)
class Needs:
    """What one committed batch needs.

    Attributes:
        batch: its id; its state has the version `batch` + 1.
        files: by path, in the order in which Spark reads them.
        gaps: what is missing or keeps the rest from being known.
        notes: what is odd but harmless.
        stores: what of it makes up the state.
    """

    batch: int
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


def plain_files(files: Files) -> list[str]:
    """Return the names of the files at the top of a checkpoint: Spark's `metadata`, and what a sink remembers there."""
    return [name for name, entry in files.list("").items() if not entry.is_directory and not name.startswith(".")]


def needs_of(files: Files, batch: int) -> Needs:
    """Return what a committed batch needs.

    Reads the logs, the operators' metadata, and of each store one zip and, in checkpoint format 2, one changelog.
    Nothing that is missing or damaged is an error here: `Needs.gaps` names it.
    """
    found = Needs(batch)
    found.add(logs.METADATA, "metadata")
    plans = logs.batch_ids(files, OFFSETS)
    for number in (batch - 1, batch):
        if number >= 0:
            found.add(join(OFFSETS, str(number)), "offsets")
            if number not in plans:
                found.gaps.append(Gap(join(OFFSETS, str(number)), f"Spark reads it to go on after batch {batch}"))
    path = join(COMMITS, str(batch))
    found.add(path, "commits")
    commit = Commit(0, 0, {})
    try:
        commit = logs.read_commit(files, batch)
    except NotFound:
        found.gaps.append(Gap(path, f"batch {batch} is not committed"))
    except (Damaged, Unavailable) as error:
        found.gaps.append(Gap(path, str(error), damaged=True))
    for folder, log in logs.source_logs(files).items():
        for source in log:
            found.add(source, "source")
        for number in logs.missing_in(log):
            found.gaps.append(Gap(join(folder, str(number)), "the source's log skips it"))
    for operator in sorted({*operator_ids(files), *commit.uids}):
        _add_operator(files, found, operator, commit)
    return found


def stores_of(operator: Operator, commit: Commit) -> Iterator[tuple[int, str, str, str]]:
    """Yield each store of an operator: partition, name, folder, and its state's unique id ("" in format 1)."""
    uids: Sequence[Sequence[str]] = commit.uids.get(operator.id, ())
    for partition in range(max(operator.partitions, len(uids))):
        for index, store in enumerate(operator.stores):
            of_partition = uids[partition] if partition < len(uids) else ()
            uid = of_partition[index] if index < len(of_partition) else ""
            yield partition, store, operator.folder(partition, store), uid


def chain_for(files: Files, folder: str, have: Sequence[StoreFile], version: int, uid: str) -> Chain:
    """Return what makes up a version of a store, in either checkpoint format."""
    return chain_of(files, folder, have, version, uid) if uid else chain(folder, have, version)


def _add_operator(files: Files, found: Needs, number: int, commit: Commit) -> None:
    try:
        operator = read_operator(files, number, found.batch)
    except (Damaged, Unavailable) as error:
        path = join("state", str(number), "_metadata")
        found.gaps.append(Gap(path, str(error), damaged=True))
        return
    if operator.metadata:
        found.add(operator.metadata, "operator")
    else:
        found.notes.append(
            f"state/{number} has no operator metadata: its stores were concluded from its folders, and Spark's state "
            "data source can't read it"
        )
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
                found.gaps.append(Gap(schema, f"operator {number} compares its schema with it"))
        made_of = chain_for(files, folder, have, found.batch + 1, uid)
        found.stores.append(StoreNeeds(folder, uid, have, made_of))
        found.gaps += made_of.gaps
        for file in made_of.files:
            found.add(file.path, file.kind, None)
            if file.has_checksum:
                found.add(file.path + CHECKSUM, "crc")
            if file.kind == "zip":
                _add_tables(files, found, folder, file)


def _add_tables(files: Files, found: Needs, folder: str, snapshot: StoreFile) -> None:
    try:
        tables = read_snapshot(files.read(snapshot.path)).tables
    except (Damaged, NotFound, Unavailable) as error:
        found.gaps.append(Gap(snapshot.path, f"what belongs to this snapshot can't be known: {error}", damaged=True))
        return
    there = {part: files.list(join(folder, part)) for part in {table.path.partition("/")[0] for table in tables}}
    for table in tables:
        path = join(folder, table.path)
        part, _, name = table.path.partition("/")
        found.add(path, "table", table.length)
        if name not in there[part]:
            found.gaps.append(Gap(path, f"{snapshot.path} refers to it"))
