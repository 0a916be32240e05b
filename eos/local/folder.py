"""`InFolder`: what a local Pulsar and a local cluster share: their folder, `with`, and whether they answer."""

from __future__ import annotations

import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import ClassVar, Self

from eos.config import Cluster, Credentials, Tls
from eos.local.checks import make_folder
from eos.local.places import remove_files
from eos.local.readiness import ready
from eos.local.settings import Setting


class InFolder(ABC):
    """Runs in the folder `data`, or in a temporary one, from `start` to `stop`: for a `with` block."""

    data: Path | None
    settings: Mapping[str, Setting]
    coordinators: int
    credentials: Credentials
    _own_files: ClassVar[Collection[str]]

    @property
    @abstractmethod
    def service_url(self) -> str:
        """What clients connect to."""

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
