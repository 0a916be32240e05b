"""Pulsar → Spark → Pulsar: each message of the input is in the output once, over kills of the driver.

Those of a key are in their order, also where more tasks read a topic than it has partitions.
"""

from __future__ import annotations

import signal
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulsar as official
import pytest

from eos.pulsar.net.client import Client
from eos.spark.capabilities import TABLE, Capability
from eos.steps import Step
from tests.child_process import ChildProcess, python
from tests.conftest import MakeTopic
from tests.contract.test_transactions import end, transaction
from tests.integration.source.streams import write
from tests.planner import again_while_late
from tests.reading import messages_of, values_of
from tests.spark_session import quick_start

PATIENCE_S = 500


class Pipeline:
    """A driver process that copies one topic to another.

    It is started again when all that it says is that a process of Spark's came too late.
    """

    def __init__(self, folder: Path, job: dict[str, Any]) -> None:
        self.folder, self.job = folder, job
        self.process = self._start()

    def until_there(self, *path: str) -> None:
        """Wait until a file of the checkpoint exists."""
        self._insist(lambda: self.process.until(self.folder.joinpath("checkpoint", *path).exists, path, PATIENCE_S))

    def kill(self) -> None:
        self.process.kill()

    def finish(self) -> None:
        self._insist(lambda: self.process.finish(PATIENCE_S))

    def die(self) -> None:
        """Wait until it has killed itself where its job says."""

        def died() -> None:
            assert self.process.wait(PATIENCE_S) == -signal.SIGKILL, self.process.tail()

        self._insist(died)
        trace = self.folder / "crashed"
        assert trace.read_text().split()[:2] == list(self.job["crash"])
        trace.unlink()

    def _start(self) -> ChildProcess:
        return ChildProcess(
            python("tests.integration.source.pipeline", self.job), self.folder / "driver.log", quick_start()
        )

    def _insist(self, wait: Callable[[], object]) -> None:
        runs = iter([self.process])  # the first one waits for the driver that runs already

        def run() -> None:
            if next(runs, None) is None:
                self.kill()
                self.process = self._start()
            wait()

        again_while_late(run)


@pytest.mark.needs(TABLE[Capability.TELLS_START])
@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_each_message_is_copied_once_over_kills_of_the_driver(
    pulsar: Any, ours: Client, make_topic: MakeTopic, tmp_path: Path
) -> None:
    source, copies = make_topic("from", 2), make_topic("to")
    job = {
        "service_url": pulsar.service_url,
        "source": source,
        "copies": copies,
        "name": copies.rsplit("/")[-1],
        "checkpoint": str(tmp_path / "checkpoint"),
    }
    expected: list[str] = []

    def produce(batch: str) -> None:
        for partition in range(2):
            values = [f"{batch}-{partition}-{number}" for number in range(20)]
            expected.extend(values)
            write(ours, f"{source}-partition-{partition}", *values)

    produce("first")
    held = transaction(ours, f"{source}-partition-0", ttl_ms=600_000)  # drivers start slowly on a busy machine
    gone = transaction(ours, f"{source}-partition-1", ttl_ms=600_000)
    with ours.producer(f"{source}-partition-0") as producer, ours.producer(f"{source}-partition-1") as other:
        producer.send_record(b"held", held)
        other.send_record(b"gone", gone)
    driver = Pipeline(tmp_path, job | {"wait_before_commit": "0"})
    driver.until_there("offsets", "0")  # the batch is planned, and perhaps being written
    driver.kill()
    end(ours, held, commit=True)
    end(ours, gone, commit=False)
    expected.append("held")
    produce("second")
    driver = Pipeline(tmp_path, job | {"wait_before_commit": "1"})
    driver.until_there("written-1")  # in the topic, but not in Spark's log: the sink skips it next time
    driver.kill()
    produce("third")
    Pipeline(tmp_path, job).finish()
    assert Counter(values_of(pulsar.service_url, copies)) == Counter(expected)


KEYS, ROWS_OF_KEY = 4, 60
"""In each of the two partitions."""
CRASHES = (
    (Step.FIRST_SEND, "after"),  # of a task: other tasks have sent all of their rows, some or none
    (Step.ALL_SENT, "after"),
    (Step.MARKER, "after"),
    (Step.END_SENT, "after"),  # it is not known whether the batch is committed
    (Step.RETURN, "before"),  # it is committed, and Spark does not know
)


@pytest.mark.needs(TABLE[Capability.TELLS_START])
@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_rows_of_a_key_keep_their_order_where_more_tasks_read_than_there_are_partitions(
    pulsar: Any, make_topic: MakeTopic, tmp_path: Path
) -> None:
    source, copies = make_topic("from", 2), make_topic("to", 3)
    client = official.Client(pulsar.service_url, logger=official.ConsoleLogger(official.LoggerLevel.Error))
    for partition in range(2):
        producer = client.create_producer(f"{source}-partition-{partition}", batching_enabled=False)
        for number in range(KEYS * ROWS_OF_KEY):
            producer.send_async(
                str(number // KEYS).encode(), lambda *_: None, partition_key=f"{partition}-{number % KEYS}"
            )
        producer.flush()
    client.close()
    job = {
        "service_url": pulsar.service_url,
        "admin_url": pulsar.admin_url,
        "source": source,
        "copies": copies,
        "name": copies.rsplit("/")[-1],
        "checkpoint": str(tmp_path / "checkpoint"),
    }
    for step, phase in CRASHES:
        Pipeline(tmp_path, job | {"crash": (step.value, phase)}).die()
    Pipeline(tmp_path, job).finish()
    rows: dict[str, list[int]] = defaultdict(list)
    places: dict[str, set[str]] = defaultdict(set)
    tasks: dict[tuple[str, str], set[str]] = defaultdict(set)
    for message in messages_of(pulsar.service_url, copies):
        key = message.partition_key()
        batch, task = message.properties()["part"].split()
        rows[key].append(int(message.data()))
        places[key].add(message.topic_name())
        tasks[key, batch].add(task)
    assert rows == {f"{partition}-{key}": list(range(ROWS_OF_KEY)) for partition in range(2) for key in range(KEYS)}
    assert {len(one) for one in places.values()} == {1}
    assert {key for (key, _), some in tasks.items() if len(some) > 1} == set(rows), "a key was read by one task at once"
