"""A small checkpoint, and savepoints of it on topics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eos.config import Cluster
from statestore.savepoints import topic as topics
from statestore.savepoints.stream import Manifest
from statestore.savepoints.topic import What
from tests.local_folder import LocalFolder

FILES = {
    "metadata": b'{"id":"5f"}',
    "offsets/3": b"v1\n{}\n5",
    "commits/3": b"v1\n{}",
    "state/0/0/_empty": b"",
    "state/0/0/4.delta": bytes(range(256)) * 16,
}


def folder(root: Path, files: dict[str, bytes] | None = None) -> LocalFolder:
    made = LocalFolder(root)
    made.begin()
    for path, data in (files or FILES).items():
        made.write(path, [data])
    return made


def content(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def what(name: str = "one") -> What:
    return What(name, "bk://zk:2181/q", 3, "5f", 1_700_000_000_000)


def write(cluster: Cluster, topic: str, source: Any, name: str = "one") -> Manifest:
    return topics.write(cluster, topic, what(name), source, timeout_s=120)
