"""Checkpoints that Spark wrote, unpacked: tests/vectors/checkpoints.tar.xz."""

from __future__ import annotations

import tarfile
from pathlib import Path

ARCHIVE = Path(__file__).resolve().parents[3] / "vectors" / "checkpoints.tar.xz"
NAMES = ("hdfs-aggregation", "rocksdb-deduplication", "changelog1-transform", "changelog2-join", "changelog2-transform")


def unpack(folder: Path) -> Path:
    """Unpack all into a folder; return it."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder
