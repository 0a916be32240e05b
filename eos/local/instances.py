"""The instances that `eos local` runs: each known by a name, with a state file that outlives the command.

A state file names its process by pid and start time, so that a pid in use again is not taken for the instance.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eos.config import Cluster
from eos.local import access, certificates, checks, clusters, records
from eos.local.clusters import ClusterInstance
from eos.local.folder import ready
from eos.local.jars import PULSAR_VERSION, major
from eos.local.places import Tell, locked, quiet, remove_files
from eos.local.process import ProcessId, end_other
from eos.local.pulsar import LocalPulsar, recorded_ports, recorded_version
from eos.local.settings import OWN_FILES, Ports, Setting

_ANSWERS_WITHIN_S = 60.0
_POLL_S = 0.1
_SECRETS = (*access.FILES, *certificates.FILES)


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance as its state file tells it.

    Attributes:
        data: its folder.
        data_is_ours: whether `up` made that folder.
    """

    name: str
    ports: Ports
    data: Path
    data_is_ours: bool
    process: ProcessId

    @property
    def tls(self) -> bool:
        """Whether it speaks TLS, and nothing else."""
        return certificates.authority_file(self.data).exists()

    @property
    def service_url(self) -> str:
        """The URL for clients."""
        return self.ports.service_url(self.tls)

    @property
    def admin_url(self) -> str:
        """The admin API."""
        return self.ports.admin_url(self.tls)

    @property
    def running(self) -> bool:
        """Whether its process still runs."""
        return self.process.alive()

    def connection(self) -> list[str]:
        """The options by which commands connect to it, where it asks for a token or speaks TLS; else none."""
        told = self.summary()
        names = ("service_url", "admin_url", "token", "tls_trust_certs")
        if not {"token", "tls_trust_certs"} & set(told):
            return []
        return [word for name in names if name in told for word in (f"--{name.replace('_', '-')}", told[name])]

    def summary(self) -> dict[str, Any]:
        """The output of `status --json`."""
        token = access.token_file(self.data)
        return {
            "name": self.name,
            "running": self.running,
            "service_url": self.service_url,
            "admin_url": self.admin_url,
            "zookeeper": f"localhost:{self.ports.zookeeper}",
            **({} if major(recorded_version(self.data)) >= 5 else {"bookkeeper": f"localhost:{self.ports.bookkeeper}"}),
            "pid": self.process.pid,
            "data": str(self.data),
            "log": str(self.data / "pulsar.log"),
            **({"token": f"file:{token}"} if token.exists() else {}),
            **({"tls_trust_certs": str(certificates.authority_file(self.data))} if self.tls else {}),
        }


def up(
    name: str,
    *,
    ports: Mapping[str, int] | None = None,
    pick_ports: bool = False,
    data: Path | None = None,
    memory: str = "1g",
    version: str = PULSAR_VERSION,
    settings: Mapping[str, Setting] | None = None,
    asks_token: bool = False,
    tls: bool = False,
    tell: Tell = quiet,
) -> tuple[Instance, bool]:
    """Start the instance, or find it running; the second part of the answer is whether it was started now.

    Args:
        name: letters, digits and _ . -
        ports: those that must be so, by the field names of `Ports`. The others are those that the data were made with,
            or else free ones if `pick_ports`, or else Pulsar's own.
        pick_ports: see there.
        data: its folder. Default: one in the cache folder.
        memory, version, settings: as for `LocalPulsar`.
        asks_token: clients need a token; see `eos.local.access`.
        tls: it speaks TLS, and nothing else; see `eos.local.certificates`.
        tell: takes lines about what is going on.

    Raises:
        LocalError: as `LocalPulsar.start`. Or the name is not valid, or the instance runs and does not answer.
    """
    records.check_name(name)
    with locked(records.LOCK, tell):
        previous = _read(name)
        if isinstance(previous, ClusterInstance):
            raise checks.LocalError(f"{name} is a cluster. Say --cluster, or give this instance another --name")
        if previous is not None and previous.running:
            _wait_until_ready(previous)
            return previous, False
        if previous is not None:
            tell(f"{name} had ended without `eos local down`; starting it again on its data")
            data = data or previous.data
        folder = (data or records.folder(name) / "data").absolute()
        made_before = previous is not None and previous.data == folder and previous.data_is_ours
        ours = made_before or not folder.exists() or folder.is_relative_to(records.folder(name))
        tls = tls or certificates.authority_file(folder).exists()
        base = recorded_ports(folder) or (Ports.free() if pick_ports else Ports.usual(tls))
        chosen = Ports(**{**base.mapping(), **(ports or {})})
        made = [name for name in _SECRETS if not (folder / name).exists()]
        asked = access.require_tokens(folder) if asks_token or access.token_file(folder).exists() else {}
        pulsar = LocalPulsar(
            ports=chosen,
            data=folder,
            memory=memory,
            version=version,
            settings={**asked, **(settings or {})},
            die_with_parent=False,
            credentials=access.credentials(folder),
            tls=tls,
            tell=tell,
        )
        tell(f"Starting Pulsar. Its log is {folder / 'pulsar.log'}")
        try:
            pulsar.launch()
            instance = Instance(name, chosen, folder, ours, ProcessId.of(pulsar.pid or 0) or ProcessId(0, ""))
            records.write(name, asdict(instance))  # before it is ready: `down` must find what a killed `up` has started
            pulsar.wait_until_ready()
        except BaseException:
            pulsar.kill()
            if previous is None:
                remove_files(folder, made, ours)  # those of an earlier `up` are what its data need
                records.forget(name)
            else:
                records.write(name, asdict(previous))
            raise
        return instance, True


def _wait_until_ready(instance: Instance) -> None:
    """Wait for an instance that runs, and that a killed `up` may have left while it started. Raises LocalError."""
    deadline = time.monotonic() + _ANSWERS_WITHIN_S
    home = instance.data
    cluster = Cluster(instance.service_url, access.credentials(home), certificates.trust(home))
    while not ready(cluster, instance.admin_url, 0):
        if not instance.running or time.monotonic() > deadline:
            state = f"does not answer within {_ANSWERS_WITHIN_S:g} s" if instance.running else "ended while starting"
            raise checks.LocalError(
                f"{instance.name} was running already, and {state}. Its log is {home / 'pulsar.log'}. Take it down "
                f"with: eos local down --name {instance.name}"
            )
        time.sleep(_POLL_S)


def down(name: str, keep_data: bool = False, tell: Tell = quiet) -> Instance | ClusterInstance | None:
    """Stop the instance or cluster and remove what it wrote; None when there is none of that name.

    With `keep_data` it is stopped in good order, and its folder stays for a later `up`.
    """
    with locked(records.LOCK, tell):
        instance = _read(name)
        if isinstance(instance, ClusterInstance):
            clusters.down(instance, keep_data)
        elif instance is not None:
            end_other(instance.process, grace_s=10.0 if keep_data else 0.0)
            if not keep_data:
                remove_files(instance.data, (*OWN_FILES, *_SECRETS), instance.data_is_ours)
            records.forget(name)
        return instance


def known() -> list[Instance | ClusterInstance]:
    """Every instance and cluster with a state file, running or not, by name."""
    found = (_read(name) for name in records.names())
    return [instance for instance in found if instance is not None]


def _read(name: str) -> Instance | ClusterInstance | None:
    held = records.read(name)
    if held is None:
        return None
    return clusters.of(held) or Instance(
        name=held["name"],
        ports=Ports(**held["ports"]),
        data=Path(held["data"]),
        data_is_ours=held["data_is_ours"],
        process=ProcessId(**held["process"]),
    )
