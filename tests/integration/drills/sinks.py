"""The fate of a query's output when an accident happens and one rule of the protocol is broken.

Each scenario has an accident in it that the protocol survives; with its rule broken it does not. The rules are those
of `tests.models.sink_rules`, which the model looks at too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from unittest import mock

from eos.commit import decision as commit
from eos.commit.attempt import attempt
from eos.commit.control_log import Marker
from eos.commit.owner import Owner
from eos.delivery.row_writer import RowWriter, WriteReport, send_all
from eos.errors import ConnectionLost, DamagedLog, EosError, Fenced, InvalidInput, NotCommitted, StaleBatch
from eos.pulsar.net.client import Access, Client, Coordinator, Producer
from eos.pulsar.net.in_flight import InFlight
from eos.pulsar.protocol.producer import ProducerIdentity
from eos.pulsar.protocol.schemas import Declared
from eos.pulsar.wire.txn import TxnId
from tests.integration.drills.query import BATCHES, HIT, SIZE, Died, Driver, Query, deliver
from tests.models.sink_rules import Rule
from tests.simulation import broken
from tests.simulation.job import Sends

# ---- the scenarios; each plays the query to its end, with the rule kept or broken


def dies_while_writing(query: Query, *, kept: bool) -> None:
    """The driver dies with half of a batch sent. Broken: the batch was marked in the log before its data."""
    driver = Driver(query)
    driver.run(until=HIT)
    owner, identity = driver.owner, driver.identity(HIT)
    if not kept:
        owner.log.append(
            Marker(
                owner.log.next_number(),
                identity.query_id,
                identity.run_id,
                HIT,
                attempt=1,
                txn=TxnId(0, 0),
                principal=None,
                rows={},
                bytes={},
                offsets=identity.offsets,
            )
        )

    def write(txn: TxnId) -> WriteReport:
        send_all(query.task(txn, HIT), [query.rows_of(HIT).slice(0, SIZE // 2)])
        raise Died

    with suppress(Died):
        driver.batch(HIT, write)
    driver.client.close()
    Driver(query).run()


def loses_a_receipt(query: Query, *, kept: bool) -> None:
    """The receipt of a frame is lost. Broken: the frame is sent again into the same transaction."""
    driver = Driver(query)
    driver.run(until=HIT)

    def write(txn: TxnId) -> WriteReport:
        task = query.task(txn, HIT)
        report = send_all(task, [query.rows_of(HIT)])
        if kept:
            task.abandon()
            raise ConnectionLost("no receipt came")
        send_all(task, [query.rows_of(HIT)])
        task.finish()
        return report

    driver.batch(HIT, write)
    driver.run()


def a_task_is_run_twice(query: Query, *, kept: bool) -> None:
    """Spark runs a partition of the job twice. Broken: the driver doesn't look how often it was run."""
    driver = Driver(query)
    driver.run(until=HIT)

    def write(txn: TxnId) -> WriteReport:
        for _ in range(2):
            result = driver.writing(HIT)(txn)
        if kept:
            raise NotCommitted("a partition was run twice")
        return result

    driver.batch(HIT, write)
    driver.run()


def two_drivers(query: Query, *, kept: bool) -> None:
    """A second driver takes over; the first doesn't know. Broken: the control topic has no fencing."""
    client = Client if kept else Unfenced
    former = Driver(query, client=client)
    former.run(until=HIT)
    successor = Driver(query, client=client)
    with suppress(Fenced):
        former.batch(HIT)
        query.committed.discard(HIT)  # the successor began before that was noted
    successor.run()


class Unfenced(Client):
    """Opens every producer as a shared one."""

    def producer(
        self,
        topic: str,
        *,
        access: Access = "shared",
        topic_epoch: int | None = None,
        budget: InFlight | None = None,
        schema: Declared | None = None,
        stamped: bool = True,
        introduction: ProducerIdentity | None = None,
    ) -> Producer:
        return super().producer(topic, budget=budget, schema=schema, stamped=stamped, introduction=introduction)


def a_zombie_sends_late(query: Query, *, kept: bool) -> None:
    """A task sends once more after the commit. Broken: its producers were not closed before."""
    driver = Driver(query)
    driver.run(until=HIT)
    tasks: list[RowWriter] = []

    def write(txn: TxnId) -> WriteReport:
        tasks.append(query.task(txn, HIT, RowWriter if kept else LeavesProducersOpen))
        return deliver(tasks[0], query.rows_of(HIT))

    driver.batch(HIT, write)
    with suppress(EosError):
        deliver(tasks[0], query.rows_of(HIT).slice(0, 1))
    driver.run()


class LeavesProducersOpen(RowWriter):
    """Awaits the receipts, and reports."""

    def finish(self) -> None:
        for producer in self._producers.values():
            producer.flush()


def a_task_is_slow(query: Query, *, kept: bool) -> None:
    """One of two tasks takes long. Broken: the commit doesn't wait for its report."""
    driver = Driver(query)
    driver.run(until=HIT)
    slow: list[RowWriter] = []

    def write(txn: TxnId) -> WriteReport:
        slow.append(query.task(txn, HIT))
        report = deliver(query.task(txn, HIT), query.rows_of(HIT).slice(0, SIZE // 2))
        if kept:
            report.merge(deliver(slow[0], query.rows_of(HIT).slice(SIZE // 2)))
        return report

    driver.batch(HIT, write)
    if not kept:
        with suppress(EosError):
            deliver(slow[0], query.rows_of(HIT).slice(SIZE // 2))
    driver.run()


def partitions_in_the_transaction(query: Query, *, kept: bool) -> None:
    """Nothing happens. Broken: the partitions are not added to the transaction."""
    driver = Driver(query)
    driver.run(until=HIT)
    driver.batch(HIT, driver.writing(HIT, RowWriter if kept else AddsNothing))
    driver.run()


class AddsNothing(RowWriter):
    """Sends without ADD_PARTITION_TO_TXN."""

    def _add(self, txn: TxnId, new: list[str]) -> None:
        return


def the_answer_to_the_commit_is_lost(query: Query, *, kept: bool) -> None:
    """The batch is committed, and the answer is lost. Broken: "it has ended" is taken for "it was aborted"."""
    driver = Driver(query, owner=Owner if kept else broken.SettlesBlindly, client=LosesAnswer)
    driver.run(until=HIT)
    assert isinstance(driver.client, LosesAnswer)
    driver.client.loses = True
    driver.run()


class LosesAnswer(Client):
    """Doesn't hear what became of a commit, once `loses` is set."""

    loses = False

    def coordinator(self, index: int) -> Coordinator:
        real = super().coordinator(index)
        if not self.loses:
            return real

        def end(txn: TxnId, commit: bool, sent: Callable[[], None] | None = None) -> None:
            if not (commit and self.loses):
                return real.end(txn, commit, sent)
            self.loses = False
            with Client(self.cluster) as other:
                other.coordinator(index).end(txn, commit)
            raise ConnectionLost("the answer was lost")

        patched = mock.Mock(wraps=real)
        patched.end = end
        return patched


def dies_before_spark_notes_the_batch(query: Query, *, kept: bool) -> None:
    """The driver dies between the commit and Spark's own note. Broken: the batch is written again.

    The log notices that too, when it has happened.
    """
    driver = Driver(query)
    driver.run(until=HIT + 1)
    query.committed.discard(HIT)
    driver.client.close()
    with suppress(DamagedLog), _without_rows("replay", "other input", kept=kept):
        Driver(query).run()


def an_old_checkpoint(query: Query, *, kept: bool) -> None:
    """The checkpoint is restored from a backup older than the output. Broken: older batches are written anew.

    The log notices that too, when it has happened.
    """
    driver = Driver(query)
    driver.run()
    query.committed.difference_update(range(HIT + 1, BATCHES))
    driver.client.close()
    with suppress(StaleBatch, DamagedLog), _without_rows("stale", "damaged", kept=kept):
        Driver(query).run()


def a_failure_is_hidden_from_spark(query: Query, *, kept: bool) -> None:
    """User code swallows the error of a batch, and Spark notes it. Broken: the batches after it are written anyway.

    Kept, the next batch is refused, and Spark is made to run the failed one again, as the error says.
    """
    driver = Driver(query)
    driver.run(until=HIT)

    def fail(txn: TxnId) -> WriteReport:
        task = query.task(txn, HIT)
        send_all(task, [query.rows_of(HIT).slice(0, SIZE // 2)])
        task.abandon()
        raise NotCommitted("what user code swallows")

    with suppress(NotCommitted):
        attempt(driver.owner, HIT, driver.identity(HIT), Sends(fail))
    query.committed.add(HIT)
    driver.client.close()
    successor = Driver(query)
    with _without_rows("hole", kept=kept):
        try:
            successor.run()
        except InvalidInput:
            query.committed.discard(HIT)
            successor.run()


@contextmanager
def _without_rows(*names: str, kept: bool) -> Iterator[None]:
    with mock.patch.object(commit, "DECISION", commit.DECISION if kept else broken.without_rules(*names)):
        yield


def a_batch_in_two_transactions(query: Query) -> None:
    """The fault that the protocol as a whole is there for: half of a batch is committed after the next one."""
    driver = Driver(query)
    driver.run(until=HIT)

    def first_half(txn: TxnId) -> WriteReport:
        return deliver(query.task(txn, HIT), query.rows_of(HIT).slice(0, SIZE // 2))

    driver.batch(HIT, first_half)
    driver.batch(HIT + 1)
    coordinator = driver.owner.coordinator()
    txn = coordinator.new_transaction(60_000)
    deliver(query.task(txn, HIT), query.rows_of(HIT).slice(SIZE // 2))
    coordinator.end(txn, commit=True)
    driver.run()


@dataclass(frozen=True)
class Scenario:
    """An accident, and what the oracle must find where the rule is broken."""

    play: Callable[..., None]
    finds: frozenset[str]


def _finds(play: Callable[..., None], *kinds: str) -> Scenario:
    return Scenario(play, frozenset(kinds))


SCENARIOS = {
    Rule.MARKER_INSIDE: _finds(dies_while_writing, "lost"),
    Rule.NO_RESEND: _finds(loses_a_receipt, "duplicated"),
    Rule.ONCE: _finds(a_task_is_run_twice, "duplicated"),
    Rule.FENCE: _finds(two_drivers, "duplicated"),
    Rule.CLOSE: _finds(a_zombie_sends_late, "lost", "torn"),
    Rule.ALL_REPORTED: _finds(a_task_is_slow, "lost", "torn"),
    Rule.ADD_DATA: _finds(partitions_in_the_transaction, "lost"),
    Rule.LOG_DECIDES: _finds(the_answer_to_the_commit_is_lost, "duplicated"),
    Rule.REPLAY: _finds(dies_before_spark_notes_the_batch, "duplicated"),
    Rule.STALE: _finds(an_old_checkpoint, "duplicated"),
    Rule.HOLE: _finds(a_failure_is_hidden_from_spark, "lost"),
}

WITHOUT_A_SCENARIO = {
    Rule.EPOCH,  # breaking it stops the job, and spoils no output
    Rule.FREE,  # likewise
    Rule.OWNER_READABLE,  # these need an accident inside the broker at a moment that a test can't choose:
    Rule.INTENT,  # the model and the simulation choose it
    Rule.END_LAST_INTENT,
    Rule.ONE_COORDINATOR,
    Rule.PRIME,
    Rule.RECEIPTS,
    Rule.ADD_CONTROL,
    Rule.MARKER_RECEIPT,
    Rule.RUN_STOPS,  # these are kept above the commit, where foreachBatch calls the sink: with a real Spark they are
    Rule.FAILED_NOTED,  # held by tests/integration/sinks/test_foreach_batch.py
}
