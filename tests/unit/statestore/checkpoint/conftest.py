"""Copies of checkpoints that Spark wrote."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.unit.statestore.checkpoint.checkpoints import Copy, unpack


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture
def copy(unpacked: Path, tmp_path: Path) -> Copy:
    """A checkpoint that the test may damage: `copy("hdfs-aggregation")`."""
    return lambda name: Path(shutil.copytree(unpacked / name, tmp_path / name))
