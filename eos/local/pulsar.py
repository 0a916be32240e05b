"""`LocalPulsar`: one JVM with ZooKeeper, a bookie and a broker, and transactions on.

`keep_classes` starts one once and ends it properly, so that later ones share its classes.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from eos.config import Credentials, Tls
from eos.local import certificates, checks, class_archive, jars, jvm, places, process
from eos.local.checks import LocalError
from eos.local.folder import InFolder
from eos.local.jvm import QUICK_START
from eos.local.places import Tell, quiet
from eos.local.settings import ENVIRONMENT, OWN_FILES, VERSION_FILE, Ports, Setting, broker_conf, command

_POLL_S = 0.1
_DATA_BYTES = 500 * checks.MEGABYTE


@dataclass
class LocalPulsar(InFolder):
    """A Pulsar on this machine, for this process: `with LocalPulsar() as pulsar: pulsar.service_url`.

    Topics keep their data without end (retention -1) unless `settings` or a policy say otherwise.

    Attributes:
        ports: default None, for free ports, or those that `data` was made with.
        data: a folder for everything it writes, perhaps with the data of an earlier run. None: a temporary folder.
        settings: broker settings that win over the defaults, such as {"brokerDeduplicationEnabled": True} or
            {"maxActiveTransactionsPerCoordinator": 1}.
        coordinators: how many transaction coordinators a new instance gets. Default 4, so that the choice of one
            matters as on a cluster, whose default is 16. Pulsar's own standalone has 1. Not used when `settings` turn
            transactions off.
        memory: heap, and as much again outside the heap, as Java writes it. Default "1g".
        flags: further options of its JVM. Default `eos.local.jvm.QUICK_START`, which halves the time to start and costs
            throughput.
        start_timeout_s: how long `start` waits until the coordinators answer. Default 120.
        die_with_parent: kill it, and remove a temporary `data`, when this Python process dies, even by SIGKILL.
        credentials: those of an administrator, when `settings` turn authentication on.
        tls: broker and admin API have ports with TLS only, and `trust` is what its clients need. ZooKeeper and the
            bookie have no TLS. Default False.
        version: of Pulsar, one of `eos.local.jars.VERSIONS`. Default "4.2.4", on which every test runs. From 5 on the
            bookie takes a free port, whatever `ports` says.
        tell: gets lines about the progress.
    """

    ports: Ports | None = None
    data: Path | None = None
    settings: Mapping[str, Setting] = field(default_factory=dict)
    coordinators: int = 4
    memory: str = "1g"
    flags: Sequence[str] = QUICK_START
    start_timeout_s: float = 120.0
    die_with_parent: bool = True
    credentials: Credentials = field(default_factory=Credentials)
    tls: bool = False
    version: str = jars.PULSAR_VERSION
    tell: Tell = field(default=quiet, repr=False)

    _own_files = (*OWN_FILES, *certificates.FILES)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._fresh = False
        self._started: process.Started | None = None

    @property
    def service_url(self) -> str:
        """The URL for clients: pulsar://localhost:PORT, or pulsar+ssl://localhost:PORT."""
        return self._ports().service_url(self.tls)

    @property
    def admin_url(self) -> str:
        """The admin API: http://localhost:PORT, or https://localhost:PORT."""
        return self._ports().admin_url(self.tls)

    @property
    def trust(self) -> Tls:
        """How its clients trust it: with `tls`, by the certificate of its authority."""
        return certificates.trust(self._home()) if self.tls else Tls()

    @property
    def zookeeper(self) -> str:
        """ZooKeeper's address, host:port; BookKeeper's ledgers are under /ledgers."""
        return f"localhost:{self._ports().zookeeper}"

    @property
    def log(self) -> Path:
        """The file with all that the JVM prints."""
        return self._home() / "pulsar.log"

    @property
    def pid(self) -> int | None:
        """The JVM's pid while it runs."""
        return self._started.leader.pid if self._started is not None and self._started.exit_code() is None else None

    def start(self) -> LocalPulsar:
        """Start it and wait until the transaction coordinators answer. After `kill` or a crash: same ports, same data.

        Raises:
            LocalError: something is missing on this machine, a port is in use, or it did not come up. Then the message
                holds the last lines of its log. If another process takes a port after it was picked, other ports are
                tried first.
        """
        if self.pid is None:
            self._on_free_ports(self._start)
        return self

    def _start(self) -> None:
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Start its process and return at once. The files of a failing first start are removed."""
        self.kill()  # after a crash of the JVM alone, its watcher is left
        java, classpath = checks.java(), jars.classpath(self.tell, self.version)
        with checks.disk_errors("Starting Pulsar"):
            self._fresh = self._make_home()
            with self._removing_failure():
                self._launch(java, classpath)

    def wait_until_ready(self) -> None:
        """Wait until the transaction coordinators answer. A start that fails is ended."""
        deadline = time.monotonic() + self.start_timeout_s
        with self._removing_failure():
            while not self._coordinators_answer():
                if self.pid is None:
                    code = self._started.exit_code() if self._started is not None else None
                    raise jvm.start_failure(f"Pulsar ended with exit code {code} while starting", self.log)
                if time.monotonic() > deadline:
                    waited = f"within {self.start_timeout_s:g} s"
                    raise jvm.start_failure(f"Pulsar's transaction coordinators did not answer {waited}", self.log)
                time.sleep(_POLL_S)

    def kill(self) -> None:
        """SIGKILL the whole of it, as a machine's crash would. The data stay, for `start`."""
        self._end(0.0)

    def _end(self, grace_s: float) -> None:
        if self._started is not None:
            self._started.end(grace_s)
            self._started = None

    def _home(self) -> Path:
        if self.data is None:
            raise checks.LocalError("This Pulsar has not been started")
        return self.data

    def _ports(self) -> Ports:
        if self.ports is None:
            raise checks.LocalError("This Pulsar has not been started")
        return self.ports

    def _make_home(self) -> bool:
        """Make the folder and choose the ports; True when no earlier run has left data in it."""
        made_with = recorded_ports(self._make_folder("eos-pulsar-"))
        self._ports_picked = self.ports is None and made_with is None
        if self.ports is None:
            self.ports = made_with or Ports.free()
        elif made_with is not None and made_with.bookkeeper != self.ports.bookkeeper:
            raise checks.LocalError(
                f"The data in {self.data} belong to a bookie whose name holds its port, {made_with.bookkeeper}. "
                f"Use --bookkeeper-port {made_with.bookkeeper}, or another --data folder"
            )
        if made_with is not None:
            before = recorded_version(self._home())
            self._refuse_data_of(before, f"Use --version {before}, or another --data folder")
        return made_with is None

    def _launch(self, java: Path, classpath: str) -> None:
        home, ports = self._home(), self._ports()
        checks.free_space(home, _DATA_BYTES, "Starting Pulsar")
        ports.check_free()
        secured = certificates.require_tls(home, java, ports) if self.tls else {}
        for told in (home / "broker.conf", self.log):
            told.touch(mode=0o600)  # they tell the password of the key store
        (home / "broker.conf").write_text(broker_conf(ports, {**secured, **self.settings}))
        jvm.prepare(home)
        (home / VERSION_FILE).write_text(self.version)
        (home / "ports.json").write_text(json.dumps(ports.mapping()))
        scratch = None
        if self.die_with_parent:
            scratch = home if self._temporary else home / "tmp"
        kept = self.version == jars.PULSAR_VERSION  # classes are kept of the default alone
        flags = class_archive.pulsar_flags(self.flags) if kept else self.flags
        bookie_port = jars.major(self.version) < 5
        line = command(java, classpath, home, ports, self.memory, flags, bookie_port=bookie_port)
        self._started = process.start(line, ENVIRONMENT, self.log, scratch)

    @contextmanager
    def _removing_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.kill()
            if self._fresh:
                self.stop()
                if self._ports_picked:
                    self.ports = None
            raise


def recorded_ports(home: Path) -> Ports | None:
    """The ports of the instance that left its data in this folder; None when none did."""
    record = home / "ports.json"
    return Ports(**json.loads(record.read_text())) if record.exists() else None


def recorded_version(home: Path) -> str:
    """The version of Pulsar that last ran on this folder; the default one for data from before there was a choice."""
    record = home / VERSION_FILE
    return record.read_text() if record.exists() else jars.PULSAR_VERSION


_END_S = 120.0


def keep_classes(tell: Tell = quiet) -> None:
    """Read Pulsar's classes once for all that start quickly here; takes half a minute, and nothing the second time.

    A fault is reported. Then Pulsar starts more slowly.
    """
    jars.classpath(tell)
    archive = class_archive.pulsar_archive(QUICK_START)
    with places.locked("classes", tell):
        if archive.exists():
            return
        tell("Reading Pulsar's classes once for all brokers")
        try:
            with class_archive.kept(archive) as unfinished:
                _start_and_end(unfinished)
        except LocalError as error:
            tell(f"Pulsar's classes can't be shared, so brokers start more slowly. {error}")


def _start_and_end(archive: Path) -> None:
    with LocalPulsar(flags=(*QUICK_START, f"-XX:ArchiveClassesAtExit={archive}")) as pulsar:
        if pulsar.pid is not None:
            os.kill(pulsar.pid, signal.SIGTERM)
        deadline = time.monotonic() + _END_S
        while pulsar.pid is not None:
            if time.monotonic() > deadline:
                raise LocalError(f"it did not end within {_END_S:g} s of SIGTERM")
            time.sleep(_POLL_S)
