"""A streaming query on the simulated cluster: what Spark and the sink do around the protocol, and the oracle.

Rows are `batch/partition/row`, so that whatever was written twice or not at all can be counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from eos.commit.attempt import Written, attempt, decide
from eos.commit.control_log import Registration
from eos.commit.decision import Action, Identity
from eos.commit.owner import Owner, Settings
from eos.commit.ports import CoordinatorPort
from eos.errors import CommitUnknown, EosError, NotCommitted
from eos.pulsar.wire.txn import TxnId
from eos.steps import Observer, Step, unobserved
from tests.simulation.client import Client, Producer
from tests.simulation.world import Alone, Scheduler

NAME = "sim"
CONTROL = "persistent://public/default/__eos-sim"
DATA = ("data-0", "data-1")
ROWS = 2
QUERY = "query-1"
SETTINGS = Settings(ttl_s=60, patience_s=300, stop_patience_s=5, read_timeout_s=1, housekeeping_ttl_s=20)


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
Writer = Callable[[Client, int, Observer], Callable[[TxnId, CoordinatorPort], Written]]


def write_data(client: Client, batch_id: int, observer: Observer = unobserved) -> Callable[..., Written]:
    """Write a batch as the sink's tasks do: add, send, await each receipt, close."""

    def write(txn: TxnId, coordinator: CoordinatorPort) -> Written:
        partitions = partitions_of(batch_id)
        observer(Step.ADD_PARTITIONS, "before", batch_id)
        coordinator.add_partitions(txn, partitions)
        observer(Step.ADD_PARTITIONS, "after", batch_id)
        producers = [client.producer(partition) for partition in partitions]
        observer(Step.FIRST_SEND, "before", batch_id)
        for number, producer in enumerate(producers):
            for place, row in enumerate(rows_of(batch_id, producer.topic)):
                producer.send_record(row, txn)
                if number == place == 0:
                    observer(Step.FIRST_SEND, "after", batch_id)
        observer(Step.ALL_SENT, "before", batch_id)
        observer(Step.ALL_SENT, "after", batch_id)
        observer(Step.CLOSE_PRODUCERS, "before", batch_id)
        for producer in producers:
            producer.close()
        observer(Step.CLOSE_PRODUCERS, "after", batch_id)
        return Written(dict.fromkeys(partitions, ROWS), dict.fromkeys(partitions, 20))

    return write


@dataclass
class KeptProducers:
    """Writes batches as the driver does on its own path: what a batch has given back serves the next of the run.

    A client is a run's own, and so are its producers.
    """

    kept: dict[tuple[Client, str], Producer] = field(default_factory=dict)

    def __call__(self, client: Client, batch_id: int, observer: Observer = unobserved) -> Callable[..., Written]:
        """Make the function that writes a batch."""

        def write(txn: TxnId, coordinator: CoordinatorPort) -> Written:
            partitions = partitions_of(batch_id)
            coordinator.add_partitions(txn, partitions)
            for partition in partitions:
                producer = self.kept.pop((client, partition), None) or client.producer(partition)
                for row in rows_of(batch_id, partition):
                    producer.send_record(row, txn)
                self.kept[client, partition] = producer
            return Written(dict.fromkeys(partitions, ROWS), dict.fromkeys(partitions, 20))

        return write


@dataclass
class Job:
    """Runs of one query, on one checkpoint.

    Attributes:
        target: a run ends when it has committed this batch.
        owner, writer, attempt, decide: replaced by the broken variants.
        ends: how each run ended; None for a run that came to its end.
    """

    world: Scheduler | Alone
    target: int
    owner: OwnerFactory = Owner
    writer: Callable[..., Callable[..., Written]] = write_data
    attempt: Callable[..., None] = attempt
    decide: Callable[..., Action] = decide
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
            client, NAME, CONTROL, SETTINGS, observer=observer, sleep=sleep, clock=lambda: self.world.broker.now
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
        if self.decide(owner, batch_id, identity) is Action.SKIP:
            self.skipped += 1
            return
        for left in reversed(range(4)):
            try:
                return self.attempt(owner, batch_id, identity, self.writer(client, batch_id, observer))
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
