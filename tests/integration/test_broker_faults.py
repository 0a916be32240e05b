"""The broker is killed in mid-batch and in mid-commit, and comes back on its data: each row arrives once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import eos
from eos.commit.retry import Retry, Waits
from eos.config import Cluster
from eos.local import LocalPulsar
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.topics import partition_name
from eos.steps import Observer, Phase, Step
from tests.conftest import START_S, create_topic
from tests.crash.job import prepare, start
from tests.crash.moments import Gate, Moment
from tests.crash.process import account_for
from tests.integration.test_pytest_eos import users_tests
from tests.reading import values_of

pytestmark = pytest.mark.slow

ROWS = 400
DEATHS: dict[int, list[tuple[Step, Phase]]] = {
    1_000: [(Step.FIRST_SEND, "after"), (Step.MARKER, "before"), (Step.END_SENT, "after")],
    0: [(Step.INTENT, "after"), (Step.FIRST_SEND, "after"), (Step.END_SENT, "before")],
}


@dataclass(frozen=True)
class Gates:
    """Several gates, each at a moment of its own."""

    gates: tuple[Gate, ...]

    def __call__(self, step: Step, phase: Phase, batch_id: int | None) -> None:
        for gate in self.gates:
            gate(step, phase, batch_id)


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalPulsar]:
    """A broker that the tests of this module kill and start again."""
    with LocalPulsar(start_timeout_s=START_S) as started:
        yield started


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("small_batch_rows", list(DEATHS), ids=["driver path", "task path"])
def test_the_broker_dies_in_mid_batch_and_in_mid_commit(
    spark: SparkSession, broker: LocalPulsar, tmp_path: Path, small_batch_rows: int
) -> None:
    files = len(DEATHS[small_batch_rows]) + 2
    topic = create_topic(broker.admin_url, "rows", 2)
    job = prepare(broker.service_url, topic, tmp_path, files, ROWS)
    gates = tuple(
        Gate(Moment(step, phase, batch_id), str(tmp_path / f"gate-{batch_id}"))
        for batch_id, (step, phase) in enumerate(DEATHS[small_batch_rows], 1)
    )
    sink = eos.sink(
        job.service_url,
        topic=topic,
        name=job.name,
        small_batch_rows=small_batch_rows,
        observer=Gates(gates),
        attempts=50,  # on a busy machine the broker is away for longer than the default's pauses last
    )
    query = start(spark, job, sink)
    for gate in gates:
        gate.wait()
        broker.kill()
        if gate.moment.step is Step.FIRST_SEND:
            gate.open()  # the batch goes on while there is no broker
        broker.start()
        gate.open()
    query.awaitTermination()
    assert sink.metrics.attempts >= files
    result = account_for(job.service_url, topic, files, ROWS)
    assert result.is_exact(), f"{result}\n{evidence(broker, topic, 2)}"
    assert result.found == files * ROWS


@dataclass(frozen=True)
class Die:
    """Ends the driver at a moment as SIGKILL would: nothing is cleaned up."""

    moment: Moment

    def __call__(self, step: Step, phase: Phase, batch_id: int | None) -> None:
        if self.moment.is_at(step, phase, batch_id):
            raise Died


class Died(BaseException):
    """No `except Exception` sees it."""


@pytest.mark.timeout(1200)
def test_the_broker_dies_while_a_successor_takes_over(spark: SparkSession, broker: LocalPulsar, tmp_path: Path) -> None:
    """Each driver leaves a transaction open; each successor meets a broker that dies at another step."""
    topic = create_topic(broker.admin_url, "rows", 2)

    def driver(observer: Observer) -> eos.Sink:
        return eos.sink(broker.service_url, topic=topic, name=topic.rsplit("/")[-1], observer=observer, attempts=50)

    def write(sink: eos.Sink, batch_id: int, run: str) -> None:
        rows = spark.range(batch_id * ROWS, (batch_id + 1) * ROWS).selectExpr("cast(id as string) value")
        with sink.batch(batch_id, eos.Identity("query", run, f"offsets {batch_id}")) as txn:
            txn.write(rows)

    def leave_open(batch_id: int) -> None:
        with pytest.raises(Died):
            write(driver(Die(Moment(Step.END_SENT, "before", batch_id))), batch_id, f"dies at {batch_id}")

    def restart_at(gate: Gate, early: bool) -> None:
        gate.wait()
        broker.kill()
        if early:
            gate.open()  # the takeover goes on while there is no broker
        broker.start()
        gate.open()

    moments: list[tuple[Step, Phase]] = [(Step.TAKEOVER, "before"), (Step.TAKEOVER, "after"), (Step.OWNER, "after")]
    for batch_id, (step, phase) in enumerate(moments):
        leave_open(batch_id)
        gate = Gate(Moment(step, phase, None), str(tmp_path / f"gate-{batch_id}"))
        killer = threading.Thread(target=restart_at, args=(gate, phase == "before"))
        killer.start()
        write(driver(gate), batch_id, f"takes over at {batch_id}")
        killer.join()
    assert sorted(map(int, values_of(broker.service_url, topic))) == list(range(len(moments) * ROWS))


@pytest.mark.crash
def test_a_broker_that_stays_away_leaves_the_outcome_to_the_log(
    spark: SparkSession, broker: LocalPulsar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = create_topic(broker.admin_url, "rows")
    gate = Gate(Moment(Step.END_SENT, "before", 1), str(tmp_path / "gate"))
    sink = eos.sink(broker.service_url, topic=topic, name=topic.rsplit("/")[-1], observer=gate, attempts=1)

    def rows(batch_id: int) -> DataFrame:
        return spark.range(batch_id * ROWS, (batch_id + 1) * ROWS).selectExpr("cast(id as string) value")

    def write(batch_id: int, run: str = "run") -> None:
        with sink.batch(batch_id, eos.Identity("query", run, f"offsets {batch_id}")) as txn:
            txn.write(rows(batch_id))

    def kill() -> None:
        gate.wait()
        broker.kill()
        gate.open()

    write(0)
    killer = threading.Thread(target=kill)
    killer.start()
    with monkeypatch.context() as patch:
        # Only while there is no broker: one that has come back may take its time.
        patch.setattr(Waits, "patience", lambda waits, stopped_s=0.0: Retry(1, settings=waits.settings))
        with pytest.raises(eos.CommitUnknown, match="Whether the batch is committed is not known"):
            write(1)
    killer.join()
    broker.start()
    with pytest.raises(
        eos.InvalidInput, match=r"The outcome of batch 1 is unknown.*another run_id and call the sink again"
    ):
        write(1)
    write(1, "run once more")
    write(2, "run once more")
    assert sorted(map(int, values_of(broker.service_url, topic))) == list(range(3 * ROWS))


def test_a_broker_without_transactions_is_up_without_coordinators_and_the_sink_refuses_it(
    start_pulsar: Callable[..., LocalPulsar], tmp_path: Path
) -> None:
    broker = start_pulsar(settings={"transactionCoordinatorEnabled": False})
    topic = create_topic(broker.admin_url, "rows")
    with pytest.raises(eos.InvalidInput, match="transactionCoordinatorEnabled=true"):
        eos.sink(broker.service_url, topic=topic, name="none")
    listed = httpx.get(f"{broker.admin_url}/admin/v2/persistent/public/default", timeout=30).json()
    assert listed == [topic], "nothing was created"
    with Client(Cluster(broker.service_url)) as client, pytest.raises(eos.InvalidInput, match="transaction"):
        client.coordinators()
    done = users_tests(tmp_path, broker.service_url, broker.admin_url)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--eos-service-url names no Pulsar for these tests" in done.stdout
    assert "transactionCoordinatorEnabled=true" in done.stdout


def test_what_is_not_committed_stays_hidden_where_transactions_were_switched_off(
    spark: SparkSession, start_pulsar: Callable[..., LocalPulsar]
) -> None:
    """Such a broker delivers the rows of each aborted try, and the MARKERs of the control log among them."""
    broker = start_pulsar()
    topic = create_topic(broker.admin_url, "rows")
    rows = spark.createDataFrame([("committed",)], "value string")

    def write(batch_id: int) -> None:
        sink = eos.sink(broker.service_url, topic=topic, name="switched")
        try:
            with sink.batch(batch_id, eos.Identity("query", f"run {batch_id}", f"offsets {batch_id}")) as txn:
                txn.write(rows)
        finally:
            sink.close()

    def read() -> list[str]:
        table = spark.read.format("pulsar").options(**{"service.url": broker.service_url, "topic": topic}).load()
        return [row.value for row in table.selectExpr("string(value) as value").collect()]

    write(0)
    with Client(Cluster(broker.service_url)) as client:
        coordinator = client.coordinator(1)
        txn = coordinator.new_transaction(600_000)
        coordinator.add_partitions(txn, [topic])
        with client.producer(topic) as producer:
            producer.send_record(b"aborted", txn)
        coordinator.end(txn, commit=False)
    assert read() == ["committed"]

    broker.stop(keep_data=True)
    broker.settings = {"transactionCoordinatorEnabled": False}
    broker.start()
    with pytest.raises(
        PySparkException, match=r"is of a transaction.*transactionCoordinatorEnabled=true in broker\.conf"
    ):
        read()
    with pytest.raises(eos.InvalidInput, match=r"was started without transactions.*of aborted and of open") as refused:
        write(1)
    assert not isinstance(refused.value, eos.DamagedLog)

    broker.stop(keep_data=True)
    broker.settings = {}
    broker.start()
    write(1)
    assert read() == ["committed", "committed"]


_SILENCE_S = 5.0
_LINES = 80
_WORDS = ("TransactionBuffer", "TransactionMetadataStore", "snapshot", "recover")


def evidence(broker: LocalPulsar, topic: str, partitions: int) -> str:
    """Return a line for each entry that readers get, with its transaction, and what the log says of transactions."""
    lines = []
    with Client(Cluster(broker.service_url)) as client:
        for partition in range(partitions):
            name = partition_name(topic, partition)
            with client.entry_reader(name, None) as reader:
                while found := reader.read(_SILENCE_S):
                    for entry in found:
                        of = entry.metadata
                        txn = (of.txnid_most_bits, of.txnid_least_bits) if of.HasField("txnid_most_bits") else None
                        what = f"{entry.num_messages} of {of.producer_name} {of.sequence_id}, transaction {txn}"
                        lines.append(f"partition {partition}, entry {entry.id}: {what}, sent {of.publish_time}")
    logged = broker.log.read_text(errors="replace").splitlines()
    told = [line for line in logged if any(word in line for word in _WORDS) and ("rows-" in line or "WARN" in line)]
    return "\n".join([*lines, *told[-_LINES:]])
