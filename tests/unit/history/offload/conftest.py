"""Ledgers that Pulsar's own offloaders wrote, in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from eos.history.offload.ledgers import OffloadedLedgers
from eos.history.offload.location import offload_location
from tests.vectors.offloads import Offloaded, ledgers


class Storage:
    """A folder with one offloaded ledger in one format.

    Attributes:
        ledger: what was offloaded.
    """

    def __init__(self, folder: Path, ledger: Offloaded, form: str) -> None:
        """Args: an empty folder; the ledger; "blocks" or "map file"."""
        self.ledger, self._folder = ledger, folder
        for name, content in ledger.objects.items():
            if name.startswith(ledger.data) == (form == "blocks"):
                self.write(name, content)

    @property
    def names(self) -> list[str]:
        """The objects."""
        found = (one for one in self._folder.rglob("*") if one.is_file())
        return sorted(str(one.relative_to(self._folder)) for one in found)

    def write(self, name: str, content: bytes) -> None:
        """Put an object there."""
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def remove(self, name: str) -> None:
        """Delete an object."""
        (self._folder / name).unlink()

    def reader(self, chunk_bytes: int = 4 << 20) -> OffloadedLedgers:
        """Return a reader of the folder."""
        return OffloadedLedgers(offload_location(self._folder.as_uri()), chunk_bytes)


@pytest.fixture(params=["blocks", "map file"])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def small(tmp_path: Path, form: str) -> Storage:
    return Storage(tmp_path, ledgers()[7], form)


@pytest.fixture
def large(tmp_path: Path, form: str) -> Storage:
    return Storage(tmp_path, ledgers()[8], form)
