"""The possible faults of a checkpoint, in words: the fault, and the remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from statestore.checkpoint.files import Files
from statestore.checkpoint.logs import COMMITS, METADATA, OFFSETS, is_begun
from statestore.checkpoint.needs import Needs
from statestore.checkpoint.stores import SNAPSHOTS, Gap, GapKind

Severity = Literal["error", "unknown", "warning"]


@dataclass(frozen=True, slots=True)
class CheckpointFinding:
    """One thing that is not as it should be.

    Attributes:
        severity: "error": Spark can't go on from here, or would go on wrongly; "unknown": the checkpoint doesn't say
            whether it can; "warning": it can, but look at it.
        kind: missing, damaged, version (an unknown one), unreadable, log, replica, or note.
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


def by_severity(finding: CheckpointFinding) -> int:
    """Order findings: errors first, then what is not known."""
    return get_args(Severity).index(finding.severity)


WAIT = (
    "See whether all bookies run, start those that don't, and verify again. If all do, its entries are lost: restore."
)
RESTORE = (
    "Put the file back from a copy of the checkpoint, or restore a savepoint. Without either, a batch from before can "
    "be gone back to (remove offsets and commits after it), if the source still has the rows and the sink may see them "
    "again."
)


_IN_WORDS: Mapping[GapKind, str] = {
    "missing": "is not there",
    "damaged": "is damaged",
    "version": "is of an unknown version",
    "unreadable": "can't be read",
}


def finding_of(
    gap: Gap, severity: Severity, batches: tuple[int, ...], files: Files, needs: Sequence[Needs]
) -> CheckpointFinding:
    """Say what is wrong with a file, and what to do.

    Args:
        gap: the file.
        severity: what it is if something is wrong for sure. Where a version is unknown, it isn't known whether Spark
            goes on.
        batches: those that need the file.
        files: the checkpoint.
        needs: of a start, then those of older batches.
    """
    if gap.kind == "version" and severity == "error":
        severity = "unknown"
    message = f"{gap.path} {_IN_WORDS[gap.kind]}: {gap.reason}"
    return CheckpointFinding(severity, gap.kind, message, _remedy(gap, files, needs), gap.path, batches)


def _remedy(gap: Gap, files: Files, needs: Sequence[Needs]) -> str:
    if gap.kind == "unreadable":
        return WAIT
    if gap.kind == "version":
        return (
            "Leave the file as it is. Only the Spark that wrote it, or a newer one, goes on from it. Verify with a "
            "statestore that knows this version."
        )
    if gap.kind == "damaged":
        return _remedy_of_damage(gap.path, files, needs)
    if gap.path == METADATA:
        return 'Put it back: {"id":"…"} with the query\'s id, which the log of its last run names.'
    return RESTORE


def _remedy_of_damage(path: str, files: Files, needs: Sequence[Needs]) -> str:
    if path == METADATA and is_begun(files):
        return (
            "If none is at work here, delete the folder, and make it again: what is in it may be half written, "
            "whatever its logs say."
        )
    folder, _, name = path.rpartition("/")
    restart = needs[0]  # of a start. The others are of batches before
    if folder == OFFSETS and int(name) > restart.batch:
        return "Remove it, if the sink may see other rows in this batch. It is not committed, and Spark plans it again."
    if folder == COMMITS and int(name) == restart.batch and not restart.planned:
        return f"Remove it, if the sink may see batch {name} again. Spark then runs it again."
    for need in needs:
        for store in need.stores:
            if any(file.path == path and file.kind in SNAPSHOTS for file in store.chain.files):
                other = store.without(files, path)
                if not other.gaps:
                    base = next((file.path for file in other.files if file.is_snapshot), "nothing")
                    return f"Remove it. Its state can be built without it, from {base} and the changes after it."
    return RESTORE
