"""The rows of a topic, without Spark: a batch read of the source in this process, or one that goes on for ever.

Only what is committed is given, in the order of each partition; nothing is acknowledged, and nothing is left behind.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from re import ASCII, compile

from eos.config import Cluster
from eos.errors import InvalidInput
from eos.pulsar.net.entries import EntryReader
from eos.pulsar.protocol.topics import persistent_name, split_partition
from eos.pulsar.wire.decoding import Column, decode
from eos.pulsar.wire.encryption import Decrypt, as_it_is
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId, MessageId
from eos.source.batch_plan import batch_ranges
from eos.source.boundaries import Boundary
from eos.source.brokers import PulsarBrokers
from eos.source.lost_entries import no_admin_api
from eos.source.lost_ledgers import KindOf, not_known
from eos.source.offsets import BEGINNING, Position
from eos.source.options import SourceOptions, parse_options
from eos.source.range_reader import read_range
from eos.source.ranges import Range

PAUSE_S = 0.5
"""Seconds between two looks for new rows."""

_AHEAD = 1_000  # messages that the broker sends ahead: a few rows are looked at, as a rule
_ENTRY = compile(r"\d+:(-1|\d+)", ASCII)
_COLUMNS: tuple[Column, ...] = ("value", "key", "event_time", "publish_time", "properties", "message_id")


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A message.

    Attributes:
        partition: the number of its partition; None on a topic without partitions.
        message_id: where it is stored.
        key, value: its bytes, or None.
        publish_time_ms: when the producer sent it, in milliseconds since 1970.
        event_time_ms: the event time that the producer gave, or None.
        properties: its properties; perhaps none.
    """

    partition: int | None
    message_id: MessageId
    key: bytes | None
    value: bytes | None
    publish_time_ms: int
    event_time_ms: int | None
    properties: Mapping[str, str]


class TopicRows:
    """Reads one topic."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        start: str,
        lose: Callable[[str], None],
        decrypt: Decrypt = as_it_is,
        kind_of: KindOf | None = None,
        may_pass_over: Callable[[], bool | None] = no_admin_api,
    ) -> None:
        """Nothing is asked yet.

        Args:
            cluster: how to reach it.
            topic: a topic, or one partition by its own name.
            start: "earliest", "latest" (what comes from now on), a time (ISO 8601 with a zone, or milliseconds since
                1970), or an entry of a single partition, such as "8:13".
            lose: called with what was deleted while it was being read, and with ledgers that are lost.
            decrypt: encrypted entries, to give their rows. Default: they are refused where their rows are asked for.
            kind_of: tells what an entry is that did not come (`Admin.entry_kind`). Default: nobody can, so that a
                ledger that is perhaps lost is a warning.
            may_pass_over: whether the broker may pass over entries that it cannot find (`Admin.may_pass_over`).
                Default: nobody can tell, so that none of them is asked for.

        Raises InvalidInput for a malformed name or start.
        """
        self._topic = persistent_name(topic)
        self._names_entry = _ENTRY.fullmatch(start) is not None
        self._options = replace(_options(self._topic, start, self._names_entry), cluster=cluster)
        self._brokers = PulsarBrokers(self._options)
        self._lose, self._decrypt, self._kind_of = lose, decrypt, kind_of or not_known
        self._may_pass_over = may_pass_over

    def stored(self) -> Iterator[TopicRow]:
        """Give the rows that can be read when this is called, partition by partition.

        Raises TopicMissing; InvalidInput for an entry of a topic with several partitions; what readers raise.
        """
        for part in self._ranges(self.partitions()):
            yield from self._rows(part)

    def partitions(self) -> list[str]:
        """Return the physical topics. Raises TopicMissing."""
        return list(self._brokers.topics(all_named=True))

    def entries(self) -> Iterator[tuple[str, list[Entry]]]:
        """Give what `stored` gives as entries, some at a time, each with its physical topic. Raises what it does."""
        for part in self._ranges(self.partitions()):
            for entries in self._read(part, as_it_is):
                yield part.topic, entries

    def coming(self) -> Iterator[TopicRow]:
        """Give the same, and then what comes, for ever; new partitions too. Raises what `stored` does."""
        topics = self.partitions()
        # An end that is seen before the ranges are made is not past them: the entries between are read once, by them.
        reached = {topic: BEGINNING if last is None else Position(last) for topic, last in self._ends(topics)}
        for part in self._ranges(topics):
            yield from self._rows(part)
            reached[part.topic] = Position(part.end)
        while True:
            quiet = True
            for topic, last in self._ends(self._brokers.topics(all_named=True)):
                start = reached.get(topic, BEGINNING)
                if last is not None and last > start.entry:
                    quiet = False
                    yield from self._rows(Range(topic, start, last))
                    reached[topic] = Position(last)
            if quiet:
                time.sleep(PAUSE_S)

    def _ends(self, topics: Iterable[str]) -> Iterator[tuple[str, EntryId | None]]:
        return ((topic, self._brokers.last(topic)) for topic in topics)

    def _ranges(self, topics: list[str]) -> list[Range]:
        if self._names_entry and topics != [self._topic]:
            raise InvalidInput(
                f"an entry lies in one partition, and {self._topic} has {len(topics)}. Name the partition, such as "
                f"{topics[0]}"
            )
        return batch_ranges(self._brokers, self._options.start, Boundary("latest"), lose=self._lose)

    def _rows(self, part: Range) -> Iterator[TopicRow]:
        _, partition = split_partition(part.topic)
        for entries in self._read(part, self._decrypt):
            for row in decode(entries, _COLUMNS).to_pylist():
                yield TopicRow(
                    partition,
                    MessageId(**row["message_id"]),
                    row["key"],
                    row["value"],
                    row["publish_time"],
                    row["event_time"],
                    dict(row["properties"]),
                )

    def _read(self, part: Range, decrypt: Decrypt) -> Iterator[list[Entry]]:
        kind_of, may_pass_over = self._kind_of, self._may_pass_over
        return read_range(part, self._open, self._lose, decrypt, kind_of=kind_of, may_pass_over=may_pass_over)

    def _open(self, topic: str, start: EntryId | None, permits: int | None, *, stored: bool = False) -> EntryReader:
        return self._brokers.open(topic, start, permits or _AHEAD, stored=stored)


def _options(topic: str, start: str, names_entry: bool) -> SourceOptions:
    given = {"service.url": "pulsar://localhost", "topic": topic}
    if names_entry:
        given["startingOffsets"] = f'{{"{topic}": "{start}"}}'
    elif start in ("earliest", "latest"):
        given["startingOffsets"] = start
    else:
        given["startingTime"] = start
    try:
        return parse_options(given, "batch")
    except InvalidInput as error:
        raise InvalidInput(
            f"{start!r} is not a place to begin. Write earliest, latest, an entry such as 8:13, a time in ISO 8601 "
            'with a zone, such as "2026-01-31T12:00:00+00:00", or milliseconds since 1970'
        ) from error
