"""Spark's standalone cluster on this machine: a master and workers, each a process of its own that can be killed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from pathlib import Path

import httpx
import psutil

from eos.closing import Closing
from eos.local import LocalError, checks, process
from eos.local.jvm import QUICK_START, last_lines
from statestore.drills.processes import EXECUTOR, below, kill_all, lives, named

HOST = "127.0.0.1"
_CLASS = "org.apache.spark.deploy.{0}.{1}"
_POLL_S = 0.2
_ANSWER_S = 5.0
_END_S = 10.0


@dataclass
class StandaloneCluster(Closing):
    """A master and `workers` workers: `with StandaloneCluster(folder) as spark: spark.master` is "spark://127.0.0.1:…".

    Master and workers, and so executors, know nothing of this process's environment but PATH and HOME: no PYTHONPATH,
    no folder of the caller's. Everything listens on 127.0.0.1 alone, and dies with this Python process.

    Attributes:
        folder: for logs and the executors' working folders; it stays.
        workers, cores, memory: how many, and what each offers to executors. `memory` as Spark writes it.
        timeout_s: seconds of silence after which the master takes a worker for lost.
        environment: what executors find in their environment besides.
        start_timeout_s: how long the master, and all workers together, may take to answer.
    """

    folder: Path
    workers: int = 2
    cores: int = 2
    memory: str = "1g"
    timeout_s: int = 6
    environment: Mapping[str, str] = field(default_factory=dict)
    start_timeout_s: float = 120.0

    def __post_init__(self) -> None:
        self._master: process.Started | None = None
        self._workers: dict[int, process.Started] = {}
        self._port, self._page = checks.pick_ports(2)

    def __enter__(self) -> StandaloneCluster:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    @property
    def master(self) -> str:
        """The master's address, as `spark-submit --master` takes it."""
        return f"spark://{HOST}:{self._port}"

    def start(self) -> None:
        """Start master and workers, and wait until all are registered.

        Raises:
            LocalError: there is no Java or no PySpark, or they don't come up in time; with the last lines of the log.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._master = self._launch(
            "master", "Master", "--host", HOST, "--port", self._port, "--webui-port", self._page
        )
        self._wait(0, "master")
        for number in range(self.workers):
            self.start_worker(number)
        self.wait_for_workers()

    def start_worker(self, number: int) -> None:
        """Start a worker, the first time or again, and don't wait for it."""
        name = f"worker-{number}"
        offers = ["--cores", self.cores, "--memory", self.memory, "--work-dir", self.folder / name]
        self._workers[number] = self._launch(name, "Worker", "--host", HOST, "--webui-port", 0, *offers, self.master)

    def wait_for_workers(self) -> None:
        """Wait until as many workers as there should be are registered and alive. Raises `LocalError` as `start`."""
        self._wait(self.workers, "worker-0")

    def kill_worker(self, number: int) -> None:
        """SIGKILL a worker with all that it has started, as if its machine were gone."""
        started = self._workers.pop(number)
        family = below(started.leader)
        kill_all(family)
        started.end()
        deadline = time.monotonic() + _END_S
        while any(lives(one) for one in family) and time.monotonic() < deadline:
            time.sleep(_POLL_S / 10)

    def executors(self) -> list[psutil.Process]:
        """The JVMs of the executors that run now, on all workers."""
        found = [one for worker in self._workers.values() for one in below(worker.leader)]
        return [one for one in found if named(one, EXECUTOR)]

    def close(self) -> None:
        """End all of it, whatever runs."""
        for number in list(self._workers):
            self.kill_worker(number)
        if self._master is not None:
            self._master.end()
            self._master = None

    def _launch(self, name: str, main: str, *arguments: object) -> process.Started:
        scratch = self.folder / name / "tmp"
        scratch.mkdir(parents=True, exist_ok=True)
        settings = f"-Dspark.worker.timeout={self.timeout_s} -Djava.io.tmpdir={scratch} {' '.join(QUICK_START)}"
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": os.environ.get("HOME", str(self.folder)),
            "JAVA_HOME": self._java_home,
            "SPARK_HOME": str(spark_home()),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_LOCAL_DIRS": str(scratch),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": settings,
            **self.environment,
        }
        words = [f"{key}={value}" for key, value in environment.items()]
        starter = str(spark_home() / "bin" / "spark-class")
        line = ["env", "-i", *words, starter, _CLASS.format(main.lower(), main), *map(str, arguments)]
        return process.start(line, {}, self._log(name), scratch)

    @cached_property
    def _java_home(self) -> str:
        return str(checks.java().resolve().parent.parent)

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _wait(self, workers: int, name: str) -> None:
        deadline = time.monotonic() + self.start_timeout_s
        while self._alive() < workers:
            if time.monotonic() > deadline or (self._master is not None and self._master.exit_code() is not None):
                raise LocalError(f"Spark's {name} is not up.\n{last_lines(self._log(name))}")
            time.sleep(_POLL_S)

    def _alive(self) -> int:
        """How many workers the master has; -1: it doesn't answer."""
        with suppress(httpx.HTTPError):
            # No proxy that the environment names reaches this machine.
            answer = httpx.get(f"http://{HOST}:{self._page}/json/", timeout=_ANSWER_S, trust_env=False)
            if answer.status_code == HTTPStatus.OK:
                return sum(worker["state"] == "ALIVE" for worker in answer.json()["workers"])
        return -1


def spark_home() -> Path:
    """The folder of this Python's PySpark, with Spark's jars and scripts. Raises `LocalError` when there is none."""
    try:
        import pyspark
    except ImportError:
        raise LocalError(f"{sys.executable} has no PySpark. Install spark-pulsar-eos[spark].") from None
    return Path(pyspark.__file__).parent
