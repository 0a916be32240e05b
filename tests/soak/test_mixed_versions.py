"""One job whose driver and tasks have different packages: the commit before, or another protobuf, on one side.

Tasks import from the folders of `spark.executorEnv.PYTHONPATH`, the driver from those of its own PYTHONPATH.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import google.protobuf
import pytest

from statestore.drills.judge.oracle import messages_of
from tests.child_process import ROOT, ChildProcess
from tests.standalone import job

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

BEFORE = os.environ.get("EOS_TEST_PACKAGE_BEFORE", "HEAD~1")
"""The commit whose package is tried beside this one."""
OLD_PROTOBUF = "5.29.5"
WORDS = ("a", "b", "a", "c")
RUN_S = 300.0


def ran(command: Sequence[str | Path], home: Path) -> None:
    done = subprocess.run(command, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2_000:]}{done.stderr[-2_000:]}"


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package of the commit before, and the jar of its bk://."""
    if not (ROOT / ".git").exists():
        pytest.skip("the commit before is only in a checkout of git")
    folder = tmp_path_factory.mktemp("before")
    archive = folder / "package.tar"
    ran(["git", "archive", "-o", archive, BEFORE, "eos", "statestore", "pyspark_pulsar"], ROOT)
    ran(["tar", "-xf", archive], folder)
    java, jars = folder / "statestore" / "java", folder / "statestore" / "jars"
    ran(["mvn", "-B", "-q", "package", "-Dmaven.test.skip=true"], java)
    jars.mkdir(exist_ok=True)
    (java / "target" / "eos-bk.jar").rename(jars / "eos-bk.jar")
    return folder


@pytest.fixture(scope="module")
def protobuf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the oldest protobuf that the package takes, and without the client of Spark Connect.

    Spark looks for the client's `google.rpc`. That of this environment was made for a newer protobuf.
    """
    folder = tmp_path_factory.mktemp("protobuf")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-deps"]
    ran([*pip, "--target", folder, f"protobuf=={OLD_PROTOBUF}"], ROOT)
    (folder / "google" / "rpc").mkdir()
    (folder / "google" / "rpc" / "__init__.py").write_text("raise ImportError('left out here')\n")
    return folder


@dataclass
class Words:
    """A job that counts words on bk://, and what it was given up to now."""

    service_url: str
    checkpoint: str
    topic: str
    folder: Path
    runs: int = 0

    def run(self, driver: Sequence[Path], tasks: Sequence[Path]) -> dict[str, str]:
        """Count one more file, the driver and its tasks with these folders before all others.

        Return what a task said of its Python.
        """
        given, result = self.folder / "input", self.folder / f"result-{self.runs}.json"
        given.mkdir(exist_ok=True)
        (given / f"{self.runs}.csv").write_text("".join(f"{word}\n" for word in WORDS))
        self.runs += 1
        confs = {
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(map(str, [*tasks, ROOT])),
            "spark.driver.host": "localhost",
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
        }
        submitted = " ".join(f"--conf {name}={value}" for name, value in confs.items())
        environment = {
            "PYTHONPATH": os.pathsep.join(map(str, [*driver, ROOT])),
            "PYSPARK_SUBMIT_ARGS": f"--master local[2] {submitted} pyspark-shell",
        }
        name = self.topic.rpartition("/")[2]
        command = [sys.executable, job.__file__, self.service_url, self.topic, name, given, self.checkpoint, result]
        with ChildProcess([str(word) for word in command], self.folder / "job.log", environment) as process:
            code = process.wait(RUN_S)
        assert code == 0, process.tail()
        seen = json.loads(result.read_text())
        assert seen["committed"] == 1, "each run has one file, which is one micro-batch"
        said: dict[str, str] = seen["tasks"][0]
        return said

    def wrong(self) -> Counter[str]:
        """Return what the topic has too much or too little."""
        total: Counter[str] = Counter()
        told: Counter[str] = Counter()
        for _ in range(self.runs):
            total.update(WORDS)
            told.update(f"{word}:{total[word]}" for word in set(WORDS))
        rows = [json.loads(message.data()) for message in messages_of(self.service_url, self.topic)]
        told.subtract(f"{row['word']}:{row['n']}" for row in rows)
        return Counter({word: number for word, number in told.items() if number})


@pytest.fixture
def words(pulsar: Any, make_topic: Any, tmp_path: Path) -> Words:
    topic = make_topic("mixed", partitions=2)
    return Words(pulsar.service_url, f"bk://{pulsar.zookeeper}/{topic.rpartition('/')[2]}", topic, tmp_path)


def test_the_package_before_and_this_one_take_turns_as_driver_and_tasks(words: Words, before: Path) -> None:
    """Each turn goes on with the control log and the state on bk:// that the other package and jar have written."""
    for driver, tasks in (([before], []), ([], [before]), ([before], [before]), ([], []), ([before], [])):
        said = words.run(driver, tasks)
        assert Path(said["eos"]).is_relative_to(tasks[0] if tasks else ROOT)
    assert not words.wrong()


def test_another_protobuf_on_one_side(words: Words, protobuf: Path) -> None:
    """Neither what is pickled nor what lies in the control log depends on protobuf's version."""
    own = Path(google.protobuf.__file__).parents[2]
    for driver, tasks in ((protobuf, own), (own, protobuf), (own, own)):
        said = words.run([driver], [tasks])
        assert (said["protobuf"] == OLD_PROTOBUF) == (tasks == protobuf)
    assert not words.wrong()
