"""Spark's repair of a snapshot that it can't load: it takes the one before, and the changes since.

It does so since 4.1 (AutoSnapshotLoader), unless spark.sql.streaming.stateStore.autoSnapshotRepair.enabled is false.
The next snapshot before is tried when one can't be loaded, down to an empty store; a change that is missing or damaged
ends the attempt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from statestore.checkpoint.content import check_content
from statestore.checkpoint.files import Files, join
from statestore.checkpoint.findings import CheckpointFinding
from statestore.checkpoint.needs import Need, Needs, StoreNeeds
from statestore.checkpoint.rocksdb import read_snapshot
from statestore.checkpoint.stores import CHECKSUM, Chain, StoreFile
from statestore.errors import NotFound, Unavailable, Unreadable

# spark.sql.streaming.stateStore.autoSnapshotRepair.maxChangeFileReplay
_MOST_CHANGES = 500


def with_repairs(files: Files, restart: Needs, findings: Sequence[CheckpointFinding]) -> list[CheckpointFinding]:
    """Return the findings, with warnings for the errors that Spark gets over.

    Args:
        restart: what a start needs.
    """
    bad = {finding.file for finding in findings if finding.severity == "error" and finding.kind in _CANT_LOAD}
    remedies: dict[str, str] = {}
    for store in restart.stores:
        base = store.chain.base
        parts = (base.path, base.path + CHECKSUM, *store.tables) if base else ()
        instead = _instead(files, store) if bad.intersection(parts) else None
        if base and instead:
            begin = instead.base.path if instead.base else "an empty store"
            remedies |= dict.fromkeys(
                parts,
                f"Spark goes on without it, from {begin} and the changes after it, and writes another snapshot. Only "
                "with spark.sql.streaming.stateStore.autoSnapshotRepair.enabled=false it can't. Remove "
                f"{base.path} then.",
            )
    return [
        replace(finding, severity="warning", remedy=remedies[finding.file])
        if finding.file in remedies and finding.kind in _CANT_LOAD
        else finding
        for finding in findings
    ]


_CANT_LOAD = ("missing", "damaged")


def _instead(files: Files, store: StoreNeeds) -> Chain | None:
    """The files from which Spark builds the state when it can't load the snapshot. None if it can't build it."""
    tried: list[str] = []
    chain = store.chain
    while chain.base:
        tried.append(chain.base.path)
        chain = store.without(files, *tried)
        begin = chain.base.version if chain.base else 0
        if chain.gaps or chain.version - begin > _MOST_CHANGES:
            return None
        if chain.base is None or _whole(files, store.folder, chain.base):
            changes = [file for file in chain.files if not file.is_snapshot]
            return chain if all(_whole(files, store.folder, file) for file in changes) else None
    return None


def _whole(files: Files, folder: str, file: StoreFile) -> bool:
    """Whether a file can be loaded, with the tables that belong to it."""
    try:
        data = files.read(file.path)
        checksum = files.read(file.path + CHECKSUM) if file.has_checksum else None
        check_content(Need(file.path, file.kind), data, checksum)
        for table in read_snapshot(data).tables if file.kind == "zip" else ():
            path = join(folder, table.path)
            check_content(Need(path, "table", table.length), files.read(path), None)
    except (Unreadable, NotFound, Unavailable):
        return False
    return True
