"""`Member`: one process of a cluster, which can be killed, paused and started again alone."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from eos.local import checks, class_archive, jvm, process
from eos.local.jvm import QUICK_START, Jvm
from eos.local.parts import HOST, ClusterPart
from eos.local.process import ProcessId

_POLL_S = 0.1
_ANSWER_S = 2.0
_BROKER_IS_THERE = (HTTPStatus.OK, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class MemberState(StrEnum):
    """The state of a member's process."""

    RUNNING = "running"
    PAUSED = "paused"
    ENDED = "ended"


@dataclass
class Member:
    """One part of a cluster as a process. Another Python process that knows the folder can do all of this too.

    Attributes:
        part: what it is.
        home: its folder. The pid is kept in it.
        die_with: the folder to remove when this Python process dies, which ends the member too; None: it lives on.
        zookeeper_port: where bookies are registered.
        start_timeout_s: how long `wait_until_ready` waits.
    """

    part: ClusterPart
    home: Path
    die_with: Path | None
    zookeeper_port: int
    start_timeout_s: float

    def __post_init__(self) -> None:
        self._started: process.Started | None = None
        self._former: str | None = None

    @property
    def name(self) -> str:
        """Its part's name."""
        return self.part.name

    @property
    def address(self) -> str:
        """Where it is reached, host:port."""
        return self.part.address

    @property
    def admin_url(self) -> str | None:
        """A broker's admin API; None for a member that has none."""
        return f"http://{HOST}:{self.part.http}" if self.part.http is not None else None

    @property
    def log(self) -> Path:
        """The file with all that it prints, over all its starts."""
        return self.home / f"{self.name}.log"

    @property
    def pid(self) -> int | None:
        """Its pid while it runs or is paused."""
        known = self._process()
        return known.pid if known is not None and known.alive() else None

    @property
    def state(self) -> MemberState:
        """The state of its process now."""
        known = self._process()
        if known is None or not known.alive():
            return MemberState.ENDED
        return MemberState.PAUSED if known.paused() else MemberState.RUNNING

    def launch(self, java: Path, classpath: str) -> None:
        """Start its process and return at once; nothing happens while it runs or is paused."""
        if self.pid is not None:
            return
        self.kill()  # its watcher may be left
        with suppress(OSError):
            self._former = self._registered_by()
        if not checks.can_bind(self.part.port):
            raise checks.PortTaken(
                f"{self.name} can't start: another process listens on its port, {self.part.port}. Stop that one."
            )
        jvm.prepare(self.home)
        settings = self.home / f"{self.name}.conf"
        settings.write_text(self.part.configuration)
        flags = class_archive.pulsar_flags(QUICK_START)
        if self.part.is_localhost:
            flags += jvm.as_localhost(self.home)
        machine = Jvm(java, classpath, self.part.heap, self.part.direct, flags)
        line = machine.command(self.home, self.part.main, [*self.part.option, str(settings)])
        self._started = process.start(line, {}, self.log, self.die_with)
        known = ProcessId.of(self._started.leader.pid) or ProcessId(0, "")
        scratch = self.home / "process.new"
        scratch.write_text(json.dumps(asdict(known)))
        scratch.replace(self.home / "process.json")

    def wait_until_ready(self) -> None:
        """Wait until it answers.

        Raises:
            LocalError: it ended, or did not answer in time; the message holds the last lines of its log.
        """
        deadline = time.monotonic() + self.start_timeout_s
        while not self.ready():
            if self.state is MemberState.ENDED:
                raise jvm.start_failure(f"{self.name} ended while starting", self.log)
            if time.monotonic() > deadline:
                raise jvm.start_failure(f"{self.name} did not answer within {self.start_timeout_s:g} s", self.log)
            time.sleep(_POLL_S)

    def ready(self) -> bool:
        """Whether it does its work now: it answers, and a bookie is registered too."""
        if self.state is not MemberState.RUNNING:
            return False
        with suppress(OSError, HTTPException):
            return self._answers()
        return False

    def kill(self) -> None:
        """SIGKILL it, and wait until it is gone. Its data stay."""
        self.end(grace_s=0.0)

    def end(self, grace_s: float) -> None:
        """End it, after waiting `grace_s` seconds for it to end in good order."""
        if grace_s:
            self.resume()
        if self._started is not None:
            self._started.end(grace_s)
            self._started = None
        elif (known := self._process()) is not None:
            process.end_other(known, grace_s)

    def pause(self) -> None:
        """SIGSTOP it: it keeps its connections and says nothing."""
        self._signal(signal.SIGSTOP, lambda: self.state is not MemberState.RUNNING)

    def resume(self) -> None:
        """Let it go on after `pause`."""
        self._signal(signal.SIGCONT, lambda: self.state is not MemberState.PAUSED)

    def _signal(self, number: signal.Signals, arrived: Callable[[], bool]) -> None:
        pid = self.pid
        if pid is not None:
            os.kill(pid, number)
            while not arrived():
                time.sleep(0.005)

    def _process(self) -> ProcessId | None:
        with suppress(FileNotFoundError):
            return ProcessId(**json.loads((self.home / "process.json").read_text()))
        return None

    def _answers(self) -> bool:
        if self.part.http is not None:
            return _status(self.part.http, "/admin/v2/brokers/ready") in _BROKER_IS_THERE
        if self.part.port == self.zookeeper_port:
            return "Mode: standalone" in ask_zookeeper(self.zookeeper_port, "srvr")
        with socket.create_connection((HOST, self.part.port), _ANSWER_S):
            return self._registered_by() not in (None, self._former)

    def _registered_by(self) -> str | None:
        """The ZooKeeper session by which a bookie is registered. After a kill the dead process's stays for a while."""
        session = None
        for line in ask_zookeeper(self.zookeeper_port, "dump").splitlines():
            if line.startswith("0x"):
                session = line
            elif line.strip() == f"/ledgers/available/{self.address}":
                return session
        return None


def ask_zookeeper(port: int, word: str) -> str:
    """Send one of ZooKeeper's four-letter words and return the answer. Raises OSError."""
    with socket.create_connection((HOST, port), _ANSWER_S) as connection:
        connection.sendall(word.encode())
        connection.shutdown(socket.SHUT_WR)
        told = b""
        while chunk := connection.recv(65_536):
            told += chunk
    return told.decode()


def _status(port: int, path: str) -> int:
    """GET a path of a server here. A client with TLS costs ten times as much, which counts while JVMs start."""
    connection = HTTPConnection(HOST, port, timeout=_ANSWER_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()
