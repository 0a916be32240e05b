"""The clusters that `eos local up --cluster` runs, each known by a name, and their parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eos.local import records
from eos.local.checks import LocalError
from eos.local.cluster import OWN_FILES, RECORD, LocalCluster
from eos.local.jars import PULSAR_VERSION
from eos.local.member import Member, MemberState
from eos.local.places import Tell, locked, quiet, remove_files
from eos.local.settings import Setting


@dataclass(frozen=True, slots=True)
class ClusterInstance:
    """One cluster as its state file tells it.

    Attributes:
        data: its folder, in which the parts' pids are kept.
        data_is_ours: whether `up` made that folder.
    """

    name: str
    data: Path
    data_is_ours: bool
    cluster: bool = True

    def found(self, tell: Tell = quiet) -> LocalCluster:
        """The cluster itself. Raises `LocalError` when nothing of it was started yet."""
        return LocalCluster.found(self.data, tell)

    @property
    def begun(self) -> bool:
        """Whether anything of it was started."""
        return (self.data / RECORD).exists()

    @property
    def running(self) -> bool:
        """Whether every part runs."""
        return self.begun and all(member.state is MemberState.RUNNING for member in self.found().members.values())

    def summary(self) -> dict[str, Any]:
        """The output of `status --json`."""
        told: dict[str, Any] = {"name": self.name, "running": self.running, "service_url": "", "admin_url": ""}
        if self.begun:
            cluster = self.found()
            told["service_url"] = cluster.service_url
            told["admin_url"] = cluster.admin_url
            told["zookeeper"] = cluster.zookeeper
            told["metadata_service_uri"] = cluster.metadata_service_uri
            told["bk_url"] = cluster.bk_url
            told["parts"] = [_part(member) for member in cluster.members.values()]
        return {**told, "data": str(self.data)}


def _part(member: Member) -> dict[str, Any]:
    return {
        "name": member.name,
        "state": str(member.state),
        "pid": member.pid,
        "address": member.address,
        "log": str(member.log),
    }


def of(state: Mapping[str, Any] | None) -> ClusterInstance | None:
    """The cluster whose state file holds this. None when it does not belong to a cluster."""
    if state is None or not state.get("cluster"):
        return None
    return ClusterInstance(state["name"], Path(state["data"]), state["data_is_ours"])


def up(
    name: str,
    *,
    data: Path | None = None,
    memory: str | None = None,
    settings: Mapping[str, Setting] | None = None,
    autorecovery: bool = False,
    version: str = PULSAR_VERSION,
    tell: Tell = quiet,
) -> tuple[ClusterInstance, bool]:
    """Start the cluster, or those of its parts that don't run; whether anything was started now.

    Args:
        name: letters, digits and _ . -
        data: its folder. Default: one in the cache folder.
        memory, settings, autorecovery, version: as for `LocalCluster`. A cluster that is there keeps those
            that it was made with.
        tell: takes lines about what is going on.

    Raises:
        LocalError: as `LocalCluster.start`. Or the name is not valid, or that of an instance other than a cluster.
    """
    records.check_name(name)
    with locked(records.LOCK, tell):
        state = records.read(name)
        previous = of(state)
        if state is not None and previous is None:
            raise LocalError(
                f"{name} is a Pulsar in one process. Take it down first, or give the cluster another --name"
            )
        if previous is not None and previous.begun:
            return previous, _repair(previous, tell)
        folder = (data or records.folder(name) / "data").absolute()
        instance = ClusterInstance(name, folder, not folder.exists() or folder.is_relative_to(records.folder(name)))
        options: dict[str, Any] = {"memory": memory} if memory else {}
        cluster = LocalCluster(
            data=folder,
            settings=settings or {},
            autorecovery=autorecovery,
            version=version,
            die_with_parent=False,
            tell=tell,
            **options,
        )
        records.write(name, asdict(instance))  # before it starts: `down` must find what a killed `up` has started
        try:
            cluster.start()
        except BaseException:
            cluster.kill()
            records.forget(name)
            raise
        return instance, True


def _repair(instance: ClusterInstance, tell: Tell) -> bool:
    cluster = instance.found(tell)
    whole = instance.running
    cluster.start()
    return not whole


def down(instance: ClusterInstance, keep_data: bool) -> None:
    """Stop a cluster and remove what it wrote; the caller holds the lock."""
    if instance.begun and keep_data:
        instance.found().stop(keep_data=True)
    elif instance.begun:
        instance.found().kill()
    if not keep_data:
        remove_files(instance.data, OWN_FILES, instance.data_is_ours)
    records.forget(instance.name)


def part(name: str, of_cluster: str) -> Member:
    """The part of this name of a cluster.

    Raises:
        LocalError: there is no such cluster, or it has no such part.
    """
    return _found(of_cluster)[name]


def restart(name: str, of_cluster: str, tell: Tell = quiet) -> None:
    """Kill a part if it runs, start it on its port and data, and wait until it answers. Raises `LocalError`."""
    with locked(records.LOCK, tell):
        _found(of_cluster).restart(name)


def _found(name: str) -> LocalCluster:
    instance = of(records.read(name))
    if instance is None:
        raise LocalError(f"No cluster is called {name}. Start one with: eos local up --cluster --name {name}")
    return instance.found()
