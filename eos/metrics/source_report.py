"""What a source says of each micro-batch, in Spark's progress of the query.

Spark takes no metrics from a Python data source, and the source plans a query in a process of its own. But the source
also reports the newest offset, which Spark copies into the progress and uses for nothing else. So the report lies
there. The tasks of a batch report nothing, so all figures are the plan's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from eos.json_reader import read_json

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import SourceProgress

Reader = Literal["brokers", "bookies", "offloaded"]
"""Where a task reads entries: from brokers, from bookies, or from where a topic's ledgers were offloaded to."""

READERS: Final[tuple[Reader, ...]] = get_args(Reader)

_LAGS, _PLANNED, _LOSSES = "lag", "planned", "losses"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLag:
    """The messages of one physical topic after the end of a micro-batch, when the batch was planned.

    Attributes:
        topic: the physical topic's full name.
        entries: stored entries up to the last one that can be read, transaction markers and aborted entries among them.
            0 for none. A producer that batches puts many messages into an entry.
        whole: False where there are more, in ledgers whose sizes are not known.
        oldest_ms: when the oldest of these messages was published, in milliseconds since 1970; None where that is not
            known.
    """

    topic: str
    entries: int
    whole: bool = True
    oldest_ms: int | None = None

    @classmethod
    def from_json(cls, topic: str, told: Mapping[str, Any]) -> PartitionLag:
        """Read what `as_json` gave."""
        return cls(topic=topic, entries=told["entries"], whole=told.get("whole", True), oldest_ms=told.get("oldest_ms"))

    def as_json(self) -> dict[str, Any]:
        """Return the lag without the topic, in as few words as can be."""
        oldest = {} if self.oldest_ms is None else {"oldest_ms": self.oldest_ms}
        return {"entries": self.entries, **({} if self.whole else {"whole": False}), **oldest}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEntries:
    """The stored entries that the driver gives to the tasks of a micro-batch. It is not known whether all are read.

    Attributes:
        reader: where tasks are to read them. A task that cannot read from bookies, or offloaded ledgers, goes on by the
            brokers, and says so in its log only.
        entries: how many, transaction markers and aborted entries among them.
        whole: False where there are more, in ledgers whose sizes are not known.
    """

    reader: Reader
    entries: int
    whole: bool = True

    @classmethod
    def from_json(cls, reader: Reader, told: Mapping[str, Any]) -> PlannedEntries:
        """Read what `as_json` gave."""
        return cls(reader=reader, entries=told["entries"], whole=told.get("whole", True))

    def as_json(self) -> dict[str, Any]:
        """Return it without the reader, in as few words as can be."""
        return {"entries": self.entries, **({} if self.whole else {"whole": False})}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport:
    """What one source of a query says of a micro-batch that it has planned.

    Attributes:
        lags: what the batch leaves unread, of each physical topic that it leaves anything of.
        planned: what the tasks of the batch are to read, by where they read it. Nothing of a batch without new entries.
        losses: how many losses of data the driver has warned of, from the start of this run of the query on. Those that
            tasks find are not among them.
        lags_known: whether the lags are known. Where the brokers did not tell the last messages, there are none in
            `lags`.
    """

    lags: tuple[PartitionLag, ...] = ()
    planned: tuple[PlannedEntries, ...] = ()
    losses: int = 0
    lags_known: bool = True

    def within(self, newest: Mapping[str, Any]) -> dict[str, Any]:
        """Return the report in the newest offset. Args: the offset, as Spark keeps it."""
        found = dict(newest)
        if not self.lags_known:
            found[_LAGS] = None
        elif self.lags:
            found[_LAGS] = {one.topic: one.as_json() for one in self.lags}
        if self.planned:
            found[_PLANNED] = {one.reader: one.as_json() for one in self.planned}
        if self.losses:
            found[_LOSSES] = self.losses
        return found


def report_of(source: SourceProgress) -> SourceReport | None:
    """Return the report of a source, None for a source that is not ours, or that has not reported.

    Spark asks for it while it plans a batch. So a topic has a lag where a limit such as `maxEntriesPerTrigger` cut the
    batch, or where messages came in that moment. A query that keeps up has none in most of its batches. A batch that
    Spark runs again after a restart was planned before, and has no report.

    Args:
        source: one of `progress.sources`.
    """
    told = offset_in(source.latestOffset)
    if told is None:
        return None
    planned, lags = told.get(_PLANNED, {}), told.get(_LAGS, {})
    return SourceReport(
        lags=tuple(PartitionLag.from_json(topic, lag) for topic, lag in sorted((lags or {}).items())),
        planned=tuple(PlannedEntries.from_json(one, planned[one]) for one in READERS if one in planned),
        losses=told.get(_LOSSES, 0),
        lags_known=lags is not None,
    )


def offset_in(text: str | None) -> dict[str, Any] | None:
    """Return an offset in Spark's progress, None where it is not one of this source."""
    try:
        told = read_json(text or "")
    except ValueError:  # of another source; or no report, which is None in PySpark's words
        return None
    ours = isinstance(told, dict) and told.get("version") == 1 and isinstance(told.get("topics"), dict)
    return told if ours else None
