"""The delivery of one micro-batch: all its DataFrames into one transaction, with what Spark says in few words."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa

from eos.delivery.delivery import Delivery, Write
from eos.delivery.path import DriverPath, TaskPath
from eos.delivery.row_writer import WriteReport
from eos.errors import EosError, InvalidInput, NotCommitted
from eos.pulsar.wire.txn import TxnId
from eos.spark import query as spark
from eos.spark.failures import is_permanent

log = logging.getLogger("eos.delivery.batch")


class BatchDelivery:
    """Delivers the writes of one batch; see `eos.commit.ports.DeliveryPort`.

    Args:
        delivery: of the run.
        batch_id: of the batch.
        writes: what is to be written.

    Attributes:
        sent_in: the transaction of the last try that has sent all rows; None until then, and without a transaction.
        frames: how many frames these were, by topic.
        seconds: that preparing, sending and finishing took, over all tries.
    """

    def __init__(self, delivery: Delivery, batch_id: int, writes: Sequence[Write]) -> None:
        self._delivery, self._batch_id, self._writes = delivery, batch_id, writes
        self._paths: list[DriverPath | TaskPath] = []
        self._collected: dict[int, pa.Table] = {}
        self._into: TxnId | None = None  # the transaction of a try that may have sent, until it is given up
        self.sent_in: TxnId | None = None
        self.frames: Mapping[str, int] = {}
        self.seconds = 0.0

    def prepare(self) -> None:
        """Collect or plan each write. A second try finds collected rows, and plans jobs again."""
        self._paths = []
        with self._timed(), around_spark():
            for place, write in enumerate(self._writes):
                path = self._delivery.prepare(write, self._collected.get(place))
                if isinstance(path, DriverPath):
                    self._collected[place] = path.rows
                self._paths.append(path)

    def send(self, txn: TxnId | None) -> WriteReport:
        """Send every write of the batch into the transaction; None: into none."""
        total = WriteReport()
        self._into = txn
        with self._timed(), around_spark():
            for place, path in enumerate(self._paths):
                if isinstance(path, TaskPath):
                    self._await_the_drivers(place)
                to = self._delivery.transaction(txn, self._batch_id, path.partitions)
                total.merge(path.send(to))
        self.sent_in, self.frames = txn, total.frames
        return total

    def _await_the_drivers(self, place: int) -> None:
        """Await what the driver has sent for the writes before a place.

        Tasks have connections of their own: a row of theirs could otherwise be stored before one of an earlier write.
        """
        for path in self._paths[:place]:
            if isinstance(path, DriverPath):
                path.await_receipts()

    def finish(self) -> None:
        """Await the receipts of what the driver sent; prove that each task ran once."""
        with self._timed(), around_spark():
            for path in self._paths:
                path.finish()

    def abandon(self) -> set[str]:
        """Give up the producers in use, and seal where frames may still be on their way (`eos.delivery.abort_record`).

        Returns the physical topics that are not sealed.
        """
        under_way: set[str] = set().union(*(path.abandon() for path in self._paths))
        into, self._into = self._into, None
        if into is None:
            return set()
        if any(isinstance(path, TaskPath) and path.may_send and path.names_topics for path in self._paths):
            log.warning(
                "Batch %d is aborted while tasks may still send into transaction %s. Its rows name their topics, and "
                "only the topics of committed batches are known. Readers of another topic may wait behind rows of this "
                "batch. `eos doctor` lists such partitions, and `eos doctor --heal TOPIC` frees them.",
                *(self._batch_id, into),
            )
        return self._delivery.seal(into, under_way) if under_way else set()

    @contextmanager
    def _timed(self) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds += time.monotonic() - began


@contextmanager
def around_spark() -> Iterator[None]:
    """Turn the failure of a Spark job into InvalidInput or NotCommitted with the reason in few words.

    The job of a query that was stopped fails too: `eos.sinks.error_translation` tells that one apart.
    """
    try:
        yield
    except EosError:
        raise
    except Exception as error:
        if _interrupted(error):
            raise KeyboardInterrupt from error
        kind = InvalidInput if is_permanent(error) else NotCommitted
        raise kind(f"Spark could not run it: {spark.reason(error)}") from error


def _interrupted(error: BaseException | None) -> bool:
    """Tell whether Ctrl-C caused an error: py4j may fail while it cleans up after one, and its error hides it."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False
