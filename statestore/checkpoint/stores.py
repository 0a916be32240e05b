"""The files of one state store, and which of them make up one version of its state.

    N.delta, N.changelog    what batch N - 1 changed            N_ID.changelog    checkpoint format 2
    N.snapshot, N.zip       the whole state after batch N - 1   N_ID.zip
    NAME.crc                Spark's checksum of NAME, if it keeps them

The state after batch B has version B + 1. It is the newest snapshot up to there and each change after it. In format 2
several attempts of a batch leave files of one version; the commit names the id that counts, and a changelog's lineage
the ids before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import google_crc32c

from eos.json_reader import read_json
from statestore.checkpoint.changes import Ancestor, read_lineage
from statestore.checkpoint.files import Files, join
from statestore.errors import Damaged, NotFound, StateStoreError, Unavailable, UnknownVersion, Unreadable

CHECKSUM = ".crc"
_NAME = re.compile(r"(?P<version>\d+)(?:_(?P<uid>[^.]+))?\.(?P<kind>delta|snapshot|changelog|zip)")
SNAPSHOTS, CHANGES = ("snapshot", "zip"), ("delta", "changelog")
GapKind = Literal["missing", "damaged", "version", "unreadable"]


@dataclass(frozen=True, slots=True)
class StoreFile:
    """A file of a store.

    Attributes:
        path: relative to the checkpoint.
        uid: the unique id of the state in it; empty in checkpoint format 1.
        kind: delta, snapshot, changelog or zip.
        length: bytes.
        mtime_ms: milliseconds since the epoch.
        has_checksum: whether NAME.crc is beside it.
    """

    path: str
    version: int
    uid: str
    kind: str
    length: int
    mtime_ms: int
    has_checksum: bool

    @property
    def is_snapshot(self) -> bool:
        """Whether it holds a whole state, not changes."""
        return self.kind in SNAPSHOTS


@dataclass(frozen=True, slots=True)
class Gap:
    """A file that a version needs and that is not there, or that can't be read for the next ones to be known.

    Attributes:
        path: of the file; for a file whose name can't be known, its name with "*".
        reason: one sentence.
        kind: "missing"; "damaged": it is there, but can't be read; "version": it is there, but of a version that isn't
            known here; "unreadable": it is there, but nobody gives it now. With the last two nothing is known to be
            wrong with it.
    """

    path: str
    reason: str
    kind: GapKind = "missing"

    @classmethod
    def of(cls, path: str, error: StateStoreError, what: str = "") -> Gap:
        """The words of an error about a file that can't be read. `what` is put before them."""
        kind: GapKind = "damaged"
        if isinstance(error, NotFound):
            kind = "missing"
        elif isinstance(error, UnknownVersion):
            kind = "version"
        elif isinstance(error, Unavailable):
            kind = "unreadable"
        return cls(path, f"{what}{error}", kind)


@dataclass(frozen=True, slots=True)
class Chain:
    """The files of one version of a store's state.

    Attributes:
        version: of the state.
        files: a snapshot first, if there is one, then the changes in order.
        gaps: what is missing; empty if the version can be loaded.
    """

    version: int
    files: tuple[StoreFile, ...]
    gaps: tuple[Gap, ...]

    @property
    def base(self) -> StoreFile | None:
        """The snapshot that the changes are applied to; None if they begin with an empty store."""
        return next((file for file in self.files if file.is_snapshot), None)


def store_files(files: Files, folder: str) -> tuple[StoreFile, ...]:
    """Return the files of a store with a version, oldest first, snapshots after the changes of the same version."""
    entries = files.list(folder)
    found = []
    for name, entry in entries.items():
        match = _NAME.fullmatch(name)
        if match and not entry.is_directory:
            found.append(
                StoreFile(
                    join(folder, name),
                    int(match["version"]),
                    match["uid"] or "",
                    match["kind"],
                    entry.length,
                    entry.mtime_ms,
                    name + CHECKSUM in entries,
                )
            )
    return tuple(sorted(found, key=lambda file: (file.version, file.is_snapshot, file.uid)))


def chain(folder: str, have: Sequence[StoreFile], version: int) -> Chain:
    """Return what makes up a version in checkpoint format 1."""
    snapshots = [file for file in have if file.is_snapshot and file.version <= version and not file.uid]
    changes = {file.version: file for file in have if not file.is_snapshot and not file.uid}
    base = snapshots[-1:]
    start = base[0].version if base else 0
    wanted = range(start + 1, version + 1)
    gaps = [
        Gap(join(folder, f"{number}.{_kind(have)}"), _absent(number, version))
        for number in wanted
        if number not in changes
    ]
    if not base and not changes:
        gaps = [Gap(join(folder, f"{version}.*"), f"the store has no file of version {version} or before")]
    return Chain(version, (*base, *(changes[number] for number in wanted if number in changes)), tuple(gaps))


def whole_versions(have: Sequence[StoreFile]) -> tuple[int, ...]:
    """Return the versions that can be loaded in checkpoint format 1, lowest first: those whose `chain` has no gaps."""
    snapshots = {file.version for file in have if file.is_snapshot and not file.uid}
    changes = {file.version for file in have if not file.is_snapshot and not file.uid}
    whole: list[int] = []
    for version in sorted(snapshots | changes):
        if version in snapshots or version == 1 or whole[-1:] == [version - 1]:
            whole.append(version)
    return tuple(whole)


def chain_of(
    files: Files, folder: str, have: Sequence[StoreFile], version: int, uid: str, from_empty: bool = False
) -> Chain:
    """Return what makes up the version with this unique id, in checkpoint format 2.

    Reads one changelog, and more where the snapshot that its lineage begins with isn't there.

    Args:
        from_empty: without any snapshot the lineage is lengthened down to version 1, too. Spark does so once it has
            failed over a snapshot, but not where it finds none.
    """
    zips = {(file.version, file.uid): file for file in have if file.is_snapshot}
    changes = {(file.version, file.uid): file for file in have if not file.is_snapshot}
    if (version, uid) in zips:
        return Chain(version, (zips[version, uid],), ())
    last = changes.get((version, uid))
    if last is None:
        path = join(folder, f"{version}_{uid}.{_kind(have) if have else '*'}")
        return Chain(version, (), (Gap(path, f"the commit names this state of version {version}; it has no file"),))
    try:
        lineage = {*read_lineage(files.read(last.path)), Ancestor(version, uid)}
    except (Unreadable, NotFound, Unavailable) as error:
        return Chain(version, (last,), (Gap.of(last.path, error, "its lineage can't be read: "),))
    steps = _back_to_a_snapshot(files, sorted(lineage, key=lambda step: step.version), zips, changes, from_empty)
    bases = [index for index, step in enumerate(steps) if (step.version, step.uid) in zips]
    gaps = []
    if bases:
        base = [zips[steps[bases[-1]].version, steps[bases[-1]].uid]]
        steps = steps[bases[-1] + 1 :]
        expected = base[0].version + 1
    else:
        base, expected = [], 1
        if steps[0].version > 1:
            first = steps[0]
            gaps.append(
                Gap(
                    join(folder, f"{first.version}_{first.uid}.zip"),
                    f"the lineage of version {version} begins here, and there is no such snapshot",
                )
            )
            expected = first.version
    if [step.version for step in steps] != list(range(expected, version + 1)):
        numbers = ", ".join(str(step.version) for step in steps)
        gaps.append(
            Gap(last.path, f"its lineage has the versions {numbers}, not all of {expected} to {version}", "damaged")
        )
    found = []
    for step in steps:
        file = changes.get((step.version, step.uid))
        if file is None:
            gaps.append(Gap(join(folder, f"{step.version}_{step.uid}.changelog"), _absent(step.version, version)))
        else:
            found.append(file)
    return Chain(version, (*base, *found), tuple(gaps))


def _back_to_a_snapshot(
    files: Files,
    steps: list[Ancestor],
    zips: Mapping[tuple[int, str], StoreFile],
    changes: Mapping[tuple[int, str], StoreFile],
    from_empty: bool,
) -> list[Ancestor]:
    """Lengthen a lineage that begins at a snapshot that isn't there, by that of the changelog of the same version.

    Spark does so since 4.3 (RocksDB.getFullLineage). Without any snapshot the lineage is returned as it is, unless
    it may begin with an empty store and does.
    """
    longer = steps
    while longer[0].version > 1 and not any((step.version, step.uid) in zips for step in longer):
        first = changes.get((longer[0].version, longer[0].uid))
        try:
            before = read_lineage(files.read(first.path)) if first else ()
        except (Unreadable, NotFound, Unavailable):
            return steps
        before = tuple(step for step in before if step.version < longer[0].version)
        if not before:
            return steps
        longer = [*sorted(before, key=lambda step: step.version), *longer]
    ends = any((step.version, step.uid) in zips for step in longer) or (from_empty and longer[0].version == 1)
    return longer if ends else steps


def check_checksum(path: str, data: bytes, checksum: bytes) -> None:
    """Compare a file with what its `.crc` says.

    Raises:
        Damaged: they differ, or the `.crc` can't be read.
        UnknownVersion: it is made by an algorithm that isn't known here.
    """
    try:
        said = read_json(checksum)
        algorithm, value, length = str(said["algorithm"]), int(said["value"]) & 0xFFFFFFFF, int(said["mainFileSize"])
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(f"{path}{CHECKSUM} can't be read: {error}") from error
    if algorithm != "CRC32C":
        raise UnknownVersion(f"{path}{CHECKSUM} has the algorithm {algorithm}; CRC32C is known here")
    if length != len(data):
        raise Damaged(f"it has {len(data)} bytes, but its {CHECKSUM} says {length}")
    actual = int(google_crc32c.value(data))
    if actual != value:
        raise Damaged(f"its CRC32C is {actual:08x}, but its {CHECKSUM} says {value:08x}")


def _kind(have: Sequence[StoreFile]) -> str:
    """The files that the provider writes for each batch: without changelogs RocksDB writes a zip."""
    kinds = {file.kind for file in have}
    return next((kind for kind in ("changelog", "zip") if kind in kinds), "delta")


def _absent(version: int, wanted: int) -> str:
    return f"the changes of version {version} are not there, and version {wanted} needs them"
