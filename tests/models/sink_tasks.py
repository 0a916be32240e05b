"""Steps beside the drivers: tasks on the executors, and frames that arrive when their sender no longer waits."""

from __future__ import annotations

from collections.abc import Iterator

from tests.models.sink_bounds import Bounds, Step, silent
from tests.models.sink_rules import Rule
from tests.models.sink_world import Partition, Record, World


def tasks(sink: Bounds, w: World, number: int, partition: Partition) -> Iterator[Step]:
    """The next steps of a partition's tasks: add it to their transaction, send a row, close, report."""
    for txn, task in enumerate(partition.tasks):
        again = "again " if task.startswith("again") else ""
        who = f"the {again and 'second '}task of partition {number}"
        match task.removeprefix(again):
            case "ready":
                yield from _add(sink, w, number, txn, again, who)
            case "added":
                yield from _send(sink, w, number, txn, again, who)
            case "reported" if not again and sink.may_be_silent(w):
                if any(driver.at == "write" and driver.txn == txn for driver in w.drivers):
                    once_more = silent(w.partition(number, partition.task(txn, "again ready")))
                    yield f"Spark runs partition {number} of transaction {txn} again", once_more


def _add(sink: Bounds, w: World, number: int, txn: int, again: str, who: str) -> Iterator[Step]:
    partition = w.partitions[number]
    if Rule.ADD_DATA not in sink.rules:
        yield f"{who} adds nothing", w.partition(number, partition.task(txn, again + "added"))
        return
    failed = partition.task(txn, again + "failed")
    if w.txns[txn].state != "open":
        yield f"{who} is refused: transaction {txn} has ended", w.partition(number, failed)
        return
    words = f"{who} adds it to transaction {txn}"
    yield words, w.partition(number, partition.add(txn).task(txn, again + "added"))
    if sink.may_be_silent(w):
        yield f"{words}, and gets no answer", silent(w.partition(number, failed.add(txn)))
        yield f"{who} gets no answer to ADD_PARTITION, which is lost", silent(w.partition(number, failed))


def _send(sink: Bounds, w: World, number: int, txn: int, again: str, who: str) -> Iterator[Step]:
    partition = w.partitions[number]
    words = f"{who} sends its row in transaction {txn}"
    stored = partition.store(txn).task(txn, again + "reported")
    if Rule.CLOSE in sink.rules:
        stored = stored.under_way(txn, False)
    yield f"{words}, and reports", w.partition(number, stored)
    if not sink.may_be_silent(w):
        return
    failed, reported = (partition.task(txn, again + end) for end in ("failed", "reported"))
    if Rule.NO_RESEND not in sink.rules:
        again_later = partition.under_way(txn, True)
        yield f"{words}, gets no receipt, and will send it again", silent(w.partition(number, again_later))
    elif Rule.RECEIPTS in sink.rules:
        yield f"{words}, gets no receipt, and fails", silent(w.partition(number, failed.under_way(txn, True)))
    elif Rule.CLOSE in sink.rules:
        # A frame that reaches a producer after its close is refused.
        yield f"{words}, which is lost, closes its producer, and reports", silent(w.partition(number, reported))
    else:
        late = reported.under_way(txn, True)
        yield f"{words}, and reports without a receipt", silent(w.partition(number, late))


def late_rows(w: World, number: int, partition: Partition) -> Iterator[Step]:
    """Rows whose task no longer waits arrive."""
    for txn in partition.late:
        arrived = w.partition(number, partition.under_way(txn, False).store(txn))
        yield f"a late row of transaction {txn} arrives at partition {number}", arrived


def late_markers(sink: Bounds, w: World) -> Iterator[Step]:
    """MARKER records whose driver no longer waits arrive."""
    c = w.control
    for batch, txn in c.late:
        rest = tuple(late for late in c.late if late != (batch, txn))
        control = c._replace(late=rest).store(Record("MARKER", batch, txn, Rule.MARKER_INSIDE in sink.rules))
        yield f"a late MARKER of batch {batch} in transaction {txn} arrives", w._replace(control=control)
