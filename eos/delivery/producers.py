"""The place where a writer's producers come from, and where they go once each frame has its receipt.

A task opens its own, and closes them before it reports. The process that asks for the commit is another one, and must
know that the task sends nothing further. On the driver's own path they stay open for the next batch, as the control
topic's does. There the sender is the process that asks for the commit: only a producer without a frame under way is
kept, and once the end of a transaction was asked for, `eos.pulsar.net.transactions` refuses every send into it.
docs/models.md tells what closing stands against (the rule CLOSE).
"""

from __future__ import annotations

from collections.abc import Sequence

from eos.pulsar.net.client import Client
from eos.pulsar.net.in_flight import InFlight
from eos.pulsar.net.producer import Producer
from eos.pulsar.net.producer_group import close_producers, open_producers
from eos.pulsar.protocol.producer import ProducerIdentity
from eos.pulsar.protocol.schemas import Declared

KEPT_PRODUCERS = 256
"""How many the driver keeps open at most; those that were not used for longest are closed."""


class FreshProducers:
    """Opened for one transaction, and closed when all is sent.

    Attributes:
        client: of the cluster with the topics.
        introduction: the writer's introduction to brokers.
    """

    def __init__(
        self, client: Client, max_in_flight_bytes: int, *, introduction: ProducerIdentity | None = None
    ) -> None:
        """Args: of the topics' cluster; payload bytes that all may have sent without a receipt; who writes."""
        self.client = client
        self._budget = InFlight(max_in_flight_bytes)
        self.introduction = introduction

    def open(self, topics: Sequence[str], schema: Declared | None = None) -> list[Producer]:
        """Return an open producer for each physical topic.

        Args: the topics; by which schema the values are written, if by any.

        Raises what `Client.producer` raises, after opening none.
        """
        return open_producers(self.client, topics, self._budget, schema, self.introduction)

    def give_back(self, producers: Sequence[Producer]) -> None:
        """Take back producers with all their receipts. Returns when none can send into their transaction any longer.

        Raises what `Producer.close` raises.
        """
        close_producers(producers)


class OpenProducers(FreshProducers):
    """Opened once, and kept for later transactions of the same process. For one thread at a time."""

    def __init__(
        self,
        client: Client,
        max_in_flight_bytes: int,
        limit: int = KEPT_PRODUCERS,
        *,
        introduction: ProducerIdentity | None = None,
    ) -> None:
        """Args: as of `FreshProducers`; how many are kept at most."""
        super().__init__(client, max_in_flight_bytes, introduction=introduction)
        self._limit = limit
        self._kept: dict[str, Producer] = {}  # the one that was given back last comes last

    def open(self, topics: Sequence[str], schema: Declared | None = None) -> list[Producer]:
        """Return those that are kept and fit for use, and open the others."""
        found = {topic: self._kept.pop(topic) for topic in topics if topic in self._kept}
        idle = {topic: producer for topic, producer in found.items() if producer.is_idle and producer.schema == schema}
        for topic in found.keys() - idle.keys():
            found[topic].abandon()
        try:
            return [*idle.values(), *super().open([topic for topic in topics if topic not in idle], schema)]
        except BaseException:
            self.give_back(list(idle.values()))
            raise

    def give_back(self, producers: Sequence[Producer]) -> None:
        """Keep them for the next transaction; two writes to one topic had one each, and the second is given up."""
        for producer in producers:
            if producer.topic in self._kept:
                producer.abandon()
            else:
                self._kept[producer.topic] = producer
        while len(self._kept) > self._limit:
            self._kept.pop(next(iter(self._kept))).abandon()

    def close(self) -> None:
        """Give up all that are kept. More can be opened afterwards."""
        for producer in self._kept.values():
            producer.abandon()
        self._kept.clear()
