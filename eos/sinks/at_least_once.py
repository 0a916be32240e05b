"""One run of a query with `guarantee="at-least-once"`: no transaction, no control log, no owner.

    begun? → prepare → send → await receipts → give producers back → Spark is told

Rows are visible as soon as the broker has them. If anything goes wrong before each of them has its receipt, this run
writes the whole batch again, or the next run, to which Spark hands it over. So no row is lost, and some may be there
twice.

Before anything of a batch is sent, the checkpoint says that it was begun: a later run that is to write exactly once
refuses a batch that may be visible already. docs/how-to/guarantees.md says why each crash is safe.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from math import inf
from typing import ClassVar

from eos.commit.control_topic import abort_command
from eos.commit.decision import Identity
from eos.commit.registration import UNLOGGED, Registration, Unlogged, fits
from eos.delivery.batch import BatchDelivery
from eos.delivery.delivery import Write
from eos.delivery.row_writer import WriteReport
from eos.delivery.task_failure import without_a_transaction
from eos.errors import EosError, InvalidInput, OutOfTurn
from eos.pulsar.protocol.topics import namespace_of
from eos.sinks.run import RunContext, WritingRun

log = logging.getLogger("eos.sink")


class RepeatingRun(WritingRun):
    """A run that writes each batch as often as it takes.

    Args:
        start: what it begins with.
        registered: what the checkpoint says of an exactly-once sink; None: it had none.
        unlogged: what it says of earlier runs of this kind; None: there were none.

    Raises InvalidInput for a checkpoint of another sink, and for one that is being rolled forward.
    """

    _AGAIN: ClassVar[tuple[type[BaseException], ...]] = (BaseException,)

    def __init__(self, start: RunContext, registered: Registration | None, unlogged: Unlogged | None) -> None:
        super().__init__(start)
        if registered is not None:
            self._goes_on(registered, start)
            self.jumped = registered.jumped
        last_rows = None if unlogged is None else unlogged.rows
        self._delivery = self._delivery_of(start, last_rows, inf)

    def close(self) -> None:
        """Close the producers."""
        self._delivery.close()

    def _goes_on(self, registered: Registration, start: RunContext) -> None:
        """Go on from an exactly-once sink's checkpoint."""
        name = start.options.name
        fits(registered, name, start.options.control_topic)
        if registered.rolls_forward_from is not None:
            raise InvalidInput(
                f"this checkpoint is being rolled forward from batch {registered.rolls_forward_from} on, which writes"
                ' nothing, and guarantee="at-least-once" would write each batch a second time. Let `statestore'
                ' restore --in-step` end, with guarantee="exactly-once"'
            )
        log.warning(
            'sink "%s" wrote this checkpoint\'s batches exactly once before. From batch %d on it writes at least once. '
            "That batch may be visible already. If its last driver died in a transaction, readers wait until it ends: "
            "`%s` ends it now",
            name,
            start.batch_id,
            abort_command(name, namespace_of(start.options.control_topic)),
        )

    def _write(self, batch_id: int, writes: Sequence[Write], identity: Identity) -> None:
        if self.query is not None:
            self.query.register(UNLOGGED, Unlogged(batch_id, self._delivery.last_rows).text)
        delivery = BatchDelivery(self._delivery, batch_id, writes)
        try:
            report = self._tries(batch_id, lambda: self._try(batch_id, delivery))
        finally:
            self._metrics.delivered(delivery.seconds)
        self._delivery.committed(sum(report.rows.values()), sum(report.bytes.values()), report.rows)
        self._metrics.committed(report, report.frames)
        log.info("%s", self._metrics.plain_story())
        self._returns(batch_id)

    def _try(self, batch_id: int, delivery: BatchDelivery) -> WriteReport:
        """Write the batch, and return once each row has its receipt."""
        self._metrics.tries()
        try:
            delivery.prepare()
            self._metrics.sends()
            report = delivery.send(None)
            delivery.finish()
        except BaseException as why:
            delivery.abandon()
            if not isinstance(why, EosError) or isinstance(why, OutOfTurn):
                raise
            raise without_a_transaction(why, f"batch {batch_id}") from why
        return report
