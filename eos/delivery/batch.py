"""The delivery of one micro-batch: all its DataFrames into one transaction, with what Spark says in few words."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa

from eos.delivery.abort_record import PATIENCE_S
from eos.delivery.delivery import Delivery, Write
from eos.delivery.path import DriverPath, TaskPath
from eos.delivery.row_writer import WriteReport
from eos.errors import EosError, InvalidInput, NetworkError, NotCommitted
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
                total.merge(path.send(txn, self._batch_id))
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
        unsealed = self._delivery.seal(into, under_way) if under_way else set()
        by_tasks = [path for path in self._paths if isinstance(path, TaskPath)]
        self._delivery.named.update(*(path.told for path in by_tasks if path.names_topics))
        if any(path.may_send_elsewhere for path in by_tasks):
            unsealed |= self._seal_where_tasks_have_come(into, under_way)
        return unsealed

    def _seal_where_tasks_have_come(self, txn: TxnId, sealed: set[str]) -> set[str]:
        """Seal the other topics that tasks have added to the transaction, as the admin API tells. Raises nothing.

        A task adds a topic before it sends there, and it may be adding more while we seal. So we ask until an answer
        names no new one. What remains is a topic that a task adds between the last answer and the abort, since nobody
        waits for the processes of tasks that were cancelled. After the abort the coordinator refuses to add any.

        Why a crash just before and after it is safe: the question changes nothing, and the records are part of a
        transaction that only this driver could commit, and never will. The next owner or the time-out aborts it.

        Args: the transaction; the physical topics that are sealed already, or could not be.
        Returns the physical topics that are not sealed. Where the admin API does not tell, the log warns.
        """
        sealed, unsealed, until = set(sealed), set[str](), time.monotonic() + PATIENCE_S
        why = "With admin_url the sink asks the admin API for the others, and their readers do not wait"
        try:
            while (added := self._delivery.added(txn, until)) is not None:
                if added <= sealed:
                    return unsealed
                unsealed |= self._delivery.seal(txn, added - sealed)
                sealed |= added
        except NetworkError as error:
            why = f"The admin API did not tell the others ({error})"
        log.warning(
            "Batch %d is aborted while tasks may still send into transaction %s. Its rows name their topics, and not "
            "all of them are known. Readers of a new topic may wait behind rows of this batch. `eos doctor` lists such "
            "partitions, and `eos doctor --heal TOPIC` frees them. %s.",
            *(self._batch_id, txn, why),
        )
        return unsealed

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
