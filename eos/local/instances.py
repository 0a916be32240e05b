"""The instances that `eos local` runs: each known by a name, with a state file that outlives the command.

A state file names its process by pid and start time, so that a pid in use again is not taken for the instance.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from eos.local import checks
from eos.local.places import Tell, cache, locked, quiet
from eos.local.process import ProcessId, end_other
from eos.local.pulsar import LocalPulsar, recorded_ports, remove_files
from eos.local.settings import Ports, Setting

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_LOCK = "instances"


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
    def service_url(self) -> str:
        """What clients connect to."""
        return f"pulsar://localhost:{self.ports.broker}"

    @property
    def admin_url(self) -> str:
        """The admin API."""
        return f"http://localhost:{self.ports.http}"

    @property
    def running(self) -> bool:
        """Whether its process still runs."""
        return self.process.alive()

    def summary(self) -> dict[str, str | int | bool]:
        """What `status --json` shows."""
        return {
            "name": self.name,
            "running": self.running,
            "service_url": self.service_url,
            "admin_url": self.admin_url,
            "zookeeper": f"localhost:{self.ports.zookeeper}",
            "bookkeeper": f"localhost:{self.ports.bookkeeper}",
            "pid": self.process.pid,
            "data": str(self.data),
            "log": str(self.data / "pulsar.log"),
        }


def up(
    name: str,
    *,
    ports: Mapping[str, int] | None = None,
    pick_ports: bool = False,
    data: Path | None = None,
    memory: str = "1g",
    settings: Mapping[str, Setting] | None = None,
    tell: Tell = quiet,
) -> tuple[Instance, bool]:
    """Start the instance, or find it running; the second part of the answer is whether it was started now.

    Args:
        name: letters, digits and _ . -
        ports: those that must be so, by the field names of `Ports`. The others are those that the data were made with,
            or else free ones if `pick_ports`, or else Pulsar's own.
        pick_ports: see there.
        data: its folder. Default: one in the cache folder.
        memory, settings: as for `LocalPulsar`.
        tell: takes lines about what is going on.

    Raises:
        LocalError: as `LocalPulsar.start`; or the name is no name.
    """
    if not _NAME.fullmatch(name):
        raise checks.LocalError(f"{name!r} is no name for an instance: letters, digits, _ . - and at most 64 of them")
    with locked(_LOCK, tell):
        previous = _read(name)
        if previous is not None and previous.running:
            return previous, False
        if previous is not None:
            tell(f"{name} had ended without `eos local down`; starting it again on its data")
            data = data or previous.data
        folder = (data or _folder(name) / "data").absolute()
        made_before = previous is not None and previous.data == folder and previous.data_is_ours
        ours = made_before or not folder.exists() or folder.is_relative_to(_folder(name))
        base = recorded_ports(folder) or (Ports.free() if pick_ports else Ports())
        chosen = Ports(**{**base.mapping(), **(ports or {})})
        pulsar = LocalPulsar(
            ports=chosen, data=folder, memory=memory, settings=settings or {}, die_with_parent=False, tell=tell
        )
        tell(f"Starting Pulsar; its log: {folder / 'pulsar.log'}")
        try:
            pulsar.launch()
            instance = Instance(name, chosen, folder, ours, ProcessId.of(pulsar.pid or 0) or ProcessId(0, ""))
            _write(instance)  # before it is ready: `down` must find what a killed `up` has started
            pulsar.wait_until_ready()
        except BaseException:
            pulsar.kill()
            if previous is None:
                _forget(name)
            else:
                _write(previous)
            raise
        return instance, True


def down(name: str, keep_data: bool = False, tell: Tell = quiet) -> Instance | None:
    """Stop the instance and remove what it wrote; None when there is none of that name.

    With `keep_data` it is stopped in good order, and its folder stays for a later `up`.
    """
    with locked(_LOCK, tell):
        instance = _read(name)
        if instance is None:
            return None
        end_other(instance.process, grace_s=10.0 if keep_data else 0.0)
        if not keep_data:
            remove_files(instance.data, instance.data_is_ours)
        _forget(name)
        return instance


def known() -> list[Instance]:
    """Every instance with a state file, running or not, by name."""
    found = (_read(path.parent.name) for path in sorted(_root().glob("*/state.json")))
    return [instance for instance in found if instance is not None]


def _root() -> Path:
    return cache() / "local"


def _folder(name: str) -> Path:
    return _root() / name


def _read(name: str) -> Instance | None:
    path = _folder(name) / "state.json"
    try:
        held = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return Instance(
        name=held["name"],
        ports=Ports(**held["ports"]),
        data=Path(held["data"]),
        data_is_ours=held["data_is_ours"],
        process=ProcessId(**held["process"]),
    )


def _write(instance: Instance) -> None:
    path = _folder(instance.name) / "state.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".new")
    scratch.write_text(json.dumps(asdict(instance), default=str, indent=1))
    scratch.replace(path)


def _forget(name: str) -> None:
    folder = _folder(name)
    (folder / "state.json").unlink(missing_ok=True)
    if folder.exists() and not any(folder.iterdir()):
        folder.rmdir()
