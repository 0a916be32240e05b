"""A run without transactions, whatever it promises: what it shares is told here.

Rows are visible as soon as the broker has them. Before anything of a batch is sent the checkpoint says that it was
begun; a try that fails leaves rows behind, and the next one goes on as its guarantee says.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from eos.commit.decision import Identity
from eos.commit.registration import Registration, fits
from eos.delivery.batch import BatchDelivery
from eos.delivery.delivery import Write
from eos.delivery.problems import without_a_transaction
from eos.delivery.writer import Report
from eos.errors import EosError, InvalidInput, OutOfTurn
from eos.sinks.run import Start, WritingRun

log = logging.getLogger("eos.sink")

D = TypeVar("D", bound=BatchDelivery)


def goes_on(registered: Registration, start: Start) -> None:
    """Refuse to go on from the checkpoint of another exactly-once sink, and from one that is being rolled forward.

    Raises InvalidInput.
    """
    fits(registered, start.options.name, start.options.control_topic)
    if registered.rolls_forward_from is not None:
        raise InvalidInput(
            f"this checkpoint is being rolled forward from batch {registered.rolls_forward_from} on, which writes"
            f' nothing, and guarantee="{start.options.guarantee}" would write each batch a second time. Let `statestore'
            ' restore --in-step` end, with guarantee="exactly-once"'
        )


class PlainRun(WritingRun, Generic[D]):
    """A run that writes each batch without a transaction, in one try or in several."""

    _AGAIN: ClassVar[tuple[type[BaseException], ...]] = (BaseException,)

    @abstractmethod
    def _begin(self, batch_id: int, writes: Sequence[Write]) -> D:
        """Return the delivery of a batch."""

    @abstractmethod
    def _send(self, batch_id: int, delivery: D) -> Report:
        """Send the batch, or the rest of it. `finish` is to follow. Tells `self._metrics.sends()` just before."""

    def close(self) -> None:
        """Close the producers."""
        self._delivery.close()

    def _write(self, batch_id: int, writes: Sequence[Write], identity: Identity) -> None:
        delivery = self._begin(batch_id, writes)
        report = Report()
        try:
            for one in self._tries(batch_id):
                with one:
                    report = self._try(batch_id, delivery)
        finally:
            self._metrics.delivered(delivery.seconds)
        self._delivery.committed(sum(report.rows.values()), sum(report.bytes.values()))
        self._metrics.committed(report, report.frames)
        log.info("%s", self._metrics.plain_story())
        self._returns(batch_id)

    def _try(self, batch_id: int, delivery: D) -> Report:
        """Write the batch, and return once each row has its receipt."""
        self._metrics.tries()
        try:
            report = self._send(batch_id, delivery)
            delivery.finish()
        except BaseException as why:
            delivery.abandon()
            if not isinstance(why, EosError) or isinstance(why, OutOfTurn):
                raise
            raise without_a_transaction(why, f"batch {batch_id}", self._options.guarantee) from why
        return report
