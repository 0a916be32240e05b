"""Spark's notes about each micro-batch: where it begins (`offsets`, before it runs) and that it is done (`commits`).

metadata      {"id": …}                         the query's id
offsets/N     v1 or v2; JSON: watermark, time, configuration; one line for each source: its offset, or "-"
              v2: NAME:offset, of sources with names
commits/N     v1; JSON: watermark of the next batch        v2: also the unique ids of the state it wrote
              v3: also the sinks, of which one is active; the unique ids if it is in checkpoint format 2
sources/S/N   what a source notes: files, a timestamp; N.compact holds all before it too
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from eos.json_reader import read_json
from statestore.checkpoint.files import FileEntry, Files, join
from statestore.errors import Damaged, InvalidInput, NotFound, UnknownVersion, Unreadable

# OffsetSeqLog.MAX_VERSION, CommitLog.MAX_VERSION of Spark 4.3
_OFFSETS_KNOWN, _COMMITS_KNOWN = 2, 3
_SINKS = "sinkMetadataMap"
SINKS_SINCE = 3
"""The version of a commit that names the query's sinks."""
METADATA = "metadata"
OFFSETS, COMMITS, SOURCES = "offsets", "commits", "sources"
NOT_WHOLE = "so it is until a copy, restore, rescaling or bootstrap has ended, and where one was killed"
"""The words of an empty `metadata`: Spark starts no query on it."""


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

    @property
    def of_sources(self) -> Mapping[str, str | None]:
        """The offset of each source, by its folder. Sources with names may come, go, and change their order."""
        return dict(zip(self.folders, self.sources, strict=True))


@dataclass(frozen=True, slots=True)
class CommitLogEntry:
    """That a batch is done.

    Attributes:
        next_watermark_ms: the watermark of the next batch.
        uids: checkpoint format 2: operator to, for each partition, the unique ids of its stores' states.
        format: of the checkpoint, 1 or 2: whether states have unique ids. A log of v3 may be of either.
    """

    version: int
    next_watermark_ms: int
    uids: Mapping[int, tuple[tuple[str, ...], ...]]
    format: int = 1


def is_checkpoint(names: Iterable[str]) -> bool:
    """Whether a folder with these names is a query's checkpoint, or what is left of one."""
    return not {OFFSETS, COMMITS}.isdisjoint(names)


def is_begun(files: Files) -> bool:
    """Whether a checkpoint was begun by these tools and is not whole: its `metadata` is there, and empty."""
    entry = files.list("").get(METADATA)
    return entry is not None and not entry.is_directory and entry.length == 0


def check_whole(files: Files, where: str) -> None:
    """Refuse a folder that is not a checkpoint, or one that is incomplete.

    Raises:
        NotFound: there is nothing, or no query's checkpoint.
        InvalidInput: one was begun.
    """
    check_checkpoint(files, where)
    if is_begun(files):
        raise InvalidInput(f"{where} is not a whole checkpoint. Its {METADATA} is empty, and {NOT_WHOLE}")


def check_checkpoint(files: Files, where: str = "") -> None:
    """Say what is there instead, if it is not a checkpoint.

    Args:
        where: its address.

    Raises:
        NotFound: there is nothing, or no query's checkpoint.
    """
    names = files.list("")
    if is_checkpoint(names):
        return
    with suppress(NotFound, Unreadable):
        read_query_id(files)  # of a query that has only begun
        return
    here = f"There is no checkpoint at {where}" if where else "There is no checkpoint"
    if is_begun(files):
        raise NotFound(f"{here}, but one was begun. Its {METADATA} is empty, and {NOT_WHOLE}")
    if not names:
        raise NotFound(f"{here}. There is nothing, or an empty folder")
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
        return str(read_json(data)["id"])
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(f"{METADATA} is not JSON with the query's id: {error}") from error


def batch_ids(files: Files, log: str) -> Mapping[int, FileEntry]:
    """Return the batches that a log has a file for, by id, lowest first."""
    found = {int(name): entry for name, entry in files.list(log).items() if name.isdecimal() and not entry.is_directory}
    return dict(sorted(found.items()))


def read_offsets(files: Files, batch: int) -> OffsetsLogEntry:
    """Return where a batch begins.

    Raises:
        NotFound: Spark did not plan it, or the file was cleaned away or lost.
        Damaged: the file can't be read.
        UnknownVersion: a newer Spark wrote it.
    """
    path = join(OFFSETS, str(batch))
    return parse_offsets(path, files.read(path))


def parse_offsets(path: str, data: bytes) -> OffsetsLogEntry:
    """Return what the bytes of a file of `offsets` say; `path` is for the error.

    Raises:
        Damaged: they can't be read, or end before the offset of the first source.
        UnknownVersion: a newer Spark wrote them.
    """
    version, second, lines = _lines(path, data, _OFFSETS_KNOWN)
    if not lines:
        raise Damaged(f"{path} ends before the offset of its first source. It was cut short")
    metadata = _object(path, second or "")
    conf = metadata.get("conf")
    named = [line.partition(":")[::2] if version > 1 else (str(at), line) for at, line in enumerate(lines)]
    if version > 1:
        _check_named(path, lines, metadata)
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
        UnknownVersion: a newer Spark wrote it.
    """
    path = join(COMMITS, str(batch))
    version, second, _ = _lines(path, files.read(path), _COMMITS_KNOWN)
    if second is None:
        raise Damaged(f"{path} ends after its version. It was cut short")
    metadata = _object(path, second)
    if version >= SINKS_SINCE:
        _check_sinks(path, metadata)
    try:
        uids = {
            int(operator): tuple(tuple(str(uid) for uid in stores) for stores in partitions)
            for operator, partitions in (metadata.get("stateUniqueIds") or {}).items()
        }
    except (ValueError, TypeError, AttributeError) as error:
        raise Damaged(f"{path} has unique ids that can't be read: {error}") from error
    second_format = version == 2 or metadata.get("stateUniqueIds") is not None
    return CommitLogEntry(version, _count(path, metadata, "nextBatchWatermarkMs"), uids, 2 if second_format else 1)


def without_sinks(commit: bytes, checkpoint_format: int) -> bytes:
    """Return a commit as Spark writes it for a query that does not name its sink.

    Args:
        commit: of `SINKS_SINCE`.
        checkpoint_format: of the checkpoint, which is then the version of the commit.
    """
    metadata = json.loads(commit.partition(b"\n")[2])
    del metadata[_SINKS]
    return _commit(checkpoint_format, metadata)


def with_sinks_of(commit: bytes, other: bytes) -> bytes:
    """Return another commit with the sinks of this one, of `SINKS_SINCE`."""
    sinks, metadata = (json.loads(one.partition(b"\n")[2]) for one in (commit, other))
    return _commit(SINKS_SINCE, metadata | {_SINKS: sinks[_SINKS]})


def _commit(version: int, metadata: Mapping[str, Any]) -> bytes:
    return b"v%d\n%s" % (version, json.dumps(metadata, separators=(",", ":")).encode())


def read_version(path: str, line: bytes | str, known: int) -> int:
    """Return the version that a file of Spark's begins with, such as v1.

    Args:
        path: of the file, for the error.
        known: the highest version that is read here.

    Raises:
        Damaged: it is not a version.
        UnknownVersion: it is a higher one.
    """
    text = (line.decode(errors="replace") if isinstance(line, bytes) else line).strip()
    version = int(text[1:]) if text[:1] == "v" and text[1:].isascii() and text[1:].isdecimal() else 0
    if version < 1:
        expected = "v1" if known == 1 else f"v1 to v{known}"
        raise Damaged(f"{path} begins with {text[:20]!r}; {expected} was expected")
    if version > known:
        raise UnknownVersion(
            f"{path} has the version v{version}, which a newer Spark wrote. This statestore reads up to v{known}"
        )
    return version


def _lines(path: str, data: bytes, known: int) -> tuple[int, str | None, list[str]]:
    """The version, the second line if there is one, and the lines after it."""
    try:
        lines = data.decode().split("\n")
    except ValueError as error:
        raise Damaged(f"{path} is not the text that Spark writes: {error}") from error
    if not lines[-1]:
        lines.pop()  # as Spark reads it: what ends a line begins none
    version = read_version(path, lines[0] if lines else "", known)
    return version, lines[1] if len(lines) > 1 else None, lines[2:]


def _object(path: str, text: str) -> dict[str, Any]:
    try:
        found = read_json(text) if text.strip() else {}
    except ValueError as error:
        raise Damaged(f"{path} is not the text that Spark writes: {error}") from error
    if not isinstance(found, dict):
        raise Damaged(f"{path} has no JSON object in its second line")
    return found


def _check_named(path: str, lines: list[str], metadata: dict[str, Any]) -> None:
    """Look whether each source with a name has its line."""
    if unnamed := [line for line in lines if ":" not in line]:
        raise Damaged(f"{path} has the line {unnamed[0][:40]!r}; NAME:offset was expected")
    expected = metadata.get("sourceMetadataInfo")
    names = {line.partition(":")[0] for line in lines}
    lost = sorted(set(expected) - names) if isinstance(expected, dict) else []
    if lost:
        raise Damaged(f"{path} has no offset of the source {lost[0]!r}, which it names. It was cut short")


def _check_sinks(path: str, metadata: dict[str, Any]) -> None:
    """Look whether one sink is active, without which Spark refuses a commit of v3 (CommitMetadataV3)."""
    sinks = metadata.get(_SINKS)
    known = [sink for sink in sinks.values() if isinstance(sink, dict)] if isinstance(sinks, dict) else []
    active = sum(sink.get("isActive") is True for sink in known)
    if active != 1:
        raise Damaged(f"{path} names {active} active sinks. One was expected")


def _count(path: str, metadata: dict[str, Any], name: str) -> int:
    value = metadata.get(name, 0)
    if not isinstance(value, int):
        raise Damaged(f"{path} has {name} = {value!r}. A number was expected")
    return value
