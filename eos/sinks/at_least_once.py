"""One run of a query with `guarantee="at-least-once"`: no transaction, no control log, no owner.

    begun? → prepare → send → await receipts → give producers back → Spark is told

Rows are visible as soon as the broker has them. Whatever goes wrong before each of them has its receipt, the batch is
written again as a whole, by this run or by the next one, to which Spark hands it over. So no row is lost, and some may
be there twice.

Before anything of a batch is sent, the checkpoint says that it was begun: a later run that is to write exactly once
refuses a batch that may be visible already. Why each crash is safe is told in docs/how-to/guarantees.md.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from math import inf

from eos.commit.control_topic import abort_command
from eos.commit.registration import UNLOGGED, Registration, Unlogged
from eos.delivery.batch import BatchDelivery
from eos.delivery.delivery import Write
from eos.delivery.writer import Report
from eos.pulsar.protocol.topics import namespace_of
from eos.sinks.plain import PlainRun, goes_on
from eos.sinks.run import Start

log = logging.getLogger("eos.sink")


class RepeatingRun(PlainRun[BatchDelivery]):
    """A run that writes each batch as often as it takes.

    Args:
        start: what it begins with.
        registered: what the checkpoint says of an exactly-once sink; None: it had none.
        unlogged: what it says of earlier runs of this kind; None: there were none.

    Raises InvalidInput for a checkpoint of another sink, and for one that is being rolled forward.
    """

    def __init__(self, start: Start, registered: Registration | None, unlogged: Unlogged | None) -> None:
        super().__init__(start)
        if registered is not None:
            self._goes_on(registered, start)
        last_rows = None if unlogged is None else unlogged.rows
        self._delivery = self._delivery_of(start, last_rows, inf)

    def _goes_on(self, registered: Registration, start: Start) -> None:
        """Go on from an exactly-once sink's checkpoint."""
        goes_on(registered, start)
        name = start.options.name
        log.warning(
            'sink "%s" wrote this checkpoint\'s batches exactly once before. From batch %d on it writes at least once; '
            "that batch may be visible already. If its last driver died in a transaction, readers wait until it ends: "
            "`%s` ends it now",
            name,
            start.batch_id,
            abort_command(name, namespace_of(start.options.control_topic)),
        )

    def _begin(self, batch_id: int, writes: Sequence[Write]) -> BatchDelivery:
        if self.query is not None:
            self.query.register(UNLOGGED, Unlogged(batch_id, self._delivery.last_rows).text)
        return BatchDelivery(self._delivery, batch_id, writes)

    def _send(self, batch_id: int, delivery: BatchDelivery) -> Report:
        """Send all of the batch."""
        delivery.prepare()
        self._metrics.sends()
        return delivery.send(None)
