"""The world of the sink's model: the broker's topics, a coordinator, tasks, drivers.

Everything here is what Pulsar does (DESIGN §3, held against a real broker by tests/contract), and nothing
that the sink decides. Values are small tuples, since each state is hashed and kept.

A transaction is a number, in the order in which they were opened. The part that no longer matters of one that has ended
is forgotten, and the others are counted anew: so there can be any number of transactions in a run, and the states stay
few.
"""

from __future__ import annotations

from typing import NamedTuple

NOBODY = -1

Numbers = tuple[int, ...]


class Txn(NamedTuple):
    """A transaction at its coordinator.

    Attributes:
        state: open | committed | aborted. The coordinator does not tell how it ended.
        batch: what it was opened for; NOBODY for one that primes the log.
        coordinator: which one opened it.
    """

    state: str
    batch: int
    coordinator: int = 0


class Topic(NamedTuple):
    """The transaction buffer of a topic, in the broker that serves it.

    Attributes:
        ongoing: transactions with a record here that are open here, in the order of those records.
        aborted: transactions whose records are filtered.
        added: open transactions whose end will be told to this topic.
        held: it has held a transaction. Until then it forgets aborts.
    """

    ongoing: Numbers = ()
    aborted: Numbers = ()
    added: Numbers = ()
    held: bool = False

    def store(self, txn: int) -> Topic:
        """Take a record. The broker looks up no transaction: a late record opens one that is over again, here."""
        known = txn in self.ongoing or txn in self.aborted
        return self._replace(ongoing=self.ongoing if known else (*self.ongoing, txn), held=True)

    def end(self, txn: int, commit: bool, below: Numbers) -> Topic:
        """Take the end of a transaction; `below` are those that the low watermark of its coordinator has passed."""
        added = without(self.added, txn)
        if not commit and not self.held:
            return self._replace(added=added)
        ongoing, aborted = without(self.ongoing, txn), self.aborted
        if not commit:
            aborted = include(aborted, txn)
        while ongoing and ongoing[0] in below:
            aborted, ongoing = include(aborted, ongoing[0]), ongoing[1:]
        return Topic(ongoing, aborted, added, self.held)


class Partition(NamedTuple):
    """A partition of the data, and the tasks that write to it: one for each transaction.

    Attributes:
        topic: its transaction buffer.
        rows: for each row stored, whose transaction it is in.
        tasks: by transaction: "" (none) | ready | added | reported | failed, and "again ready", "again added",
            "again reported" for a partition that Spark has run a second time.
        late: transactions of frames that are under way, and whose sender waits no longer.
        settled: by batch, how many rows of transactions that are forgotten can be read.
    """

    topic: Topic
    rows: Numbers
    tasks: tuple[str, ...]
    late: Numbers
    settled: Numbers

    def store(self, txn: int) -> Partition:
        """Take a row."""
        return self._replace(rows=tuple(sorted((*self.rows, txn))), topic=self.topic.store(txn))

    def end(self, txn: int, commit: bool, below: Numbers) -> Partition:
        """Take the end of a transaction."""
        return self._replace(topic=self.topic.end(txn, commit, below))

    def add(self, txn: int) -> Partition:
        """Become part of a transaction."""
        return self._replace(topic=self.topic._replace(added=include(self.topic.added, txn)))

    def task(self, txn: int, state: str) -> Partition:
        """Move the task of a transaction on."""
        return self._replace(tasks=(*self.tasks[:txn], state, *self.tasks[txn + 1 :]))

    def no_task(self, txn: int) -> Partition:
        """Wait for a task no longer. If it was about to send, it may still do so, later."""
        stray = self.under_way(txn, True) if self.tasks[txn].endswith("added") else self
        return stray.task(txn, "")

    def under_way(self, txn: int, yes: bool) -> Partition:
        """Note that a frame of a transaction is under way and its sender no longer waits, or that none is."""
        return self._replace(late=include(self.late, txn) if yes else without(self.late, txn))


class Record(NamedTuple):
    """A record of the control log: OWNER of a driver, INTENT or MARKER of a batch, or PRIMING."""

    kind: str
    about: int
    txn: int
    inside: bool


class Control(NamedTuple):
    """The control topic. The sum of all that is readable for good is kept.

    Attributes:
        topic: its transaction buffer.
        begun: some record can be read.
        marker: batch of the newest MARKER that can be read.
        intent: batch and transaction of the last INTENT that can be read.
        hidden: the records from the first of an open transaction on.
        owner: the driver that fenced last.
        connected: its producer is open.
        late: MARKER records under way: (batch, transaction).
    """

    topic: Topic
    begun: bool
    marker: int = NOBODY
    intent: tuple[int, int] = (NOBODY, NOBODY)
    hidden: tuple[Record, ...] = ()
    owner: int = NOBODY
    connected: bool = False
    late: tuple[tuple[int, int], ...] = ()

    def store(self, record: Record) -> Control:
        """Take a record."""
        topic = self.topic.store(record.txn) if record.inside else self.topic
        return self._replace(topic=topic, hidden=(*self.hidden, record))._read_on()

    def end(self, txn: int, commit: bool, below: Numbers) -> Control:
        """Take the end of a transaction."""
        return self._replace(topic=self.topic.end(txn, commit, below))._read_on()

    def add(self, txn: int) -> Control:
        """Become part of a transaction."""
        return self._replace(topic=self.topic._replace(added=include(self.topic.added, txn)))

    def _read_on(self) -> Control:
        """Move what has become readable from `hidden` to what it adds up to."""
        begun, marker, intent = self.begun, self.marker, self.intent
        at = 0
        for record in self.hidden:
            if record.inside and record.txn in self.topic.ongoing:
                break
            at += 1
            if record.inside and record.txn in self.topic.aborted:
                continue
            begun = True
            if record.kind == "MARKER":
                marker = max(marker, record.about)
            elif record.kind == "INTENT":
                intent = (record.about, record.txn)
        return self._replace(begun=begun, marker=marker, intent=intent, hidden=self.hidden[at:]) if at else self


class Driver(NamedTuple):
    """One run of the query.

    Attributes:
        at: where it is in its program.
        batch: the batch that Spark has handed it.
        txn: the transaction in hand, or NOBODY.
        marker: its MARKER has got its receipt.
    """

    at: str = "off"
    batch: int = 0
    txn: int = NOBODY
    marker: bool = False


class World(NamedTuple):
    """A state.

    Attributes:
        control, partitions, txns, drivers: see there.
        noted: how many batches Spark's checkpoint has.
        silences: how often a driver or task has waited for an answer in vain; bounded.
        swallowed: batches that failed, and that Spark has noted all the same.
        failed: the first batch that the checkpoint notes as failed, or NOBODY.
        wrong: what the last step did that must never be done.
    """

    control: Control
    partitions: tuple[Partition, ...]
    txns: tuple[Txn, ...]
    drivers: tuple[Driver, ...]
    noted: int = 0
    silences: int = 0
    swallowed: Numbers = ()
    failed: int = NOBODY
    wrong: str = ""

    def driver(self, number: int, at: str, **changes: object) -> World:
        """Move one driver on."""
        moved = self.drivers[number]._replace(at=at, **changes)  # type: ignore[arg-type]
        return self._replace(drivers=(*self.drivers[:number], moved, *self.drivers[number + 1 :]))

    def partition(self, number: int, changed: Partition) -> World:
        """Replace one partition."""
        return self._replace(partitions=(*self.partitions[:number], changed, *self.partitions[number + 1 :]))

    def end(self, txn: int, state: str) -> World:
        """End a transaction on all its topics, and let the coordinator forget it.

        In Pulsar the topics hear of it one after the other. A caller that asks for anything of the transaction
        meanwhile is told to ask again, so that is as if this were done at once, and it asked later.
        """
        commit, coordinator = state == "committed", self.txns[txn].coordinator
        below = self.below(coordinator)
        control = self.control.end(txn, commit, below) if txn in self.control.topic.added else self.control
        ended = (p.end(txn, commit, below) if txn in p.topic.added else p for p in self.partitions)
        changed = self.txns[txn]._replace(state=state)
        txns = (*self.txns[:txn], changed, *self.txns[txn + 1 :])
        return self._replace(control=control, partitions=tuple(ended), txns=txns)

    def below(self, coordinator: int) -> Numbers:
        """Transactions of a coordinator older than its oldest that is open: below its low watermark."""
        passed = []
        for number, txn in enumerate(self.txns):
            if txn.coordinator == coordinator:
                if txn.state == "open":
                    break
                passed.append(number)
        return tuple(passed)


def include(numbers: Numbers, number: int) -> Numbers:
    """Put one number in."""
    return numbers if number in numbers else tuple(sorted((*numbers, number)))


def without(numbers: Numbers, number: int) -> Numbers:
    """Take one number out."""
    return tuple(other for other in numbers if other != number) if number in numbers else numbers
