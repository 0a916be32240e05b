"""One driver at a time under a sink's name, for `guarantee="deduplicated"`, which has no control topic to tell by.

A driver holds a producer of the sink's name for as long as its run lasts, and sends nothing by it: the broker lets in
one producer of a name at a time, until its connection ends. Nobody is thrown out, as by fencing; who comes second waits
for the first one to end, and gives up at last. It can be lost with its connection, so it is asked for before each try.

The name is held on a topic of the batch in hand: two drivers of a query have the same batch in hand, and so the same
topic, whatever they wrote to before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from eos.delivery.numbering import prefix, writer_named
from eos.errors import NotCommitted, Refused
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.net.in_flight import InFlight
from eos.pulsar.net.many import open_producers
from eos.pulsar.net.producer import Producer
from eos.pulsar.protocol.refusals import name_taken
from eos.pulsar.protocol.topics import physical_topics

_LOOK_AGAIN_S = 0.2


class Alone:
    """Makes sure that nobody else writes under a sink's name.

    Args:
        client: of the cluster.
        admin: tells who is connected to a topic.
        sink: the name.
        patience_s: seconds to wait for others to end.
        sleep: waits so many seconds, or less when the query was stopped.
        stopped: whether it was.
    """

    def __init__(
        self,
        client: Client,
        admin: Admin,
        sink: str,
        patience_s: float,
        sleep: Callable[[float], None],
        stopped: Callable[[], bool],
    ) -> None:
        self._client, self._admin, self._sink, self._patience_s = client, admin, sink, patience_s
        self._sleep, self._stopped = sleep, stopped
        self._held: Producer | None = None
        self._held_on: str | None = None

    def hold(self, topic: str) -> None:
        """Return when the name is held on the topic, as before or by a producer of now. Raises NotCommitted."""
        if self._held is not None and self._held.is_idle and self._held_on == topic:
            return
        first = physical_topics(topic, self._client.partitions(topic))[0]
        self._wait(lambda: self._opened(first))
        self._held_on = topic

    def await_writers(self, topics: Collection[str]) -> None:
        """Return when no writer of an earlier try is connected to the physical topics. Raises NotCommitted.

        One that is not connected yet can still come: it is let in where nothing of it is stored.
        """

        def connected() -> str | None:
            there = [one for topic in topics for one in self._admin.producers(topic)]
            writers = [one for one in there if writer_named(self._sink, one.partition(" ")[0]) is not None]
            return f"{len(writers)} tasks of an earlier try still write, as {writers[0]}" if writers else None

        self._wait(connected)

    def release(self) -> None:
        """Let go of the name. It can be held again afterwards."""
        if self._held is not None:
            self._held.abandon()
            self._held = None

    def _opened(self, topic: str) -> str | None:
        name = f"{prefix(self._sink)}owner"
        try:
            (held,) = open_producers(self._client, [topic], InFlight(), name=name)
        except Refused as refused:
            if not name_taken(refused):
                raise
            return f"the name {name} is held ({refused.detail})"
        self.release()
        self._held = held
        return None

    def _wait(self, look: Callable[[], str | None]) -> None:
        until = time.monotonic() + self._patience_s
        while (problem := look()) is not None:
            if time.monotonic() > until or self._stopped():
                raise NotCommitted(
                    f'another driver is at work with the sink "{self._sink}", or a broker has not noticed yet that one '
                    f"died: after {self._patience_s:g} s {problem}. Stop the other one; every query needs a name= of "
                    "its own"
                )
            self._sleep(_LOOK_AGAIN_S)
