"""The faults that must never be: rows that a reader finds twice, not at all, or in part, and waiting without an end."""

from __future__ import annotations

from tests.models.sink_bounds import Bounds
from tests.models.sink_world import NOBODY, World


def fault(sink: Bounds, w: World) -> str | None:
    """Say what a reader finds wrong once everything has come to rest, if every driver died now."""
    if w.wrong:
        return w.wrong
    found = [list(partition.settled) for partition in w.partitions]
    for number, partition in enumerate(w.partitions):
        topic = partition.topic
        for txn in partition.rows:
            # A record that is open here, in a transaction that has ended, is aborted by a later one's end.
            if w.txns[txn].state == "committed" and txn not in topic.aborted and txn not in topic.ongoing:
                found[number][w.txns[txn].batch] += 1
    for batch in range(sink.batches):
        counts = [each[batch] for each in found]
        if max(counts) > 1:
            return f"batch {batch} is doubled: its rows are found {counts} times"
        if batch in w.swallowed and max(counts) == 0:
            if any(each[later] for each in found for later in range(batch + 1, sink.batches)):
                return f"batch {batch} is missing before one that was written: user code has hidden that it failed"
            continue
        if batch < w.noted and min(counts) == 0:
            return f"batch {batch} is lost: Spark has noted it, and its rows are found {counts} times"
        if min(counts) != max(counts):
            return f"batch {batch} is torn: its rows are found {counts} times"
    return _held_up(sink, w) if sink.waits else None


def _held_up(sink: Bounds, w: World) -> str | None:
    """Say which readers wait for something that the sink's living driver should have ended."""
    owner = w.control.owner
    if owner == NOBODY or w.drivers[owner].at != "write":
        return None
    for number, partition in enumerate(w.partitions):
        for txn in partition.topic.ongoing:
            state, _, coordinator = w.txns[txn]
            if state == "open" and txn != w.drivers[owner].txn:
                return f"readers of partition {number} wait for transaction {txn}, until its time is over"
            if state != "open" and coordinator != sink.coordinator_of(owner):
                return (
                    f"readers of partition {number} wait for ever: a record of transaction {txn} came late, and no"
                    f" transaction of coordinator {coordinator} ends there any more"
                )
    return None


def stuck(w: World) -> str | None:
    """Say which driver or reader waits for ever."""
    for number, driver in enumerate(w.drivers):
        if driver.at == "read":
            return f"driver {number} waits for its OWNER record for ever"
    return None
