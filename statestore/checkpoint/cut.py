"""The cut of a checkpoint: what a committed batch needs, so that the query goes on from these files alone.

A file of a cut is immutable once its batch is committed, so it doesn't matter when it is copied. Only a snapshot may be
replaced, by one of the same state: see `Cut.written_ms`. The files made from a cut are written in `write_order`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass

from statestore.checkpoint.files import FileEntry, Files, ListedOnce, join
from statestore.checkpoint.logs import COMMITS, METADATA, OFFSETS, batch_ids, check_whole, read_query_id
from statestore.checkpoint.lost_state import lost_state
from statestore.checkpoint.needs import committed_batch, needs_of, plain_files
from statestore.errors import CutFailed, NotFound, Unreadable
from statestore.whole_numbers import check_count

log = logging.getLogger("statestore.checkpoint")

_REMEDY = (
    "Give --operators N (operators=), the number of stateOperators in the query's progress. It is 0 for "
    "a query without state"
)
_OPERATOR = re.compile(r"state/\d+/_metadata/v2/\d+")


@dataclass(frozen=True, slots=True)
class Cut:
    """The files that a copy of a checkpoint must hold, as paths below it.

    Attributes:
        batch_id: the newest batch in it.
        query: the id of the query.
        lengths: in bytes, of what the batch needs, and of plain files at the top, such as a sink's.
        history: older offsets and commits, which Spark may clean away meanwhile.
        written_ms: when each of the first was written, milliseconds since the epoch. A file that says another time now
            was replaced since, and may need others than the cut has: a snapshot that a second task uploads has other
            tables.
    """

    batch_id: int
    query: str
    lengths: Mapping[str, int]
    history: frozenset[str]
    written_ms: Mapping[str, int]


def cut_of(files: Files, where: str, batch_id: int | None = None, operators: int | None = None) -> Cut:
    """Return what a copy at a committed batch holds.

    Where nothing says how many stateful operators the query has, state may be lost unseen: a warning says so.

    Args:
        where: the checkpoint's address, for messages.
        batch_id: a committed one that is still there; None: the newest.
        operators: how many stateful operators the query has; None: as many as our sink has noted, else not known.

    Raises:
        NotFound: there is no checkpoint.
        InvalidInput: there is no such batch, or none at all; or the checkpoint is not whole yet; or `operators` is not
            a number.
        CutFailed: a file that it needs is missing or damaged. If it was cleaned away while we looked, look again.
    """
    if operators is not None:
        check_count("operators", operators)
    seen = _Seen(files)
    check_whole(seen, where)
    chosen = committed_batch(seen, where, batch_id, "there is nothing to go on from")
    needs = needs_of(seen, chosen, expected=operators)
    wanted = dict.fromkeys([*needs.files, *plain_files(seen)])
    there = {path: entry for path in wanted if (entry := seen.entry(path)) is not None}
    wrong = [(gap.path, gap.reason) for gap in needs.gaps]
    wrong += [(path, "it is not there") for path in wanted if path not in there]
    if wrong:
        path, reason = wrong[0]
        raise CutFailed(f"Batch {chosen} cannot be resumed: {path}: {reason}. Files of this kind: {len(wrong)}")
    try:
        query = read_query_id(seen)
    except (NotFound, Unreadable) as error:
        raise CutFailed(f"Batch {chosen} cannot be resumed: {error}") from error
    history = {
        join(log, str(number)) for log in (OFFSETS, COMMITS) for number in batch_ids(seen, log) if number <= chosen
    }
    for finding in lost_state(seen, needs, operators=operators):
        if finding.severity == "error":
            raise CutFailed(f"Batch {chosen} cannot be resumed, since {finding.message}")
        log.warning("State may be lost in %s, where %s. %s", where, finding.message, _REMEDY)
    lengths = {path: entry.length for path, entry in there.items()}
    written_ms = {path: entry.mtime_ms for path, entry in there.items()}
    return Cut(chosen, query, lengths, frozenset(history - there.keys()), written_ms)


def write_order(path: str) -> tuple[int, str]:
    """Sort key for a checkpoint's files: commits late, and last `metadata`, without which Spark starts no query."""
    return (2 if path == METADATA else 1 if path.startswith(f"{COMMITS}/") else 0), path


def names_its_place(path: str) -> bool:
    """Whether a file of a checkpoint holds the checkpoint's own address: `moved_metadata` changes it."""
    return _OPERATOR.fullmatch(path) is not None


class _Seen(ListedOnce):
    """A checkpoint as it was when each directory was first listed."""

    def entry(self, path: str) -> FileEntry | None:
        folder, _, name = path.rpartition("/")
        entry = self.list(folder).get(name)
        return None if entry is None or entry.is_directory else entry
