"""Writers under names that stay, for `guarantee="deduplicated"`: one sends what is not stored yet, one only compares.

    look (eos.delivery.stored) → compare → send the rest

Rows that are stored are left out by the writer itself: the broker would drop a frame as a whole, so it would have to be
cut as before. What the broker is needed for is to be asked, when a producer is opened, for the newest number of its
name: if that is not the last row that was found, something was stored since, and the try ends before it sends anything
there. From then on nobody else can write under the name, until the producer is closed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from eos.delivery.digest import RowDigest
from eos.delivery.numbering import DRIVER, Numbering, batch_of
from eos.delivery.producers import FreshProducers
from eos.delivery.writer import BatchTransaction, Report, Writer, WriteSettings
from eos.errors import InvalidInput, NotCommitted, Refused, StaleBatch
from eos.pulsar.net.client import Client
from eos.pulsar.net.many import close_producers, open_producers
from eos.pulsar.net.producer import Producer
from eos.pulsar.protocol.introduction import Introduction
from eos.pulsar.protocol.refusals import name_taken
from eos.pulsar.protocol.schemas import Declared
from eos.pulsar.wire.batch import BatchEncoder
from eos.pulsar.wire.routing import Sorted

_PLAIN = BatchEncoder(max_message_size=2**31 - 1)
"""Of rows that are stored, so that the broker's limit lets them in."""


class NumberedProducers(FreshProducers):
    """Opened under the name of one writer, and numbered on behind what is known to be stored.

    Attributes:
        place: of the writer.
        kept: what is known to be stored, by physical topic.
    """

    def __init__(
        self, settings: WriteSettings, numbering: Numbering, place: str, introduction: Introduction | None
    ) -> None:
        """Args: where the topics are; the names and numbers; the place of the writer; who writes."""
        super().__init__(settings.cluster, settings.max_in_flight_bytes, introduction=introduction)
        self._numbering, self.place = numbering, place
        self.kept = numbering.of(place)

    def open(self, topics: Sequence[str], schema: Declared | None = None) -> list[Producer]:
        """Return an open producer for each physical topic.

        Raises:
            NotCommitted: more is stored than was found, or another process writes under the name.
            StaleBatch: a later batch is stored.
        """
        name = self._numbering.name(self.place)
        try:
            opened = open_producers(Client.shared(self._cluster), topics, self._budget, schema, self.introduction, name)
        except Refused as refused:
            if not name_taken(refused):
                raise
            raise NotCommitted(
                f"another process writes under the producer name {name}: an earlier driver of this query that still "
                f'runs, or another query with a sink named "{self._numbering.sink}". ({refused})'
            ) from refused
        try:
            for producer in opened:
                self._number(producer)
        except BaseException:
            close_producers(opened)
            raise
        return opened

    def _number(self, producer: Producer) -> None:
        numbering, newest = self._numbering, producer.last_sequence_id
        kept = self.kept.get(producer.topic)
        following = numbering.first + (0 if kept is None else kept.rows)
        if newest >= following:
            words = f"the broker has row {newest - numbering.first} of batch {numbering.batch_id}"
            kind: type[NotCommitted | StaleBatch] = NotCommitted
            if batch_of(newest) > numbering.batch_id:
                words, kind = f"the broker has rows of batch {batch_of(newest)}", StaleBatch
            raise kind(
                f"{words} under the name {producer.name} on {producer.topic}, and this run of the query has not "
                f"written them: another driver is at work, or the checkpoint is not the one that belongs to the "
                f"output. Every query needs a name= of its own, and its own checkpoint; batch {numbering.batch_id} was "
                "not written any further"
            )
        producer.number_from(following)


class ResumingWriter(Writer):
    """Leaves out of each physical topic the first rows, which are stored, and sends the rest."""

    def __init__(
        self, settings: WriteSettings, to: BatchTransaction, producers: NumberedProducers, first_partition: int
    ) -> None:
        super().__init__(settings, to, producers, first_partition)
        self._left_out = {topic: kept.rows for topic, kept in producers.kept.items()}

    def _route(self, batch: pa.RecordBatch) -> Iterator[tuple[str, list[str], Sorted]]:
        for topic, names, parts in super()._route(batch):
            names, parts = self._rest(topic, names, parts)
            if names:
                yield topic, names, parts

    def _rest(self, topic: str, names: list[str], parts: Sorted) -> tuple[list[str], Sorted]:
        """Return what is to be sent, and count the rest as written."""
        if not any(self._left_out.get(name) for name in names):
            return names, parts
        rest_of, partitions, ends = [], [], []
        places: list[int] = []
        for name, partition, start, end in _by_part(names, parts):
            stored = min(self._left_out.get(name, 0), end - start)
            if stored:
                self._left_out[name] -= stored
                size = sum(chunk.rows_bytes for chunk in _PLAIN.chunks(parts.rows.slice(start, stored)))
                self._report.merge(Report({topic: stored}, {topic: size}))
            if start + stored < end:
                places += range(start + stored, end)
                rest_of.append(name)
                partitions.append(partition)
                ends.append(len(places))
        return rest_of, Sorted(parts.rows.take(pa.array(places, pa.int64())), partitions, ends)


class Comparer(Writer):
    """Sends nothing: compares the first rows of each physical topic with those that are stored there."""

    def __init__(
        self, settings: WriteSettings, to: BatchTransaction, producers: NumberedProducers, first_partition: int
    ) -> None:
        super().__init__(settings, to, producers, first_partition)
        self._batch_id, self._place, self._stored = to.batch_id, producers.place, producers.kept
        self._digests = {topic: RowDigest() for topic in self._stored}

    def send_rest(self) -> Report:
        """Look at the rest of the rows. Raises InvalidInput where the stored rows are not the first ones of these."""
        super().send_rest()
        for topic, kept in self._stored.items():
            digest = self._digests[topic]
            if (digest.rows, digest.text) != kept:
                now = f"only {digest.rows}" if digest.rows < kept.rows else "other ones"
                raise differs(self._batch_id, topic, self._place, kept.rows, now)
        return Report()

    def finish(self) -> None:
        """Do nothing: nothing was sent."""

    def _route(self, batch: pa.RecordBatch) -> Iterator[tuple[str, list[str], Sorted]]:
        for _, names, parts in super()._route(batch):
            for name, _, start, end in _by_part(names, parts):
                if name in self._digests:
                    digest = self._digests[name]
                    first = parts.rows.slice(start, min(end - start, self._stored[name].rows - digest.rows))
                    for chunk in _PLAIN.chunks(first):
                        digest.take_chunk(chunk)
        yield from ()


def differs(batch_id: int, topic: str, place: str, rows: int, now: str) -> InvalidInput:
    """Return the error for a batch that was begun with other rows than it has now.

    Args: the batch; the physical topic; the writer's place; how many rows are stored; what the writer has for it now.
    """
    who = "the driver" if place == DRIVER else f"the task of Spark's partition {place}"
    return InvalidInput(
        f"batch {batch_id} differs from what was begun: {topic} has {rows} rows that {who} had sent, in that order, "
        f"and now it has {now} for it. Written on, rows would be lost or be there twice, so nothing more was sent"
    )


def writer_of(
    settings: WriteSettings, to: BatchTransaction, producers: FreshProducers, place: str, first_partition: int
) -> Writer:
    """Return what writes, or compares, the rows of one task or of the driver.

    Args: as of `Writer`; producers for rows without numbers; `eos.delivery.numbering.DRIVER` or the partition's number.
    """
    if to.numbering is None:
        return Writer(settings, to, producers, first_partition)
    numbered = NumberedProducers(settings, to.numbering, place, producers.introduction)
    kind = Comparer if to.numbering.compares else ResumingWriter
    return kind(settings, to, numbered, first_partition)


def _by_part(names: Sequence[str], parts: Sorted) -> Iterator[tuple[str, int, int, int]]:
    """Yield of each part its physical topic, its partition, and where it begins and ends."""
    yield from zip(names, parts.partitions, [0, *parts.ends[:-1]], parts.ends, strict=True)
