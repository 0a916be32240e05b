"""Read every file that the last batches of a checkpoint need, and say what is wrong with it. Pure, on any `Files`.

Compared are each file with the checksums there are, each stream with the mark of its end, each table with the length
that its snapshot says, lineages with commits, and the logs with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from statestore.checkpoint import logs
from statestore.checkpoint.content import check_content
from statestore.checkpoint.files import Files, ListedOnce
from statestore.checkpoint.findings import (
    RESTORE,
    CheckpointFinding,
    Severity,
    by_severity,
    finding_of,
)
from statestore.checkpoint.logs import COMMITS, OFFSETS
from statestore.checkpoint.lost_state import lost_state
from statestore.checkpoint.needs import Need, Needs, committed, needs_of, restart_of
from statestore.checkpoint.repair import with_repairs
from statestore.checkpoint.sources import clocks_of
from statestore.checkpoint.stores import CHECKSUM, Gap
from statestore.defaults import BATCHES
from statestore.errors import NotFound, Unavailable, Unreadable
from statestore.whole_numbers import check_count

_ATTEMPTS = 5
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Inspection:
    """The findings of reading the files.

    Attributes:
        batches: the committed ones that were looked at.
        files: those that are there, by path, with the bytes that were read of each: 0 if it could not be read.
    """

    query_id: str | None
    batches: tuple[int, ...]
    files: Mapping[str, int]
    findings: tuple[CheckpointFinding, ...]


class _Kept(ListedOnce):
    """Files that are read once while it is found out which are needed, and not again to be checked."""

    def __init__(self, files: Files) -> None:
        super().__init__(files)
        self._read: dict[str, bytes] = {}

    def read(self, path: str) -> bytes:
        if path not in self._read:
            self._read[path] = self._files.read(path)
        return self._read[path]

    def take(self, path: str) -> bytes:
        """Read for the last time."""
        return self._read.pop(path) if path in self._read else self._files.read(path)


@dataclass(frozen=True, slots=True)
class _Said:
    """The facts that the caller knows of the query."""

    stateful: bool | None
    operators: int | None


def inspect(
    files: Files,
    batches: int = BATCHES,
    progress: Progress | None = None,
    where: str = "",
    stateful: bool | None = None,
    repairs: bool = True,
    operators: int | None = None,
) -> Inspection:
    """Find out whether Spark would go on from here; read and compare what a restart and the last batches need.

    A missing or damaged file that a restart needs is an error. One that only an older batch needs is a warning.

    A query may run meanwhile. If Spark cleans files away under the reader's eyes, the reader begins again, with the
    batches that are the last then.

    Args:
        files: the checkpoint.
        batches: how many; 1 or more.
        progress: called before each file with how many are done, how many there are, and its path.
        where: the checkpoint's address, for messages.
        stateful: whether the query keeps state; None: not known.
        operators: how many stateful operators the query has; None: as many as our sink has noted, else not known.
        repairs: whether the query's Spark takes an older snapshot for one that it can't load: since 4.1 it does.

    Raises:
        InvalidInput: `batches` or `operators` is not such a number.
        NotFound: there is no checkpoint.
    """
    check_count("batches", batches, 1)
    if operators is not None:
        check_count("operators", operators)
    logs.check_checkpoint(files, where)
    for _ in range(_ATTEMPTS):
        found = _inspect(_settled(files), batches, _Said(stateful, operators), repairs, progress)
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


def _inspect(kept: _Kept, batches: int, said: _Said, repairs: bool, progress: Progress | None) -> Inspection:
    findings: list[CheckpointFinding] = []
    query_id = None
    with suppress(NotFound, Unreadable, Unavailable):  # found again below, as a file that is needed
        query_id = logs.read_query_id(kept)
    chosen = committed(kept)[-batches:]
    after, planned = restart_of(kept)
    restart = needs_of(kept, after, planned, said.operators)
    needs = [restart, *(needs_of(kept, batch, expected=said.operators) for batch in chosen if batch != after)]
    vital = {*restart.files, *(gap.path for gap in restart.gaps)}

    findings += _log_of_batches(kept, needs)
    findings += lost_state(kept, restart, said.stateful, said.operators)
    findings += _no_clock(kept, after + planned, restart)
    needed: dict[str, Need] = {}
    users: dict[str, tuple[int, ...]] = {}
    for need in needs:
        for path in dict.fromkeys([*need.files, *(gap.path for gap in need.gaps)]):
            users[path] = (*users.get(path, ()), need.batch + need.planned)
        needed = need.files | needed
    gaps = {gap.path: gap for need in reversed(needs) for gap in need.gaps}

    def found(gap: Gap) -> CheckpointFinding:
        severity: Severity = "error" if gap.path in vital else "warning"
        return finding_of(gap, severity, users[gap.path], kept, needs)

    findings += [found(gap) for gap in gaps.values()]
    findings += _lineage_against_commits(kept, needs)
    findings += [
        CheckpointFinding("warning", "note", note, "")
        for note in dict.fromkeys(n for need in needs for n in need.notes)
    ]
    sizes = {path: 0 for path, gap in gaps.items() if gap.kind != "missing" and path in needed}
    wanted = [file for path, file in needed.items() if path not in gaps]
    for done, file in enumerate(wanted):
        if progress is not None:
            progress(done, len(wanted), file.path)
        try:
            data = kept.take(file.path)
            checksum = file.path + CHECKSUM
            check_content(file, data, kept.read(checksum) if checksum in needed else None)
            sizes[file.path] = len(data)
        except NotFound:
            findings.append(found(Gap(file.path, "the batch needs it")))
        except (Unreadable, Unavailable) as error:
            sizes[file.path] = 0
            findings.append(found(Gap.of(file.path, error)))
    if progress is not None:
        progress(len(wanted), len(wanted), "")
    if repairs:
        findings = with_repairs(kept, restart, findings)
    findings.sort(key=by_severity)
    return Inspection(query_id, chosen, sizes, tuple(findings))


def _log_of_batches(files: Files, needs: Sequence[Needs]) -> Iterable[CheckpointFinding]:
    """Name the batches that the two logs skip. Spark asks for none of them; another restore may."""
    plans, commits = tuple(logs.batch_ids(files, OFFSETS)), tuple(logs.batch_ids(files, COMMITS))
    if not commits:
        yield CheckpointFinding(
            "warning",
            "log",
            f"no batch is committed yet; {len(plans)} {'is' if len(plans) == 1 else 'are'} planned",
            "Nothing is wrong with a query that has only begun. Otherwise its commits are lost, and Spark runs the "
            "last batch again.",
            COMMITS,
        )
        return
    named = {path for need in needs for path in (*need.files, *(gap.path for gap in need.gaps))}
    for log, ids, end in ((OFFSETS, plans, plans[-1:]), (COMMITS, commits, (needs[0].batch + 1,))):
        for batch in sorted(set(range(ids[0], end[0])) - set(ids)) if ids else ():
            path = f"{log}/{batch}"
            if path not in named:
                message = f"{path} is not there, though there are batches before and after it"
                remedy = f"Spark goes on after batch {needs[0].batch} without it, but not after {batch} any more."
                yield CheckpointFinding("warning", "log", message, remedy, path, (batch,))


def _no_clock(files: Files, plan: int, restart: Needs) -> Iterable[CheckpointFinding]:
    """A source that counts has noted nothing: right for any but Spark's rate source, and nothing tells which it is."""
    with suppress(NotFound, Unreadable, Unavailable):
        for path in clocks_of(logs.read_offsets(files, plan)):
            if path not in restart.files:
                message = f"{path} is not there. If the source is Spark's rate source, Spark can't go on"
                yield CheckpointFinding(
                    "unknown", "note", message, "Any other source that counts does not need it.", path
                )


def _lineage_against_commits(files: Files, needs: Sequence[Needs]) -> Iterable[CheckpointFinding]:
    """In checkpoint format 2 each state is built on the one that the commit before it names."""
    for need in needs:
        try:
            before = logs.read_commit(files, need.batch - 1).uids
        except (NotFound, Unreadable, Unavailable):
            continue
        named = {uid for partitions in before.values() for stores in partitions for uid in stores}
        for store in need.stores:
            for file in store.chain.files:
                if file.version == need.batch and file.uid and named and file.uid not in named:
                    yield CheckpointFinding(
                        "warning",
                        "damaged",
                        f"the lineage of {store.folder}, version {need.batch + 1}, has {file.path}, but the commit of "
                        f"batch {need.batch - 1} names another state of version {need.batch}",
                        RESTORE,
                        file.path,
                        (need.batch,),
                    )
