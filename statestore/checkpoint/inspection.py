"""Read every file that the last batches of a checkpoint need, and say what is wrong with it. Pure, on any `Files`.

Compared are each file with the checksums there are, each stream with the mark of its end, each table with the length
that its snapshot says, lineages with commits, and the logs with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from statestore.checkpoint import logs
from statestore.checkpoint.changes import read_changes
from statestore.checkpoint.compression import UnknownCompression
from statestore.checkpoint.files import Entry, Files
from statestore.checkpoint.logs import COMMITS, METADATA, OFFSETS
from statestore.checkpoint.needs import Need, Needs, committed, needs_of
from statestore.checkpoint.rocksdb import check_table, read_snapshot
from statestore.checkpoint.stores import CHANGES, CHECKSUM, SNAPSHOTS, Gap, check_checksum
from statestore.errors import Damaged, InvalidInput, NotFound, Unavailable

BATCHES = 2  # Spark restarts from the last one; the one before is what it has if a driver dies in the middle
_ATTEMPTS = 5
Severity = Literal["error", "warning"]
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be.

    Attributes:
        severity: "error": Spark can't restart from it, or would restart wrongly; "warning": it can, but look at it.
        kind: missing, damaged, unreadable, log, replica, or note.
        message: what is wrong and what was expected, in a sentence.
        remedy: what to do.
        file: relative to the checkpoint; None if it is about no single file.
        batches: the batches that need the file.
        ledger, entry, bookie: where in BookKeeper; None elsewhere.
    """

    severity: Severity
    kind: str
    message: str
    remedy: str
    file: str | None = None
    batches: tuple[int, ...] = ()
    ledger: int | None = None
    entry: int | None = None
    bookie: str | None = None


@dataclass(frozen=True, slots=True)
class Inspection:
    """What reading the files found.

    Attributes:
        batches: the committed ones that were looked at.
        files: those that are there, by path, with the bytes that were read of each: 0 if it could not be read.
    """

    query_id: str | None
    batches: tuple[int, ...]
    files: Mapping[str, int]
    findings: tuple[Finding, ...]


class _Kept:
    """Files that are read once while it is found out which are needed, and not again to be checked."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._read: dict[str, bytes] = {}
        self._listed: dict[str, Mapping[str, Entry]] = {}

    def list(self, path: str) -> Mapping[str, Entry]:
        if path not in self._listed:
            self._listed[path] = self._files.list(path)
        return self._listed[path]

    def read(self, path: str) -> bytes:
        if path not in self._read:
            self._read[path] = self._files.read(path)
        return self._read[path]

    def take(self, path: str) -> bytes:
        """Read for the last time."""
        return self._read.pop(path) if path in self._read else self._files.read(path)


def inspect(files: Files, batches: int = BATCHES, progress: Progress | None = None, where: str = "") -> Inspection:
    """Read and compare what the last committed batches need.

    A query may run meanwhile. What it cleans away under the reader's eyes makes the reader begin again, with the
    batches that are the last then.

    Args:
        files: the checkpoint.
        batches: how many; 1 or more.
        progress: called before each file with how many are done, how many there are, and its path.
        where: the checkpoint's address, for messages.

    Raises:
        InvalidInput: `batches` is not positive.
        NotFound: there is no checkpoint.
    """
    if batches < 1:
        raise InvalidInput(f"batches is {batches}; 1 or more were expected")
    logs.check_checkpoint(files, where)
    for _ in range(_ATTEMPTS):
        found = _inspect(_settled(files), batches, progress)
        gone = any(finding.kind == "missing" for finding in found.findings)
        if not gone or committed(files)[-1:] == found.batches[-1:]:
            break
    return found


def _settled(files: Files) -> _Kept:
    """List the two logs as they were at one moment: Spark plans a batch when the one before is committed."""
    for _ in range(_ATTEMPTS):
        kept = _Kept(files)
        before = kept.list(COMMITS).keys()
        kept.list(OFFSETS)
        if files.list(COMMITS).keys() == before:
            break
    return kept


def _inspect(kept: _Kept, batches: int, progress: Progress | None) -> Inspection:
    findings: list[Finding] = []
    query_id = None
    try:
        query_id = logs.read_query_id(kept)
    except NotFound:
        findings.append(_missing(Gap(METADATA, "it holds the query's id"), ()))
    except (Damaged, Unavailable):
        pass  # found again below, as a file that the batches need
    chosen = committed(kept)[-batches:]
    findings += _continuity(kept, chosen)
    needs = [needs_of(kept, batch) for batch in chosen]
    planned = _planned(kept, chosen)
    needed: dict[str, Need] = {}
    users: dict[str, list[int]] = {}
    for need in (*needs, *planned):
        for path, file in need.files.items():
            needed[path] = file
            users.setdefault(path, []).append(need.batch)
        for gap in need.gaps:
            users.setdefault(gap.path, [])
            if need.batch not in users[gap.path]:
                users[gap.path].append(need.batch)
    gaps = {gap.path: gap for need in needs for gap in need.gaps}
    findings += [_gap(kept, gap, tuple(users[path]), needs) for path, gap in gaps.items()]
    findings += _lineage_against_commits(kept, needs)
    findings += [
        Finding("warning", "note", note, "") for note in dict.fromkeys(n for need in needs for n in need.notes)
    ]
    sizes = {path: 0 for path, gap in gaps.items() if gap.damaged and path in needed}
    wanted = [file for path, file in needed.items() if path not in gaps]
    for done, file in enumerate(wanted):
        if progress is not None:
            progress(done, len(wanted), file.path)
        try:
            sizes[file.path] = 0
            sizes[file.path] = _check(kept, file, needed)
        except NotFound:
            del sizes[file.path]
            findings.append(_missing(Gap(file.path, "the batch needs it"), tuple(users[file.path])))
        except UnknownCompression as error:
            findings.append(
                Finding("warning", "note", f"{file.path} was read but not looked into: {error}", "", file.path)
            )
        except Unavailable as error:
            message = f"{file.path} can't be read: {error}"
            findings.append(Finding("error", "unreadable", message, _WAIT, file.path, tuple(users[file.path])))
        except Damaged as error:
            findings.append(_damaged(kept, file.path, str(error), tuple(users[file.path]), needs))
    if progress is not None:
        progress(len(wanted), len(wanted), "")
    findings.sort(key=lambda finding: finding.severity != "error")
    return Inspection(query_id, chosen, sizes, tuple(findings))


def _check(files: _Kept, file: Need, needed: Mapping[str, Need]) -> int:
    """Read a file and compare it with all that is known of it; return its length."""
    data = files.take(file.path)
    checksum = file.path + CHECKSUM
    if checksum in needed:
        check_checksum(file.path, data, files.read(checksum))
    if file.length is not None and len(data) != file.length:
        raise Damaged(f"it has {len(data)} bytes; the snapshot that refers to it says {file.length}")
    if file.kind in CHANGES or file.kind == "snapshot":
        read_changes(data)
    elif file.kind == "zip":
        read_snapshot(data)
    elif file.kind == "table":
        check_table(file.path, data)
    elif file.kind in ("source", "schema") and not data:
        raise Damaged("it is empty")
    else:
        _check_log(file, data)
    return len(data)


def _check_log(file: Need, data: bytes) -> None:
    number = file.path.rpartition("/")[2]
    one = _One(file.path, data)
    if file.kind == "metadata":
        logs.read_query_id(one)
    elif file.kind == "offsets":
        logs.read_offsets(one, int(number))
    elif file.kind == "commits":
        logs.read_commit(one, int(number))


@dataclass(frozen=True, slots=True)
class _One:
    """One file that was read already."""

    path: str
    data: bytes

    def list(self, path: str) -> Mapping[str, Entry]:
        return {}

    def read(self, path: str) -> bytes:
        return self.data


def _planned(files: Files, chosen: Sequence[int]) -> list[Needs]:
    """A batch that was planned and not committed: a restart begins with its offsets."""
    last = chosen[-1] if chosen else -1
    if last + 1 not in logs.batch_ids(files, OFFSETS):
        return []
    needs = Needs(last + 1)
    needs.add(f"{OFFSETS}/{last + 1}", "offsets")
    return [needs]


def _continuity(files: Files, chosen: Sequence[int]) -> Iterable[Finding]:
    """Compare the two logs with each other, and look for batches that they skip."""
    plans, commits = tuple(logs.batch_ids(files, OFFSETS)), tuple(logs.batch_ids(files, COMMITS))
    if not commits:
        yield Finding(
            "warning",
            "log",
            f"no batch is committed yet; {len(plans)} {'is' if len(plans) == 1 else 'are'} planned",
            "Nothing is wrong with a query that has only begun. Otherwise its commits are lost: restore a savepoint.",
            COMMITS,
        )
        return
    for log, ids in ((OFFSETS, plans), (COMMITS, commits)):
        for batch in sorted(set(range(ids[0], ids[-1])) - set(ids)) if ids else ():
            recent = batch >= chosen[0] - 1
            if log == OFFSETS and batch in {*chosen, *(number - 1 for number in chosen)}:
                continue  # named as a file that a batch needs
            yield Finding(
                "error" if recent else "warning",
                "log",
                f"{log}/{batch} is not there, though batches before and after it are",
                f"Put {log}/{batch} back from a copy or a savepoint; Spark goes on after {commits[-1]} without it."
                if log == COMMITS
                else f"Put {log}/{batch} back from a copy or a savepoint.",
                f"{log}/{batch}",
                (batch,),
            )
    for batch in range(commits[-1] + 1, plans[-1] if plans else 0):
        yield Finding(
            "error",
            "log",
            f"{COMMITS}/{batch} is not there, though batch {plans[-1]} is planned: Spark plans a batch only after the "
            "one before is committed, and a restart would skip this one",
            f"Put {COMMITS}/{batch} back from a copy or a savepoint; or, if its results may be written again, remove "
            f"the offsets after {batch}, and Spark runs it again.",
            f"{COMMITS}/{batch}",
            (batch,),
        )


def _lineage_against_commits(files: Files, needs: Sequence[Needs]) -> Iterable[Finding]:
    """In checkpoint format 2 each state is built on the one that the commit before it names."""
    for need in needs:
        try:
            before = logs.read_commit(files, need.batch - 1).uids
        except (NotFound, Damaged, Unavailable):
            continue
        named = {uid for partitions in before.values() for stores in partitions for uid in stores}
        for store in need.stores:
            for file in store.chain.files:
                if file.version == need.batch and file.uid and named and file.uid not in named:
                    yield Finding(
                        "error",
                        "damaged",
                        f"the lineage of {store.folder}, version {need.batch + 1}, has {file.path}, but the commit of "
                        f"batch {need.batch - 1} names another state of version {need.batch}",
                        _RESTORE,
                        file.path,
                        (need.batch,),
                    )


_WAIT = (
    "See whether all bookies run, start those that don't, and verify again. If all do, its entries are lost: restore."
)
_RESTORE = (
    "Put the file back from a copy of the checkpoint, or restore a savepoint. Without either, a batch from before can "
    "be gone back to (remove offsets and commits after it), if the source still has the rows and the sink may see them "
    "again."
)


def _gap(files: Files, gap: Gap, batches: tuple[int, ...], needs: Sequence[Needs]) -> Finding:
    if gap.damaged:
        return _damaged(files, gap.path, gap.reason, batches, needs)
    return _missing(gap, batches)


def _missing(gap: Gap, batches: tuple[int, ...]) -> Finding:
    remedy = _RESTORE
    if gap.path == METADATA:
        remedy = 'Put it back: {"id":"…"} with the query\'s id, which the log of its last run names.'
    return Finding("error", "missing", f"{gap.path} is not there: {gap.reason}", remedy, gap.path, batches)


def _damaged(files: Files, path: str, reason: str, batches: tuple[int, ...], needs: Sequence[Needs]) -> Finding:
    return Finding(
        "error", "damaged", f"{path} is damaged: {reason}", _remedy(files, path, batches, needs), path, batches
    )


def _remedy(files: Files, path: str, batches: tuple[int, ...], needs: Sequence[Needs]) -> str:
    folder, _, name = path.rpartition("/")
    if folder == OFFSETS and needs and int(name) > needs[-1].batch:
        return "Remove it, if the sink may see other rows in this batch: it is not committed, and Spark plans it again."
    if folder == COMMITS and needs and int(name) == needs[-1].batch:
        return f"Remove it, if the sink may see batch {name} again: Spark then runs it again."
    for need in needs:
        for store in need.stores:
            if any(file.path == path and file.kind in SNAPSHOTS for file in store.chain.files):
                other = store.without(files, path)
                if not other.gaps:
                    base = next((file.path for file in other.files if file.is_snapshot), "nothing")
                    return f"Remove it: its state can be built without it, from {base} and the changes after it."
    return _RESTORE
