"""A driver process from outside: start it, tell it something, hear it, stop it dead."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import psutil

from eos.local.class_archive import spark_flags, submit_environment
from eos.local.jvm import QUICK_START
from eos.local.places import Tell
from eos.local.process import kill_group
from statestore.drills.chaos.driver_events import DriverEvents
from statestore.drills.chaos.job import DrillJobSettings, JobSpec
from statestore.drills.processes import EXECUTOR, below, kill_all, named, send
from statestore.drills.standalone import spark_home
from statestore.hadoop.jar import jar_path

_CLUSTER = "local-cluster"
_WORKERS = "pyspark.daemon"
_PLANNER = "python_streaming_source_runner"
_END_S = 10.0


class Driver:
    """One driver process in a process group of its own. `hear` is called by a thread with all that it says."""

    def __init__(self, settings: DrillJobSettings, log: Path, hear: Callable[[Driver, DriverEvents], None]) -> None:
        self.settings = settings
        self.log = log
        self._hear = hear
        scratch = Path(settings.scratch)
        home = _own_spark_home(scratch) if settings.master.startswith(_CLUSTER) else spark_home()
        flags = [*settings.java, f"-Djava.io.tmpdir={scratch}"]
        with log.open("a") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "statestore.drills.chaos.job", settings.to_json()],
                cwd=log.parent,
                env={
                    **os.environ,
                    **submit_environment(home, flags),
                    "TMPDIR": settings.scratch,
                    "PYTHONPATH": os.pathsep.join(part for part in sys.path if part),
                },
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self._thread = threading.Thread(target=self._listen, name=f"driver-{self.pid}", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        """Its pid, which is its group's number too."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it runs or stands still."""
        return self._process.poll() is None

    def tell(self, do: str, job: JobSpec) -> None:
        """Send it a command: "start", "stop" or "state". A dead one hears nothing."""
        with suppress(OSError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({"do": do, "job": asdict(job)}) + "\n")
            self._process.stdin.flush()

    def family(self) -> list[psutil.Process]:
        """It and all that come from it. Spark's Python workers have process groups of their own."""
        with suppress(psutil.NoSuchProcess):
            return [psutil.Process(self.pid), *below(self._process)] if self.alive else []
        return []

    def workers(self) -> list[psutil.Process]:
        """The Python workers that run tasks; not the daemons that they come from."""
        return [process for process in self.family() if named(process, _WORKERS) and named(_parent(process), _WORKERS)]

    def executors(self) -> list[psutil.Process]:
        """The executors' JVMs; none in local mode."""
        return [process for process in self.family() if named(process, EXECUTOR)]

    def planners(self) -> list[psutil.Process]:
        """The Python processes that plan the micro-batches of sources written in Python: one for each query."""
        return [process for process in self.family() if named(process, _PLANNER)]

    def pause(self) -> None:
        """SIGSTOP all of it: it keeps its connections and says nothing."""
        send(self.family(), signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        send(reversed(self.family()), signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL all of it, and wait until nothing is left."""
        family = self.family()
        kill_group(self._process)
        kill_all(family)
        self._process.wait()
        psutil.wait_procs([process for process in family if process.pid != self.pid], timeout=_END_S)
        self._thread.join(_END_S)
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                assert stream is not None
                stream.close()

    def last_words(self) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:]) if self.log.exists() else ""

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with suppress(ValueError):  # closed
            for line in self._process.stdout:
                said = DriverEvents.parse(line)
                if said is not None:
                    self._hear(self, said)


def java_flags(tell: Tell) -> list[str]:
    """The options of drivers' JVMs, so that they start soon. The first call on a machine takes a minute."""
    return spark_flags(spark_home(), QUICK_START, [jar_path()], tell)


def _own_spark_home(scratch: Path) -> Path:
    """Spark's home in the scratch folder, by links: executors leave a folder `work` in it."""
    home = scratch / "spark-home"
    home.mkdir(parents=True, exist_ok=True)
    for entry in spark_home().iterdir():
        link = home / entry.name
        if entry.name != "work" and not link.is_symlink():
            link.symlink_to(entry)
    return home


def _parent(process: psutil.Process) -> psutil.Process | None:
    with suppress(psutil.NoSuchProcess):
        return process.parent()
    return None
