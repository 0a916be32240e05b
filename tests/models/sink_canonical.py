"""Makes states equal that have the same future: forgets what no longer matters, and orders what is alike."""

from __future__ import annotations

import itertools

from tests.models.sink_bounds import Bounds
from tests.models.sink_rules import Rule
from tests.models.sink_world import NOBODY, Control, Driver, Numbers, Partition, Record, Topic, World, without

OVER = ("done", "stopped")


def matter(w: World) -> list[bool]:
    """Tell for each transaction whether anything may still come of it but what readers have already."""
    wanted = {driver.txn for driver in w.drivers}
    wanted.update(w.control.topic.ongoing)
    wanted.update(txn for _, txn in w.control.late)
    for partition in w.partitions:
        wanted.update(partition.topic.ongoing)
        wanted.update(partition.late)
    return [txn.state == "open" or number in wanted for number, txn in enumerate(w.txns)]


def canonical(w: World, sink: Bounds) -> World:
    """Give the state that stands for all with the same future."""
    w = _run_on(w, sink)
    w = _without_aborted(w)
    kept = matter(w)
    if not all(kept):
        w = _forget(w, kept)
    if w.partitions[0] > w.partitions[-1]:
        w = w._replace(partitions=tuple(sorted(w.partitions)))
    return _in_order(w, Rule.ONE_COORDINATOR in sink.rules)


def _run_on(w: World, sink: Bounds) -> World:
    """Let drivers take the steps that they will take in any case, and that change nothing for any other process.

    Once its transaction has been aborted, what a driver writes into it is filtered, and all that is left for it is
    to notice. If it was fenced, it will notice that too; a transaction that it opens before it does stays empty, and
    matters only where topics forget aborts, since it holds the low watermark down. The tests explore without this too.
    """
    noticed, owner = sink.shortcuts and sink.rules >= _NOTICED, w.control.owner
    orphans_matter = not (sink.primed and sink.data_held)
    partitions, drivers = w.partitions, w.drivers
    for d, driver in enumerate(w.drivers):
        at, batch, txn, _ = driver
        if at in _AS_IT_IS:
            continue
        ended = txn != NOBODY and w.txns[txn].state == "aborted"
        moved = driver
        if at in OVER:
            moved = Driver(at)
        elif noticed and d != owner and (ended or at in _LOST or (at == "open" and not orphans_matter)):
            moved = Driver("reopen")
        elif ended and at == "abort":
            moved = Driver("open", batch)
        elif ended and at == "abort, log lost":
            moved = Driver("reopen", batch)
        elif ended and noticed and at == "write" and any(_fails(p.tasks[txn]) for p in partitions):
            moved = Driver("open", batch)
        if moved != driver:
            drivers = (*drivers[:d], moved, *drivers[d + 1 :])
            if txn != NOBODY:
                partitions = tuple(partition.no_task(txn) for partition in partitions)
    return w if drivers is w.drivers else w._replace(drivers=drivers, partitions=partitions)


_AS_IT_IS = ("off", "fence", "commit", "read")
_LOST = ("announce", "reopen")
_NOTICED = frozenset({Rule.FENCE, Rule.EPOCH, Rule.LOG_DECIDES, Rule.ADD_DATA, Rule.ALL_REPORTED, Rule.ONCE})


def _fails(task: str) -> bool:
    return task.endswith(("ready", "failed")) or task.startswith("again")


def _without_aborted(w: World) -> World:
    """Drop what no reader gets: rows that were aborted, and late ones that will be filtered; and reports read."""
    over = [number for number, txn in enumerate(w.txns) if txn.state != "open"]
    if not over:
        return w
    for number, partition in enumerate(w.partitions):
        rows, tasks, late, filtered = partition.rows, partition.tasks, partition.late, partition.topic.aborted
        for txn in over:
            if w.txns[txn].state == "committed":
                if tasks[txn] == "reported":
                    tasks = (*tasks[:txn], "", *tasks[txn + 1 :])
                continue
            rows = without(rows, txn)
            if txn in filtered:
                late = without(late, txn)
                if tasks[txn] == "added":
                    tasks = (*tasks[:txn], "reported", *tasks[txn + 1 :])
        if (rows, tasks, late) != (partition.rows, partition.tasks, partition.late):
            w = w.partition(number, partition._replace(rows=rows, tasks=tasks, late=late))
    return w


def _forget(w: World, kept: list[bool]) -> World:
    """Drop the transactions that don't matter, and count the others anew."""
    new = [NOBODY] * len(kept)
    count = 0
    for number, keep in enumerate(kept):
        if keep:
            new[number] = count
            count += 1
    txns = tuple(txn for number, txn in enumerate(w.txns) if kept[number])
    partitions = tuple(_forget_data(w, partition, kept, new) for partition in w.partitions)
    drivers = tuple(d if d.txn == NOBODY else d._replace(txn=new[d.txn]) for d in w.drivers)
    return w._replace(control=_forget_log(w.control, new), partitions=partitions, drivers=drivers, txns=txns)


def _forget_data(w: World, partition: Partition, kept: list[bool], new: list[int]) -> Partition:
    settled = partition.settled
    rows = tuple(new[txn] for txn in partition.rows if kept[txn])
    if len(rows) < len(partition.rows):
        counts = list(settled)
        for txn in partition.rows:
            if not kept[txn] and w.txns[txn].state == "committed" and txn not in partition.topic.aborted:
                counts[w.txns[txn].batch] += 1
        settled = tuple(counts)
    tasks = tuple(task for txn, task in enumerate(partition.tasks) if kept[txn])
    return Partition(_forget_topic(partition.topic, new), rows, tasks, _renamed(partition.late, new), settled)


def _forget_topic(topic: Topic, new: list[int]) -> Topic:
    return Topic(_renamed(topic.ongoing, new), _renamed(topic.aborted, new), _renamed(topic.added, new), topic.held)


def _forget_log(c: Control, new: list[int]) -> Control:
    topic = c.topic
    hidden = []
    for record in c.hidden:
        if record.txn == NOBODY:
            hidden.append(record)
        elif new[record.txn] != NOBODY or not (record.inside and record.txn in topic.aborted):
            hidden.append(record._replace(txn=new[record.txn]))
    return c._replace(
        topic=_forget_topic(topic, new),
        intent=(c.intent[0], _known(c.intent[1], new)),
        hidden=tuple(hidden),
        late=tuple((batch, new[txn]) for batch, txn in c.late),
    )


def _renamed(numbers: Numbers, new: list[int]) -> Numbers:
    return tuple(new[number] for number in numbers if new[number] != NOBODY) if numbers else numbers


def _known(txn: int, new: list[int]) -> int:
    return txn if txn == NOBODY else new[txn]


def _in_order(w: World, drivers_alike: bool) -> World:
    """Drop OWNER records that no driver waits for, forget an owner that is over, and sort the drivers."""
    c = w.control
    hidden, owner, connected = c.hidden, c.owner, c.connected
    if hidden and c.begun:
        hidden = tuple(r for r in hidden if r.kind != "OWNER" or w.drivers[r.about].at == "read")
    if owner != NOBODY and w.drivers[owner].at in OVER:
        owner, connected = NOBODY, False
    intent = c.intent
    if intent[1] != NOBODY and w.txns[intent[1]].state != "open":
        intent = (intent[0], NOBODY)
    drivers = w.drivers
    if drivers_alike:
        said = [()] * len(drivers) if not hidden else [_said(hidden, d) for d in range(len(drivers))]
        keys = [(driver, d != owner, said[d]) for d, driver in enumerate(drivers)]
        if any(one > other for one, other in itertools.pairwise(keys)):
            order = sorted(range(len(keys)), key=keys.__getitem__)
            hidden = tuple(r._replace(about=order.index(r.about)) if r.kind == "OWNER" else r for r in hidden)
            owner = NOBODY if owner == NOBODY else order.index(owner)
            drivers = tuple(drivers[old] for old in order)
    if (hidden, owner, connected, intent) != (c.hidden, c.owner, c.connected, c.intent):
        w = w._replace(control=c._replace(hidden=hidden, owner=owner, connected=connected, intent=intent))
    return w if drivers is w.drivers else w._replace(drivers=drivers)


def _said(hidden: tuple[Record, ...], d: int) -> Numbers:
    return tuple(at for at, record in enumerate(hidden) if record.kind == "OWNER" and record.about == d)
