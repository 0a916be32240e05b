"""The commit protocol as a model: drivers that start at any time, and what may happen to each of their steps.

One step is one request, carried out by the broker at once, or what another process does meanwhile. That is enough: a
driver that waits for an answer does nothing else, so a request that is slow is a driver that is slow to send it. A
driver may stand still at any step for ever, which is a crash, or go on long after another has taken over. A request
whose sender *stops waiting* can't be told like that: it may have been carried out, or not, or a frame of it may arrive
later, in the middle of what the sender does next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations

from tests.models import sink_faults, sink_tasks
from tests.models.sink_bounds import Bounds, Step, silent
from tests.models.sink_canonical import canonical, matter
from tests.models.sink_rules import Rule
from tests.models.sink_world import NOBODY, Control, Driver, Partition, Record, Topic, Txn, World, include


@dataclass(frozen=True)
class Sink(Bounds):
    """The model: a driver's program, and the steps of everything else."""

    program: dict[str, Callable[[World, int, Driver], Iterator[Step]]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        program = {
            "off": self._off,
            "fence": self._fence,
            "prime": self._prime,
            "prime send": self._prime_send,
            "prime end": self._abort,
            "announce": self._announce,
            "read": self._read,
            "open": self._open,
            "intent": self._intent,
            "write": self._write,
            "commit": self._commit,
            "abort": self._abort,
            "abort, log lost": self._abort,
            "reopen": self._reopen,
            "done": self._nothing,
            "stopped": self._nothing,
        }
        object.__setattr__(self, "program", program)

    # ---- the model

    def start(self) -> World:
        """No driver has done anything, but perhaps another sink has, long ago."""
        control = Control(Topic(held=self.primed), begun=self.primed)
        partition = Partition(Topic(held=self.data_held), (), (), (), (0,) * self.batches)
        world = World(control, (partition,) * self.partitions, (), (Driver(),) * self.drivers)
        if not self.frozen:
            return world
        txn, world = self._new(world, 0, NOBODY)
        return world._replace(control=world.control.add(txn).store(Record("PRIMING", NOBODY, txn, True)))

    def steps(self, world: World) -> Iterator[Step]:
        """Give everything that can happen next."""
        for number, driver in enumerate(world.drivers):
            yield from self.program[driver.at](world, number, driver)
        for number, partition in enumerate(world.partitions):
            yield from sink_tasks.tasks(self, world, number, partition)
            yield from sink_tasks.late_rows(world, number, partition)
        yield from sink_tasks.late_markers(self, world)
        for number, txn in enumerate(world.txns):
            if txn.state == "open":
                yield f"transaction {number} has lived too long, and is aborted", world.end(number, "aborted")

    # ---- taking over

    def _nothing(self, w: World, d: int, driver: Driver) -> Iterator[Step]:
        return iter(())

    def _off(self, w: World, d: int, driver: Driver) -> Iterator[Step]:
        first = next(number for number, other in enumerate(w.drivers) if other.at == "off")
        if w.noted < self.batches and d == first:
            yield f"driver {d} starts; Spark hands it batch {w.noted}", w.driver(d, "fence", batch=w.noted)

    def _fence(self, w: World, d: int, driver: Driver) -> Iterator[Step]:
        late = () if Rule.FENCE in self.rules else w.control.late
        control = w.control._replace(owner=d, connected=True, late=late)
        after = "prime" if not control.begun and Rule.PRIME in self.rules else "announce"
        yield f"driver {d} takes the control topic over", w._replace(control=control).driver(d, after)

    def _prime(self, w: World, d: int, driver: Driver) -> Iterator[Step]:
        if self._may_open(w):
            txn, w = self._new(w, d, NOBODY)
            w = w._replace(control=w.control.add(txn))
            yield f"driver {d} opens transaction {txn} to prime the log", w.driver(d, "prime send", txn=txn)

    def _prime_send(self, w: World, d: int, driver: Driver) -> Iterator[Step]:
        if not self._can_append(w, d):
            yield f"driver {d} gets no receipt for its priming record", w.driver(d, "abort, log lost")
            return
        control = w.control.store(Record("PRIMING", NOBODY, driver.txn, True))
        yield f"driver {d} sends a priming record", w._replace(control=control).driver(d, "prime end")

    def _announce(self, w: World, d: int, driver: Driver) -> Iterator[Step]:
        if not self._can_append(w, d):
            yield f"driver {d} gets no receipt for OWNER", w.driver(d, "reopen")
            return
        control = w.control.store(Record("OWNER", d, NOBODY, False))
        yield f"driver {d} writes OWNER", w._replace(control=control).driver(d, "read", txn=NOBODY, marker=False)

    def _reopen(self, w: World, d: int, driver: Driver) -> Iterator[Step]:
        c = w.control
        if c.owner == d or Rule.FENCE not in self.rules:
            late = () if Rule.FENCE in self.rules else c.late
            again = w._replace(control=c._replace(connected=True, late=late))
            yield f"driver {d} opens the control topic again", again.driver(d, "announce")
        elif Rule.EPOCH in self.rules:
            # Even a reopening that is refused throws the owner's producer out.
            control = c._replace(connected=False, late=())
            yield f"driver {d} is told that it was fenced, and stops", w._replace(control=control).driver(d, "stopped")
        else:
            control = c._replace(owner=d, connected=True, late=())
            again = w._replace(
                control=control, wrong="a driver takes the sink back from its successor, and so on for ever"
            )
            yield f"driver {d} takes the control topic over again", again.driver(d, "announce")

    def _read(self, w: World, d: int, driver: Driver) -> Iterator[Step]:
        c = w.control
        hidden = any(record.kind == "OWNER" and record.about == d for record in c.hidden)
        trusted = not hidden or Rule.OWNER_READABLE not in self.rules
        last = c.intent[1]
        unfinished = last != NOBODY and w.txns[last].state == "open"
        if unfinished and (Rule.END_LAST_INTENT in self.rules or not trusted):
            yield f"driver {d} aborts transaction {last}, the last INTENT's", w.end(last, "aborted")
        elif trusted:
            yield self._decide_batch(w, d, driver)
        elif Rule.FREE in self.rules:
            control = c.end(NOBODY, True, w.below(self.coordinator_of(d)))
            yield f"driver {d} ends an empty transaction on the control topic", w._replace(control=control)

    def _decide_batch(self, w: World, d: int, driver: Driver) -> Step:
        newest = w.control.marker
        batch = driver.batch
        if newest == batch and Rule.REPLAY in self.rules:
            return f"driver {d} finds batch {batch} committed, and skips it", self._note(w, d, driver)
        if newest > batch and Rule.STALE in self.rules:
            return f"driver {d} finds batch {newest} committed, is behind, and stops", w.driver(d, "stopped")
        noted = newest < w.failed < batch and Rule.FAILED_NOTED in self.rules
        if noted or self._over_a_hole(w, batch):
            return f"driver {d} finds that a batch before {batch} failed, and stops", w.driver(d, "stopped")
        if w.control.intent[0] > max(batch, newest):
            w = w._replace(wrong=f"the log has an INTENT of batch {w.control.intent[0]}, and Spark hands over {batch}")
        return f"driver {d} finds that batch {batch} is to be written", w.driver(d, "open")

    def _over_a_hole(self, w: World, batch: int) -> bool:
        return Rule.HOLE in self.rules and w.control.marker < w.control.intent[0] < batch

    def _swallow(self, w: World, d: int, driver: Driver) -> Iterator[Step]:
        """User code hides that a batch failed, before or after its INTENT: Spark notes it and hands over the next."""
        batch = driver.batch
        if len(w.swallowed) == self.swallows:
            return
        passed = self._note(w, d, driver)._replace(swallowed=include(w.swallowed, batch))
        if Rule.RUN_STOPS in self.rules:
            passed = passed.driver(d, "stopped")
        words = f"batch {batch} fails in driver {d}, and user code hides it from Spark"
        first = batch if w.failed == NOBODY else min(w.failed, batch)
        yield words, passed._replace(failed=first) if Rule.FAILED_NOTED in self.rules else passed
        if Rule.FAILED_NOTED in self.rules and w.control.intent[0] == batch and self.may_be_silent(w):
            yield f"{words}, and the note in the checkpoint is lost", silent(passed)

    def _note(self, w: World, d: int, driver: Driver) -> World:
        """Return to Spark, which notes the batch and hands over the next one."""
        batch = driver.batch + 1
        w = self._no_tasks(w, driver.txn)._replace(noted=max(w.noted, batch))
        if batch == self.batches:
            return w.driver(d, "done")
        return w.driver(d, "open", batch=batch, txn=NOBODY, marker=False)

    # ---- a batch

    def _open(self, w: World, d: int, driver: Driver) -> Iterator[Step]:
        yield from self._swallow(w, d, driver)
        if self._over_a_hole(w, driver.batch):
            yield f"driver {d} finds that a batch before {driver.batch} failed, and stops", w.driver(d, "stopped")
            return
        if not self._may_open(w):
            return
        txn, opened = self._new(w, d, driver.batch)
        at = "intent" if Rule.INTENT in self.rules else "write"
        begun = opened.driver(d, at, txn=txn)
        yield f"driver {d} opens transaction {txn}", begun if at == "intent" else self._start_tasks(begun, txn)
        if self.may_be_silent(w):
            yield f"driver {d} opens transaction {txn}, and is never told", silent(opened)

    def _intent(self, w: World, d: int, driver: Driver) -> Iterator[Step]:
        lost = w.driver(d, "abort, log lost")
        if not self._can_append(w, d):
            yield f"driver {d} gets no receipt for INTENT", lost
            return
        control = w.control.store(Record("INTENT", driver.batch, driver.txn, False))
        words = f"driver {d} writes INTENT of batch {driver.batch} in transaction {driver.txn}"
        yield words, self._start_tasks(w._replace(control=control).driver(d, "write"), driver.txn)
        if self.may_be_silent(w):
            yield f"{words}, and gets no receipt", silent(lost._replace(control=control))
            yield f"driver {d} gets no receipt for INTENT, which is lost", silent(lost)

    def _start_tasks(self, w: World, txn: int) -> World:
        return w._replace(partitions=tuple(partition.task(txn, "ready") for partition in w.partitions))

    def _no_tasks(self, w: World, txn: int) -> World:
        return w if txn == NOBODY else w._replace(partitions=tuple(p.no_task(txn) for p in w.partitions))

    def _give_up(self, w: World, d: int, at: str = "abort") -> World:
        return self._no_tasks(w, w.drivers[d].txn).driver(d, at, marker=False)

    def _write(self, w: World, d: int, driver: Driver) -> Iterator[Step]:
        tasks = [partition.tasks[driver.txn] for partition in w.partitions]
        if "failed" in tasks or "again failed" in tasks:
            yield f"driver {d} hears that a task failed", self._give_up(w, d)
            return
        if Rule.ONCE in self.rules and any(task.startswith("again") for task in tasks):
            yield f"driver {d} sees that a partition was run twice", self._give_up(w, d)
            return
        if self.may_be_silent(w):
            yield f"driver {d} is told by Spark that the job failed", silent(self._give_up(w, d))
        yield from self._add_control(w, d, driver)
        reported = all(task == "reported" or task.startswith("again") for task in tasks)
        added = driver.txn in w.control.topic.added or Rule.ADD_CONTROL not in self.rules
        if not driver.marker and added and (reported or self.marker_beside):
            yield from self._send_marker(w, d, driver)
        if driver.marker and (reported or Rule.ALL_REPORTED not in self.rules):
            yield from self._ask_for_commit(w, d, driver)

    def _add_control(self, w: World, d: int, driver: Driver) -> Iterator[Step]:
        txn = driver.txn
        if txn in w.control.topic.added or driver.marker or Rule.ADD_CONTROL not in self.rules:
            return
        if w.txns[txn].state != "open":
            yield f"driver {d} is refused: transaction {txn} has ended", self._give_up(w, d)
            return
        words = f"driver {d} adds the control topic to transaction {txn}"
        added = w._replace(control=w.control.add(txn))
        yield words, added
        if self.may_be_silent(w):
            yield f"{words}, and gets no answer", silent(self._give_up(added, d))
            yield f"driver {d} gets no answer to ADD_PARTITION, which is lost", silent(self._give_up(w, d))
        if not self.predicted:
            return
        waiting = [number for number, partition in enumerate(w.partitions) if partition.tasks[txn] == "ready"]
        for count in range(1, len(waiting) + 1):
            for chosen in combinations(waiting, count):
                early = added
                for number in chosen:
                    early = early.partition(number, early.partitions[number].add(txn).task(txn, "added"))
                yield f"{words}, and partition {' and '.join(map(str, chosen))} with it", early

    def _send_marker(self, w: World, d: int, driver: Driver) -> Iterator[Step]:
        if not self._can_append(w, d):
            yield f"driver {d} gets no receipt for MARKER", self._give_up(w, d, "abort, log lost")
            return
        marker = Record("MARKER", driver.batch, driver.txn, Rule.MARKER_INSIDE in self.rules)
        words = f"driver {d} sends MARKER of batch {driver.batch} in transaction {driver.txn}"
        sent = w.driver(d, "write", marker=True)
        yield words, sent._replace(control=w.control.store(marker))
        if self.may_be_silent(w):
            after = self._give_up(w, d, "abort, log lost") if Rule.MARKER_RECEIPT in self.rules else sent
            late = w.control._replace(late=(*w.control.late, (driver.batch, driver.txn)))
            yield f"{words}, and it is still under way", silent(after._replace(control=late))

    def _ask_for_commit(self, w: World, d: int, driver: Driver) -> Iterator[Step]:
        txn = driver.txn
        if w.txns[txn].state == "open":
            committed = w.end(txn, "committed").driver(d, "commit")
            yield f"driver {d} asks for the commit of transaction {txn}, which is committed", committed
        else:
            yield from self._settle(w, d, driver, f"driver {d} asks for the commit, and transaction {txn} is not found")

    def _commit(self, w: World, d: int, driver: Driver) -> Iterator[Step]:
        yield f"driver {d} is told that batch {driver.batch} is committed", self._note(w, d, driver)
        if self.may_be_silent(w):
            yield from self._settle(silent(w), d, driver, f"driver {d} gets no answer, asks again, and it is not found")

    def _settle(self, w: World, d: int, driver: Driver, words: str) -> Iterator[Step]:
        asks = self._no_tasks(w, driver.txn)
        if Rule.LOG_DECIDES in self.rules:
            yield f"{words}: the log will tell", asks.driver(d, "announce")
            return
        yield f"{words}: it must have been aborted", asks.driver(d, "open", txn=NOBODY, marker=False)
        yield f"{words}: it must have been committed", self._note(w, d, driver)

    def _abort(self, w: World, d: int, driver: Driver) -> Iterator[Step]:
        after = {"abort": "open", "abort, log lost": "reopen", "prime end": "announce"}[driver.at]
        if w.txns[driver.txn].state == "open":
            w = w.end(driver.txn, "aborted")
        yield f"driver {d} aborts transaction {driver.txn}", w.driver(d, after, txn=NOBODY)

    # ---- small parts

    def _may_open(self, w: World) -> bool:
        return sum(matter(w)) < self.transactions

    def _new(self, w: World, d: int, batch: int) -> tuple[int, World]:
        opened = w._replace(
            txns=(*w.txns, Txn("open", batch, self.coordinator_of(d))),
            partitions=tuple(p._replace(tasks=(*p.tasks, "")) for p in w.partitions),
        )
        return len(w.txns), opened

    def _can_append(self, w: World, d: int) -> bool:
        return Rule.FENCE not in self.rules or (w.control.owner == d and w.control.connected)

    # ---- what the checker asks besides

    def fault(self, state: World) -> str | None:
        """See `sink_faults`."""
        return sink_faults.fault(self, state)

    def stuck(self, state: World) -> str | None:
        """See `sink_faults`."""
        return sink_faults.stuck(state)

    def canonical(self, state: World) -> World:
        """See `sink_canonical`."""
        return canonical(state, self)
