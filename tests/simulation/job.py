"""A streaming query on the simulated cluster: what Spark and the sink do around the protocol, and the oracle.

Rows are `batch/partition/row`, so that whatever was written twice or not at all can be counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from eos.commit.attempt import attempt
from eos.commit.decision import Action, Identity
from eos.commit.owner import Owner
from eos.commit.ports import DeliveryPort, Written
from eos.commit.registration import Registration
from eos.commit.retry import OwnerSettings
from eos.delivery.row_writer import WriteReport
from eos.errors import CommitUnknown, EosError, NetworkError, NotCommitted
from eos.pulsar.wire.txn import TxnId
from eos.steps import Observer, Step, unobserved
from tests.simulation.client import Client, Producer
from tests.simulation.world import Alone, Scheduler

NAME = "sim"
CONTROL = "persistent://public/default/__eos-sim"
DATA = ("data-0", "data-1")
ROWS = 2
QUERY = "query-1"
SETTINGS = OwnerSettings(ttl_s=60, patience_s=300, stop_patience_s=5, read_timeout_s=1, housekeeping_ttl_s=20)


@dataclass
class Checkpoint:
    """What the query's checkpoint folder holds; shared by all its runs."""

    offsets: dict[int, str] = field(default_factory=dict)
    committed: set[int] = field(default_factory=set)
    registration: Registration | None = None

    def next_batch(self) -> int:
        """Where a new run starts: the batch after the last one that Spark noted."""
        return following(max(self.committed, default=None))

    def offsets_of(self, batch_id: int) -> str:
        """Spark plans a batch once; a replay reads the file."""
        return self.offsets.setdefault(batch_id, f'v1\n{{"batchTimestampMs":{batch_id}}}\n{{"logOffset":3}}')


def following(batch_id: int | None) -> int:
    """Number the batches 0, 1, 2, 4, 5, 6, 8 ...: with gaps, which Spark allows."""
    if batch_id is None:
        return 0
    return batch_id + 2 if batch_id % 4 == 2 else batch_id + 1


def partitions_of(batch_id: int) -> tuple[str, ...]:
    """Not every batch has rows for every partition."""
    return DATA if batch_id % 3 else DATA[:1]


def rows_of(batch_id: int, partition: str) -> list[bytes]:
    """The rows of a batch for one partition."""
    return [f"{batch_id}/{partition}/{row}".encode() for row in range(ROWS)]


OwnerFactory = Callable[..., Owner]
Deliveries = Callable[[Client, int, Observer], DeliveryPort]
"""Makes the delivery of a batch."""


@dataclass
class Sends:
    """A delivery in one function: nothing is left to await, and nothing is open after it."""

    send: Callable[[TxnId], Written]

    def prepare(self) -> None:
        """See DeliveryPort."""

    def finish(self) -> None:
        """See DeliveryPort."""

    def abandon(self) -> tuple[str, ...]:
        """See DeliveryPort."""
        return ()


class WriteData:
    """Writes a batch as the sink's tasks do: add and send; then await each receipt, and close."""

    def __init__(self, client: Client, batch_id: int, observer: Observer = unobserved) -> None:
        self.client, self.batch_id, self.observer = client, batch_id, observer
        self.open: list[Producer] = []
        self.missing: NetworkError | None = None

    def prepare(self) -> None:
        """See DeliveryPort."""

    def send(self, txn: TxnId) -> Written:
        """Send all rows. A receipt that doesn't come is missed by `finish`, as it is on a real connection."""
        partitions = partitions_of(self.batch_id)
        self.missing = None
        self.add(txn, partitions)
        for partition in partitions:
            self.open.append(self.producer(partition))
        self.observer(Step.FIRST_SEND, "before", self.batch_id)
        for number, producer in enumerate(self.open):
            for place, row in enumerate(rows_of(self.batch_id, producer.topic)):
                self.send_row(producer, row, txn)
                if number == place == 0:
                    self.observer(Step.FIRST_SEND, "after", self.batch_id)
        return WriteReport(dict.fromkeys(partitions, ROWS), dict.fromkeys(partitions, 20))

    def add(self, txn: TxnId, partitions: tuple[str, ...]) -> None:
        """Make the partitions part of the transaction."""
        self.observer(Step.ADD_PARTITIONS, "before", self.batch_id)
        self.client.coordinator(txn.coordinator).add_partitions(txn, partitions)
        self.observer(Step.ADD_PARTITIONS, "after", self.batch_id)

    def producer(self, partition: str) -> Producer:
        """Give a producer of a partition."""
        return self.client.producer(partition)

    def send_row(self, producer: Producer, row: bytes, txn: TxnId) -> None:
        """Send a row. Once a receipt is missing, nothing more is sent."""
        try:
            if self.missing is None:
                producer.send_record(row, txn)
        except NetworkError as why:
            self.missing = why

    def finish(self) -> None:
        """Raise what is missing; then close."""
        self.observer(Step.ALL_SENT, "before", self.batch_id)
        if self.missing is not None:
            raise self.missing
        self.observer(Step.ALL_SENT, "after", self.batch_id)
        self.observer(Step.CLOSE_PRODUCERS, "before", self.batch_id)
        while self.open:
            self.give_back(self.open.pop())
        self.observer(Step.CLOSE_PRODUCERS, "after", self.batch_id)

    def give_back(self, producer: Producer) -> None:
        """Close a producer."""
        producer.close()

    def abandon(self) -> tuple[str, ...]:
        """Give up what is open, and wait for nothing: what arrives later may hold readers up."""
        while self.open:
            self.open.pop().abandon()
        return ()


@dataclass
class KeptProducers:
    """Writes batches as the driver does on its own path: what a batch has given back serves the next of the run.

    A client is a run's own, and so are its producers.
    """

    kept: dict[tuple[Client, str], Producer] = field(default_factory=dict)

    def __call__(self, client: Client, batch_id: int, observer: Observer = unobserved) -> DeliveryPort:
        """Make the delivery of a batch."""
        return _KeepsProducers(self.kept, client, batch_id, observer)


class _KeepsProducers(WriteData):
    def __init__(
        self, kept: dict[tuple[Client, str], Producer], client: Client, batch_id: int, observer: Observer
    ) -> None:
        super().__init__(client, batch_id, observer)
        self.kept = kept

    def producer(self, partition: str) -> Producer:
        return self.kept.pop((self.client, partition), None) or super().producer(partition)

    def give_back(self, producer: Producer) -> None:
        self.kept[self.client, producer.topic] = producer


class InTurn:
    """Does two things in turn, the second or the first of them first: a driver of the simulation is one thread.

    Both are done though one fails, as both go on side by side; after a crash nothing is.
    """

    def __init__(self, *, second_first: bool) -> None:
        self.second_first = second_first

    def __call__(self, first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Any, Any]:
        """See `side_by_side`."""
        done: dict[Callable[[], Any], Any] = {}
        failed: dict[Callable[[], Any], BaseException] = {}
        for work in (second, first) if self.second_first else (first, second):
            try:
                done[work] = work()
            except (Exception, KeyboardInterrupt) as why:
                failed[work] = why
        for work in (second, first):
            if work in failed:
                raise failed[work]
        return done[first], done[second]


@dataclass
class Job:
    """Runs of one query, on one checkpoint.

    Attributes:
        target: a run ends when it has committed this batch.
        owner, delivery, client: replaced by the broken variants.
        second_first: of MARKER and `finish`, which go on side by side, `finish` comes first.
        ends: how each run ended; None for a run that came to its end.
    """

    world: Scheduler | Alone
    target: int
    owner: OwnerFactory = Owner
    delivery: Deliveries = WriteData
    second_first: bool = True
    client: Callable[..., Client] = Client
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    ends: dict[str, EosError | None] = field(default_factory=dict)
    skipped: int = 0

    def run(self, run_id: str, observer: Observer = unobserved) -> None:
        """One run of the query, from its start to its end."""
        try:
            self._run(run_id, observer)
        except EosError as why:
            self.ends[run_id] = why
        else:
            self.ends[run_id] = None

    def _run(self, run_id: str, observer: Observer) -> None:
        client = self.client(self.world)
        sleep = self.world.sleep
        owner = self.owner(
            *(client, NAME, CONTROL, SETTINGS),
            observer=observer,
            sleep=sleep,
            clock=lambda: self.world.broker.now,
            at_once=InTurn(second_first=self.second_first),
        )
        batch_id = self.checkpoint.next_batch()
        owner.take_over(QUERY, run_id, self.checkpoint.registration)
        self.checkpoint.registration = owner.registration
        while batch_id <= self.target:
            identity = Identity(QUERY, run_id, self.checkpoint.offsets_of(batch_id))
            self._one(client, owner, batch_id, identity, observer)
            observer(Step.RETURN, "before", batch_id)
            self.checkpoint.committed.add(batch_id)
            observer(Step.RETURN, "after", batch_id)
            batch_id = following(batch_id)

    def _one(self, client: Client, owner: Owner, batch_id: int, identity: Identity, observer: Observer) -> None:
        delivery = self.delivery(client, batch_id, observer)
        for left in reversed(range(4)):
            try:
                self.skipped += attempt(owner, batch_id, identity, delivery) is Action.SKIP
                return
            except (NotCommitted, CommitUnknown):
                if not left:
                    raise


@dataclass(frozen=True)
class Verdict:
    """What a reader finds at last, against what it should find."""

    lost: list[str]
    doubled: list[str]
    torn: list[int]

    @property
    def exactly_once(self) -> bool:
        """True when every row is there once."""
        return not (self.lost or self.doubled or self.torn)


def verdict(job: Job) -> Verdict:
    """Count the rows of all batches up to the last one that Spark noted."""
    broker = job.world.broker
    found = Counter(e.data for topic in DATA for e in broker.topic(topic).readable())
    expected: Counter[bytes] = Counter()
    torn = []
    batch_id = 0
    last = max(job.checkpoint.committed, default=-1)
    while batch_id <= last:
        rows = Counter(row for partition in partitions_of(batch_id) for row in rows_of(batch_id, partition))
        expected += rows
        if 0 < sum(1 for row in rows if found[row]) < len(rows):
            torn.append(batch_id)
        batch_id = following(batch_id)
    return Verdict(sorted(map(bytes.decode, expected - found)), sorted(map(bytes.decode, found - expected)), torn)


RECOVERY = 10
"""Number of the first run after the faults; plans have no faults from here on."""


def recover(job: Job) -> None:
    """Bring everything to rest: late frames arrive, and new runs finish the job and four batches more.

    The batches at the end heal the data topics, as the next batches of a real job would.
    """
    assert isinstance(job.world, Scheduler)
    target = job.target
    for number in range(RECOVERY, RECOVERY + 4):
        while job.world.broker.late:
            job.world.broker.deliver(0)
        job.target = max(target, job.checkpoint.next_batch()) + 4
        run_id = f"recovery-{number}"
        job.world.run([partial(job.run, run_id)], first=number)
        if job.ends[run_id] is None:
            break
    while job.world.broker.work():
        pass
