"""`LocalCluster`: two brokers, three bookies and one ZooKeeper, each a process of its own, and transactions on."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eos.config import Credentials
from eos.local import checks, class_archive, jars, jvm, process
from eos.local.folder import InFolder
from eos.local.jvm import QUICK_START, Jvm
from eos.local.member import Member, MemberState
from eos.local.parts import HOST, PARTS, SESSION_S, SETUP, ClusterPorts, Plan
from eos.local.places import Tell, quiet
from eos.local.settings import Setting

_POLL_S = 0.1
RECORD = "cluster.json"
_SET_UP = "set-up"
OWN_FILES = (RECORD, _SET_UP, "setup", *PARTS)
_SHORTEST_S, _LONGEST_S = 2.0, 20.0  # twice and twenty times ZooKeeper's tick
_DATA_BYTES = 1_000 * checks.MEGABYTE


@dataclass
class LocalCluster(InFolder):
    """A Pulsar cluster on this machine: `with LocalCluster() as cluster: cluster["bookie-0"].kill()`.

    Its members are "zookeeper", "bookie-0" to "bookie-2", "broker-0" and "broker-1". Each is a `Member`. Ledgers are
    3/3/2. While one bookie is dead, brokers go on with open ledgers, but they can make no new ledger, and so no new
    topic. Everything listens on 127.0.0.1 alone.

    Attributes:
        data: a folder for everything it writes. A cluster that runs in it is found again. None: a temporary folder.
        settings: broker settings that win over the defaults, for both brokers.
        coordinators: how many transaction coordinators a new cluster gets. Default 4.
        memory: each broker's heap, and as much again outside the heap, as Java writes it. Default "384m".
        autorecovery: whether the bookies copy the ledgers of a lost bookie. Default off, since with three bookies there
            is nowhere to copy to. It would also fence the ledgers that are being written there, 30 s after the loss.
        listeners: further listeners, such as a proxy's. Each has a name, and for each broker a port on 127.0.0.1, for
            clients that ask for that name. Default none.
        session_s: seconds of silence after which ZooKeeper takes a bookie or a broker for dead, 2 to 20. Default 8.
        start_timeout_s: how long each member may take to answer. Default 120.
        die_with_parent: kill it, and remove a temporary `data`, when this Python process dies, even by SIGKILL.
        version: of Pulsar, one of `eos.local.jars.VERSIONS`, for all members. Default "4.2.4".
        credentials: those of an administrator, when `settings` turn authentication on.
        tell: gets lines about the progress.
    """

    data: Path | None = None
    settings: Mapping[str, Setting] = field(default_factory=dict)
    coordinators: int = 4
    memory: str = "384m"
    autorecovery: bool = False
    listeners: Mapping[str, Sequence[int]] = field(default_factory=dict)
    session_s: float = SESSION_S
    start_timeout_s: float = 120.0
    die_with_parent: bool = True
    version: str = jars.PULSAR_VERSION
    credentials: Credentials = field(default_factory=Credentials)
    tell: Tell = field(default=quiet, repr=False)

    _own_files = OWN_FILES

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _SHORTEST_S <= self.session_s <= _LONGEST_S:
            raise checks.LocalError(
                f"session_s is {self.session_s:g}; ZooKeeper here takes {_SHORTEST_S:g} to {_LONGEST_S:g} seconds."
            )
        self._plan: Plan | None = None
        self._members: dict[str, Member] = {}

    @classmethod
    def found(cls, data: Path, tell: Tell = quiet) -> LocalCluster:
        """The cluster that was started in the folder `data`, with what it was made with; any of it may run.

        A process that is started in it now lives on when this Python process dies.

        Raises:
            LocalError: none was.
        """
        try:
            plan = Plan.from_json((data / RECORD).read_text())
        except FileNotFoundError:
            raise checks.LocalError(f"No cluster was started in {data}") from None
        cluster = cls(
            data=data.absolute(),
            settings=plan.settings,
            coordinators=plan.coordinators,
            memory=plan.memory,
            autorecovery=plan.autorecovery,
            listeners=plan.listeners,
            session_s=plan.session_s,
            version=plan.version,
            die_with_parent=False,
            tell=tell,
        )
        cluster._assemble(plan)
        return cluster

    @property
    def members(self) -> Mapping[str, Member]:
        """The members by name, ZooKeeper first, then bookies, then brokers."""
        if not self._members:
            raise checks.LocalError("This cluster has not been started")
        return self._members

    def __getitem__(self, name: str) -> Member:
        """The member of this name. Raises `LocalError` when there is none."""
        if name not in self.members:
            raise checks.LocalError(f"{name!r} is not a part of the cluster. Its parts are {', '.join(self.members)}")
        return self.members[name]

    @property
    def service_url(self) -> str:
        """The URL for clients. It lists both brokers."""
        return self._ports().service_url

    @property
    def broker_urls(self) -> tuple[str, ...]:
        """Each broker's own service URL."""
        return tuple(f"pulsar://{HOST}:{port}" for port in self._ports().brokers)

    @property
    def admin_urls(self) -> tuple[str, ...]:
        """Each broker's admin API."""
        return tuple(f"http://{HOST}:{port}" for port in self._ports().http)

    @property
    def admin_url(self) -> str:
        """The admin API of a broker that runs, or broker-0's when none does."""
        running = (one.admin_url for one in self.members.values() if one.admin_url and one.state is MemberState.RUNNING)
        return next(running, None) or self.admin_urls[0]

    @property
    def zookeeper(self) -> str:
        """ZooKeeper's address, host:port; BookKeeper's ledgers are under /ledgers."""
        return self["zookeeper"].address

    @property
    def bk_url(self) -> str:
        """The root of the file system on these bookies."""
        return f"bk://{self.zookeeper}"

    @property
    def metadata_service_uri(self) -> str:
        """Where BookKeeper's own clients find the ledgers."""
        return self._ports().metadata_service_uri

    def start(self) -> LocalCluster:
        """Start the members that don't run, resume the paused ones, and wait until the coordinators answer.

        Raises:
            LocalError: something is missing on this machine, the data are of another version, or a member did not come
                up. Then the message holds the last lines of its log.
        """
        java, classpath = checks.java(), jars.classpath(self.tell, self.version)
        with checks.disk_errors("Starting a Pulsar cluster"):
            self._on_free_ports(lambda: self._start(java, classpath))
        return self

    def _start(self, java: Path, classpath: str) -> None:
        self._ports_picked = fresh = self._make_home()
        try:
            self._bring_up(java, classpath)
        except BaseException:
            if fresh:
                self.stop()
            raise

    def restart(self, name: str) -> None:
        """Kill a member, start it on its port and data, and wait until it does its work again."""
        member = self[name]
        member.kill()
        self.launch(name)
        member.wait_until_ready()

    def launch(self, name: str) -> None:
        """Start a member that is dead, and don't wait for it."""
        self[name].launch(checks.java(), jars.classpath(self.tell, self.version))

    def ready(self) -> bool:
        """Whether every member does its work, and the transaction coordinators answer."""
        return all(member.ready() for member in self.members.values()) and self._coordinators_answer()

    def kill(self) -> None:
        """SIGKILL every member, as a machine's crash would. The data stay, for `start`."""
        for member in self._members.values():
            member.kill()

    def stop(self, keep_data: bool = False) -> None:
        """Stop it, as every local Pulsar. Once its data are removed, `start` makes a new cluster."""
        super().stop(keep_data)
        if not keep_data:
            self._plan, self._members = None, {}

    def _end(self, grace_s: float) -> None:
        for member in reversed(self._members.values()):
            member.end(grace_s)

    def _ports(self) -> ClusterPorts:
        if self._plan is None:
            raise checks.LocalError("This cluster has not been started")
        return self._plan.ports

    def _make_home(self) -> bool:
        """Make the folder and choose the ports, unless that was done before; whether this was the first time."""
        if self._plan is not None:
            return False
        home = self._make_folder("eos-cluster-")
        record = home / RECORD
        before = Plan.from_json(record.read_text()) if record.exists() else None
        if before is None:
            checks.free_space(home, _DATA_BYTES, "Starting a Pulsar cluster")
            ports = ClusterPorts.free()
        else:
            ports = before.ports
            self._refuse_data_of(before.version, f"Give LocalCluster version={before.version!r}, or another folder")
        plan = Plan(
            ports=ports,
            settings=dict(self.settings),
            memory=self.memory,
            autorecovery=self.autorecovery,
            coordinators=self.coordinators,
            listeners=dict(self.listeners),
            session_s=self.session_s,
            version=self.version,
        )
        record.write_text(plan.to_json())
        self._assemble(plan)
        return before is None

    def _assemble(self, plan: Plan) -> None:
        home = self.data or Path()
        self._plan = plan
        for part in plan.parts(home):
            scratch = home if self._temporary else home / part.name / "tmp"
            self._members[part.name] = Member(
                part=part,
                home=home / part.name,
                die_with=scratch if self.die_with_parent else None,
                zookeeper_port=plan.ports.zookeeper,
                start_timeout_s=self.start_timeout_s,
            )

    def _bring_up(self, java: Path, classpath: str) -> None:
        """ZooKeeper and what is to be in it first; bookies and brokers then start side by side."""
        first, *others = self.members.values()
        self._revive(first, java, classpath)
        first.wait_until_ready()
        self._set_up(java, classpath, first.home.parent)
        for member in others:
            self._revive(member, java, classpath)
        for member in others:
            member.wait_until_ready()
        deadline = time.monotonic() + self.start_timeout_s
        while not self._coordinators_answer():
            if time.monotonic() > deadline:
                raise checks.LocalError(
                    f"The transaction coordinators did not answer within {self.start_timeout_s:g} s.\n"
                    f"{jvm.last_lines(self['broker-0'].log)}"
                )
            time.sleep(_POLL_S)

    def _revive(self, member: Member, java: Path, classpath: str) -> None:
        if member.state is MemberState.RUNNING:
            return
        self.tell(f"Starting {member.name}; its log: {member.log}")
        member.resume()
        member.launch(java, classpath)

    def _set_up(self, java: Path, classpath: str, home: Path) -> None:
        """Write into a new ZooKeeper what bookies and brokers expect there."""
        done, folder = home / _SET_UP, home / "setup"
        if done.exists() or self._plan is None:
            return
        jvm.prepare(folder)
        log = folder / "setup.log"
        flags = class_archive.pulsar_flags(QUICK_START)
        machine = Jvm(java, classpath, heap="192m", direct="64m", flags=flags)
        command = machine.command(folder, SETUP, self._plan.setup_arguments())
        started = process.start(command, {}, log, folder / "tmp" if self.die_with_parent else None)
        try:
            code = started.leader.wait(self.start_timeout_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            started.end()
        if code != 0:
            raise checks.LocalError(f"Setting up the cluster ended with {code}.\n{jvm.last_lines(log)}")
        done.touch()
