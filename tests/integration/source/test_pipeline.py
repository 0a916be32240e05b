"""Pulsar → Spark → Pulsar: each message of the input is in the output once, over kills of the driver."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from eos.pulsar.net.client import Client
from tests.conftest import MakeTopic
from tests.contract.test_transactions import end, transaction
from tests.integration.source.streams import write
from tests.quick_start import quick_start
from tests.reading import values_of
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[3]


class Pipeline:
    """A driver process that copies one topic to another, in a process group of its own."""

    def __init__(self, folder: Path, job: dict[str, str]) -> None:
        self.folder = folder
        self.log = folder / "driver.log"
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.integration.source.pipeline", json.dumps(job)],
                cwd=ROOT,
                stdout=log,
                stderr=log,
                env={**os.environ, **quick_start()},
                start_new_session=True,
            )

    def until_there(self, *path: str) -> None:
        """Wait until a file of the checkpoint exists."""

        def there() -> bool:
            assert self.process.poll() is None, self.log.read_text()[-6_000:]
            return self.folder.joinpath("checkpoint", *path).exists()

        until(there, lambda: self.log.read_text()[-6_000:], patience_s=180)

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def finish(self) -> None:
        assert self.process.wait(240) == 0, self.log.read_text()[-6_000:]


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
