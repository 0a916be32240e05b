"""The declarative pipeline of the examples copies a topic by two runs, each from where the one before ended."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyspark
import pytest

from eos.local import LocalPulsar
from tests.child_process import ROOT
from tests.clients import official_client
from tests.reading import values_of

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

EXAMPLE = ROOT / "examples" / "declarative_pipeline"
READINGS, COPIES = ("persistent://public/default/" + name for name in ("readings", "copies"))
RUN_S = 600


def send(broker: LocalPulsar, numbers: range) -> None:
    with official_client(broker.service_url) as client:
        client.create_producer(COPIES)
        producer = client.create_producer(READINGS)
        for number in numbers:
            producer.send(str(number).encode(), partition_key=str(number % 5))


def run(project: Path) -> None:
    command = Path(pyspark.__file__).parent / "bin" / "spark-pipelines"
    done = subprocess.run(
        [command, "run", "--spec", project / "spark-pipeline.yml"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]


def test_each_run_of_a_declarative_pipeline_copies_what_is_new(
    start_pulsar: Callable[..., LocalPulsar], tmp_path: Path
) -> None:
    pytest.importorskip("google.rpc", reason="pipelines need the client of Spark Connect: the group `connect`")
    broker = start_pulsar()
    project = Path(shutil.copytree(EXAMPLE, tmp_path / "project"))
    for path, before, now in (
        (project / "spark-pipeline.yml", "/tmp/copies-pipeline", str(tmp_path / "storage")),
        (project / "transformations" / "copies.py", "pulsar://localhost:6650", broker.service_url),
    ):
        text = path.read_text()
        assert before in text
        path.write_text(text.replace(before, now))
    for numbers in (range(50), range(50, 80)):
        send(broker, numbers)
        run(project)
        expected = sorted(str(number) for number in range(numbers.stop))
        assert sorted(values_of(broker.service_url, COPIES)) == expected
