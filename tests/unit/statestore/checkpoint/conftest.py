"""Checkpoints that Spark wrote, unpacked: tests/vectors/checkpoints.tar.xz; what a test damages in them."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from statestore.checkpoint import LocalFiles, committed, needs_of
from statestore.checkpoint.inspection import inspect

ARCHIVE = Path(__file__).resolve().parents[3] / "vectors" / "checkpoints.tar.xz"
NAMES = ("hdfs-aggregation", "rocksdb-deduplication", "changelog1-transform", "changelog2-join", "changelog2-transform")

Copy = Callable[[str], Path]

inspect_one = partial(inspect, operators=1)
"""`inspect` for a query with one stateful operator, which all of these have."""


def unpack(folder: Path) -> Path:
    """Unpack all into a folder; return it."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


def needed(folder: Path, kind: str) -> Path:
    """The last file of a kind that the last batch needs."""
    files = LocalFiles(folder)
    needs = needs_of(files, committed(files)[-1])
    return folder / [path for path, need in needs.files.items() if need.kind == kind][-1]


def flip(file: Path, at: int | None = None) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2 if at is None else at] ^= 0x40
    file.write_bytes(data)


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture
def copy(unpacked: Path, tmp_path: Path) -> Copy:
    """A checkpoint that the test may damage: `copy("hdfs-aggregation")`."""
    return lambda name: Path(shutil.copytree(unpacked / name, tmp_path / name))
