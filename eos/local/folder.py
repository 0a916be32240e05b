"""`InFolder`: what a local Pulsar and a local cluster share: their folder, `with`, and whether they answer."""

from __future__ import annotations

import logging
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Self

from eos.config import Cluster, Credentials, Tls
from eos.errors import NetworkError, NoCredentials, TopicMissing
from eos.local.checks import LocalError, PortTaken, make_folder
from eos.local.places import remove_files
from eos.local.settings import Setting
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client

log = logging.getLogger("eos.local")

_ANSWER_S = 5.0
_TRIES = 3


class InFolder(ABC):
    """Runs in the folder `data`, or in a temporary one, from `start` to `stop`: for a `with` block."""

    data: Path | None
    settings: Mapping[str, Setting]
    coordinators: int
    version: str
    credentials: Credentials
    _own_files: ClassVar[Collection[str]]

    @property
    @abstractmethod
    def service_url(self) -> str:
        """The URL for clients."""

    @property
    @abstractmethod
    def admin_url(self) -> str:
        """The admin API."""

    @property
    def trust(self) -> Tls:
        """How its clients trust it."""
        return Tls()

    @property
    def cluster(self) -> Cluster:
        """How its administrator reaches it."""
        return Cluster(self.service_url, self.credentials, self.trust)

    def __post_init__(self) -> None:
        self._temporary = self.data is None
        self._made_folder = False
        self._ports_picked = False

    @abstractmethod
    def start(self) -> Self:
        """Start it, and wait until the coordinators answer."""

    @abstractmethod
    def _end(self, grace_s: float) -> None:
        """End its processes, by SIGKILL where they have not ended within this time."""

    def stop(self, keep_data: bool = False) -> None:
        """Stop it and remove all that it wrote; with `keep_data` stop it in good order and leave its files."""
        self._end(10.0 if keep_data else 0.0)
        if self.data is None or keep_data:
            return
        if self._temporary:
            shutil.rmtree(self.data, ignore_errors=True)
            self.data = None
        else:
            remove_files(self.data, self._own_files, self._made_folder)

    def __enter__(self) -> Self:
        """Start it."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stop it, removing its data."""
        self.stop()

    def _refuse_data_of(self, before: str, way_out: str) -> None:
        """Raise LocalError where its data were written by another version of Pulsar. Args: that; what to do then."""
        if before != self.version:
            raise LocalError(
                f"The data in {self.data} were written by Pulsar {before}, and may be unreadable for {self.version}. "
                f"{way_out}"
            )

    def _on_free_ports(self, start: Callable[[], None]) -> None:
        """Start it; with other ports where another process took a free one after it was picked.

        Args: starts it once, sets `_ports_picked`, and cleans up where that fails.
        """
        for left in reversed(range(_TRIES)):
            try:
                start()
                return
            except PortTaken as taken:
                if not left or not self._ports_picked:
                    raise
                log.warning("Another process took a port that was free. Starting again on other ports. %s", taken)

    def _make_folder(self, prefix: str) -> Path:
        if self.data is None:
            self.data = Path(tempfile.mkdtemp(prefix=prefix))
        elif not self.data.is_dir():
            make_folder(self.data)
            self._made_folder = True
        self.data = self.data.absolute()
        return self.data

    def _coordinators_answer(self) -> bool:
        on = self.settings.get("transactionCoordinatorEnabled", True) in (True, "true")
        return ready(self.cluster, self.admin_url, self.coordinators if on else 0)


def ready(cluster: Cluster, admin_url: str, coordinators: int) -> bool:
    """Ask the broker once. Makes it set up more coordinators when it has fewer than `coordinators`; 0: none are asked.

    A coordinator counts when it lets a client connect: only then it has loaded its log. Raises NoCredentials.
    """
    try:
        with Admin(admin_url, cluster.credentials, cluster.tls, _ANSWER_S) as admin:
            if "public/default" not in admin.namespaces("public"):
                return False
            if not coordinators:
                return True
            brokers = admin.coordinators()
            if len(brokers) < coordinators:
                admin.set_coordinators(coordinators)
                return False
            if None in brokers:
                return False
    except NoCredentials:
        raise
    except (NetworkError, TopicMissing):
        return False
    with Client(replace(cluster, request_timeout_s=_ANSWER_S)) as client:
        try:
            for index in range(client.coordinators()):
                client.coordinator(index).connect()
        except NetworkError:
            return False
    return True
