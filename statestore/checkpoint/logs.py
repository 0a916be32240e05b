"""What Spark notes of each micro-batch: where it begins (`offsets`, before it runs) and that it is done (`commits`).

metadata      {"id": …}                         the query's id
offsets/N     v1 or v2; JSON: watermark, time, configuration; one line for each source: its offset, or "-"
commits/N     v1; JSON: watermark of the next batch        v2: also the unique ids of the state it wrote
sources/S/N   what a source notes: files, a timestamp; N.compact holds all before it too
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from statestore.checkpoint.files import FileEntry, Files, join
from statestore.errors import Damaged, InvalidInput, NotFound

METADATA = "metadata"
OFFSETS, COMMITS, SOURCES = "offsets", "commits", "sources"
NOT_WHOLE = "so it is until a copy, restore, rescaling or bootstrap has ended, and where one was killed"
"""What an empty `metadata` says: Spark starts no query on it."""


@dataclass(frozen=True, slots=True)
class OffsetsLogEntry:
    """Where a batch begins.

    Attributes:
        watermark_ms: the event-time watermark it runs with; 0 if the query has none.
        time_ms: when it was planned.
        conf: the settings of Spark's that a query keeps for its life.
        sources: the offset of each source up to which the batch reads, as JSON; None if it has none yet.
        folders: where each source keeps a log of its own, if it does, relative to the checkpoint.
    """

    version: int
    watermark_ms: int
    time_ms: int
    conf: Mapping[str, str]
    sources: tuple[str | None, ...]
    folders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommitLogEntry:
    """That a batch is done.

    Attributes:
        next_watermark_ms: the watermark of the next batch.
        uids: checkpoint format 2: operator to, for each partition, the unique ids of its stores' states.
    """

    version: int
    next_watermark_ms: int
    uids: Mapping[int, tuple[tuple[str, ...], ...]]


def is_checkpoint(names: Iterable[str]) -> bool:
    """Whether a folder with these names is a query's checkpoint, or what is left of one."""
    return not {OFFSETS, COMMITS}.isdisjoint(names)


def is_begun(files: Files) -> bool:
    """Whether a checkpoint was begun by these tools and is not whole: its `metadata` is there, and empty."""
    entry = files.list("").get(METADATA)
    return entry is not None and not entry.is_directory and entry.length == 0


def check_whole(files: Files, where: str) -> None:
    """Refuse what is no checkpoint, or one that is not whole yet.

    Raises:
        NotFound: there is nothing, or no query's checkpoint.
        InvalidInput: one was begun.
    """
    check_checkpoint(files, where)
    if is_begun(files):
        raise InvalidInput(f"{where} is no whole checkpoint: its {METADATA} is empty, and {NOT_WHOLE}")


def check_checkpoint(files: Files, where: str = "") -> None:
    """Say what is there instead, if it is no checkpoint.

    Args:
        where: its address.

    Raises:
        NotFound: there is nothing, or no query's checkpoint.
    """
    names = files.list("")
    if is_checkpoint(names):
        return
    with suppress(NotFound, Damaged):
        read_query_id(files)  # of a query that has only begun
        return
    here = f"There is no checkpoint at {where}" if where else "There is no checkpoint"
    if is_begun(files):
        raise NotFound(f"{here}, but one was begun: its {METADATA} is empty, and {NOT_WHOLE}")
    if not names:
        raise NotFound(f"{here}: there is nothing, or an empty folder")
    below = [name for name, entry in names.items() if entry.is_directory and is_checkpoint(files.list(name))]
    raise NotFound(
        f"{here}: neither {OFFSETS} nor {COMMITS} is there, but {', '.join(sorted(names)[:5])}"
        f"{', …' if len(names) > 5 else ''}. "
        + (f"{join(where, below[0])} is one" if below else "Name the folder that the query has as checkpointLocation")
    )


def read_query_id(files: Files) -> str:
    """Return the query's id, which stays over restarts.

    Raises:
        NotFound: there is no `metadata`.
        Damaged: it can't be read, or the checkpoint is not whole yet.
    """
    data = files.read(METADATA)
    if not data:
        raise Damaged(f"{METADATA} is empty, and {NOT_WHOLE}")
    try:
        return str(json.loads(data)["id"])
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(f"{METADATA} is not JSON with the query's id: {error}") from error


def batch_ids(files: Files, log: str) -> Mapping[int, FileEntry]:
    """Return the batches that a log has a file for, by id, lowest first."""
    entries = files.list(log)
    ids = sorted(int(name) for name, entry in entries.items() if name.isdecimal() and not entry.is_directory)
    return {batch: entries[str(batch)] for batch in ids}


def read_offsets(files: Files, batch: int) -> OffsetsLogEntry:
    """Return where a batch begins.

    Raises:
        NotFound: Spark did not plan it, or the file was cleaned away or lost.
        Damaged: the file can't be read.
    """
    path = join(OFFSETS, str(batch))
    return parse_offsets(path, files.read(path))


def parse_offsets(path: str, data: bytes) -> OffsetsLogEntry:
    """Return what the bytes of a file of `offsets` say; `path` is for the error.

    Raises:
        Damaged: they can't be read.
    """
    version, metadata, lines = _lines(path, data)
    conf = metadata.get("conf")
    named = [line.partition(":")[::2] if version == 2 else (str(at), line) for at, line in enumerate(lines)]
    return OffsetsLogEntry(
        version,
        _count(path, metadata, "batchWatermarkMs"),
        _count(path, metadata, "batchTimestampMs"),
        {str(name): str(value) for name, value in conf.items()} if isinstance(conf, dict) else {},
        tuple(None if offset == "-" else offset for _, offset in named),
        tuple(join(SOURCES, name) for name, _ in named),
    )


def read_commit(files: Files, batch: int) -> CommitLogEntry:
    """Return what was noted when a batch was done.

    Raises:
        NotFound: it is not done, or the file was cleaned away or lost.
        Damaged: the file can't be read.
    """
    path = join(COMMITS, str(batch))
    version, metadata, _ = _lines(path, files.read(path))
    try:
        uids = {
            int(operator): tuple(tuple(str(uid) for uid in stores) for stores in partitions)
            for operator, partitions in (metadata.get("stateUniqueIds") or {}).items()
        }
    except (ValueError, TypeError, AttributeError) as error:
        raise Damaged(f"{path} has unique ids that can't be read: {error}") from error
    return CommitLogEntry(version, _count(path, metadata, "nextBatchWatermarkMs"), uids)


def _lines(path: str, data: bytes) -> tuple[int, dict[str, Any], list[str]]:
    """The version, the JSON in the second line, and the lines after it."""
    try:
        first, _, rest = data.decode().partition("\n")
        second, _, others = rest.partition("\n")
        if first.strip() not in ("v1", "v2"):
            raise Damaged(f"{path} begins with {first[:20]!r}; v1 or v2 was expected")
        metadata = json.loads(second) if second.strip() else {}
    except ValueError as error:
        raise Damaged(f"{path} is not the text that Spark writes: {error}") from error
    if not isinstance(metadata, dict):
        raise Damaged(f"{path} has no JSON object in its second line")
    return int(first.strip()[1:]), metadata, others.split("\n") if others else []


def _count(path: str, metadata: dict[str, Any], name: str) -> int:
    value = metadata.get(name, 0)
    if not isinstance(value, int):
        raise Damaged(f"{path} has {name} = {value!r}; a number was expected")
    return value
