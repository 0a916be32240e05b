"""The logs that sources keep in a checkpoint, and which of their files Spark reads when the query starts again.

    sources/S/N           what the source noted: of files, those that its batch N took; of others, where they begin
    sources/S/N.compact   of files: all of before it too

The log of files is Spark's CompactibleFileStreamLog. Each interval-th file is a compact one: N + 1 is a multiple of the
interval. A start reads the newest compact file and all after it. The interval itself is nowhere written: it is the
distance of the two newest compact files; with one alone, a divisor of its N + 1; with none, a setting of the session.
So a lost file can make Spark look for compact files where none were written (`IllegalStateException: …/5.compact
doesn't exist (batchId: 9, compactInterval: 6)`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eos.json_reader import read_json
from statestore.checkpoint.files import Files, join
from statestore.checkpoint.logs import SOURCES, OffsetsLogEntry, read_version
from statestore.checkpoint.stores import Gap
from statestore.errors import Damaged

INTERVAL = 10
"""Spark's spark.sql.streaming.fileSource.log.compactInterval unless a session says otherwise."""
_COMPACT = ".compact"
_EARLIEST_MS = 10**12  # in 2001; a time that lost a digit lies before it


@dataclass(frozen=True, slots=True)
class SourceLog:
    """A source's log, as a start reads it.

    Attributes:
        folder: relative to the checkpoint.
        newest: the highest number in it; -1 if it is empty.
        read: paths of the files that are read, by rising number.
        named: the compact file before these, if there is one: only its name counts.
        gaps: files that Spark looks for in a log of files, and doesn't find.
    """

    folder: str
    newest: int
    read: tuple[str, ...]
    named: tuple[str, ...]
    gaps: tuple[Gap, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """The files that a copy must hold."""
        return self.named + self.read


def source_logs(files: Files) -> Mapping[str, SourceLog]:
    """Return each source's log by its folder."""
    folders = [join(SOURCES, name) for name, entry in files.list(SOURCES).items() if entry.is_directory]
    return {folder: source_log(files, folder) for folder in folders}


def source_log(files: Files, folder: str, default: int = INTERVAL) -> SourceLog:
    """Return a source's log; `default` is the interval where no compact file tells it."""
    names = [name for name in files.list(folder) if name.removesuffix(_COMPACT).isdecimal()]
    compact = sorted(int(name.removesuffix(_COMPACT)) for name in names if name.endswith(_COMPACT))
    newest = max((int(name.removesuffix(_COMPACT)) for name in names), default=-1)
    interval = compact_interval(compact, default)
    first = max(0, (newest + 1) // interval * interval - 1)
    read, gaps = [], []
    for number in range(first, newest + 1):
        name = f"{number}{_COMPACT}" if (number + 1) % interval == 0 else str(number)
        if name in names:
            read.append(join(folder, name))
        else:
            gaps.append(
                Gap(join(folder, name), f"Spark looks for it. The log ends at {newest}, its interval is {interval}")
            )
    before = [number for number in compact if number < first][-1:]
    return SourceLog(folder, newest, tuple(read), tuple(join(folder, f"{n}{_COMPACT}") for n in before), tuple(gaps))


def compact_interval(compact: list[int], default: int = INTERVAL) -> int:
    """Return the interval that Spark concludes (CompactibleFileStreamLog.compactInterval, deriveCompactInterval).

    Args:
        compact: the numbers of the compact files, lowest first.
        default: the session's setting.
    """
    if len(compact) >= 2:
        return compact[-1] - compact[-2]
    if not compact:
        return default
    whole = compact[0] + 1
    if default >= whole // 2:
        return whole
    return next(divisor for divisor in range(default, whole + 1) if whole % divisor == 0)


def check_entry(data: bytes) -> None:
    """Look whether a file of a source's log is whole.

    Raises:
        Damaged: it is empty, a line that begins as JSON is none, or a time is one of before 2001.
        UnknownVersion: a newer Spark wrote it.
    """
    if not data:
        raise Damaged("it is empty")
    first, *lines = data.splitlines()
    if first[:1] == b"v" and first[1:].isdigit():
        read_version("it", first, 1)
    for line in lines:
        if line.isdigit() and int(line) < _EARLIEST_MS:
            raise Damaged(f"it holds the time {int(line)} ms, which is long past. The last digits are missing")
        if line.startswith(b"{"):
            try:
                read_json(line)
            except ValueError as error:
                raise Damaged(f"it holds a line that is not JSON: {error}") from error


def numbers_of(offsets: OffsetsLogEntry) -> dict[str, int]:
    """Return how far a batch reads in each log of files, by the log's folder; other sources are left out.

    Raises:
        Damaged: the offset of a log of files has no number.
    """
    found = {}
    for folder, source in zip(offsets.folders, offsets.sources, strict=True):
        try:
            offset = read_json(source) if source is not None else None
        except ValueError:
            continue  # a source's offset may be any text
        if isinstance(offset, dict) and offset.keys() == {"logOffset"}:
            if type(offset["logOffset"]) is not int:
                raise Damaged(f"the offset of {folder} is {source}. A number was expected as its logOffset")
            found[folder] = offset["logOffset"]
    return found


def clocks_of(offsets: OffsetsLogEntry) -> list[str]:
    """Return the paths at which sources that count seconds have noted when their clock began.

    The offset of such a source is a bare number (RateStreamMicroBatchStream). Without the note its clock begins again,
    and Spark ends with "assertion failed: startSeconds > endSeconds".
    """
    counting = (source is not None and source.isdecimal() for source in offsets.sources)
    return [join(folder, "0") for folder, counts in zip(offsets.folders, counting, strict=True) if counts]
