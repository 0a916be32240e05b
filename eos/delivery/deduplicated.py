"""The delivery of one micro-batch with `guarantee="deduplicated"`; on a replay it is compared before it is sent.

A replay goes the ways that the batch was begun with, by tasks or by the driver and over as many partitions. Where
something of a write is stored, its rows are computed once and kept by Spark (`DataFrame.localCheckpoint`): so what was
compared is what is sent, whatever a second run of the plan would bring.
"""

from __future__ import annotations

from collections.abc import Sequence

from eos.delivery.batch import BatchDelivery, around_spark
from eos.delivery.begun import Planned
from eos.delivery.delivery import Care, Delivery, Write, collect_small
from eos.delivery.numbered import differs
from eos.delivery.numbering import Numbering
from eos.delivery.paths import ByDriver
from eos.delivery.stored import Found
from eos.errors import InvalidInput
from eos.pulsar.protocol.topics import physical_topics


class DeduplicatedDelivery(BatchDelivery):
    """Delivers the writes of one batch.

    Args:
        delivery: of the run.
        batch_id: of the batch.
        writes: what is to be written; each names its topic.
        sink: the sink's name.
        driver_rows: how many rows the driver sends at most.
    """

    def __init__(self, delivery: Delivery, batch_id: int, writes: Sequence[Write], sink: str, driver_rows: int) -> None:
        super().__init__(delivery, batch_id, writes)
        self._sink, self._driver_rows = sink, driver_rows
        self._found, self._compares = Found(), False

    @property
    def topics(self) -> list[str]:
        """Where each write goes."""
        return [write.topic for write in self._writes if write.topic is not None]

    @property
    def planned(self) -> tuple[Planned, ...]:
        """How each write is to be done; known once it is prepared."""
        return tuple(
            Planned(topic, path.partitions[topic], self._driver_rows if isinstance(path, ByDriver) else None)
            for topic, path in zip(self.topics, self._paths, strict=True)
        )

    def prepare_again(self, begun: Sequence[Planned], found: Found) -> None:
        """Prepare a replay as the writes were begun. Raises InvalidInput where one became too much for the driver."""
        self._found, self._paths = found, []
        with self._timed(), around_spark():
            for place, (write, planned) in enumerate(zip(self._writes, begun, strict=True)):
                rows, df = self._collected.get(place), write.df
                if planned.driver_rows is not None and rows is None:
                    rows = collect_small(df, planned.driver_rows, Care.ROWS)
                    if rows is None:
                        raise InvalidInput(
                            f"batch {self._batch_id} differs from what was begun: it had {planned.driver_rows} rows at "
                            f"most for {planned.topic}, and now it has more"
                        )
                    self._collected[place] = rows
                if planned.driver_rows is None and found.of(place):
                    df = df.localCheckpoint()
                partitions = {planned.topic: planned.partitions}
                self._paths.append(self._delivery.prepare_by(write._replace(df=df), rows, partitions))

    def compare(self) -> None:
        """Return only if what was found is what the batch begins with, for each writer. Raises InvalidInput."""
        with self._timed(), around_spark():
            for place, path in enumerate(self._paths):
                stored = self._found.of(place)
                if not stored:
                    continue
                numbering = Numbering(self._sink, self._batch_id, place, stored, compares=True)
                path.send(self._delivery.transaction(None, self._batch_id, path.partitions, numbering))
                for gone in sorted(stored.keys() - path.places):
                    topic, kept = next(iter(stored[gone].items()))
                    raise differs(self._batch_id, topic, gone, kept.rows, "no such writer")

    def _numbering(self, place: int) -> Numbering:
        return Numbering(self._sink, self._batch_id, place, self._found.of(place))


def topics_of(writes: Sequence[Planned]) -> list[str]:
    """Return the physical topics of writes, each once."""
    partitions = {one.topic: one.partitions for one in writes}
    return [name for topic, count in partitions.items() for name in physical_topics(topic, count)]
