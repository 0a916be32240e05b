"""The required content of a checkpoint's file: read it, and compare it with all that is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from statestore.checkpoint import logs
from statestore.checkpoint.changes import read_changes
from statestore.checkpoint.files import FileEntry
from statestore.checkpoint.needs import Need
from statestore.checkpoint.operators import check_schema
from statestore.checkpoint.rocksdb import check_table, read_snapshot
from statestore.checkpoint.sources import check_entry
from statestore.checkpoint.stores import CHANGES, check_checksum
from statestore.errors import Damaged


def check_content(file: Need, data: bytes, checksum: bytes | None) -> None:
    """Look whether a file holds what Spark wrote.

    Args:
        checksum: what Spark's .crc beside it holds; None if there is none.

    Raises:
        Damaged: it doesn't.
        UnknownVersion: a newer Spark wrote it.
    """
    if checksum is not None:
        check_checksum(file.path, data, checksum)
    if file.length is not None and len(data) != file.length:
        raise Damaged(f"it has {len(data)} bytes. The snapshot that refers to it says {file.length}")
    if file.kind in CHANGES or file.kind == "snapshot":
        read_changes(data)
    elif file.kind == "zip":
        read_snapshot(data)
    elif file.kind == "table":
        check_table(file.path, data)
    elif file.kind == "schema":
        check_schema(data)
    elif file.kind == "source":
        check_entry(data)
    else:
        _check_log(file, data)


def _check_log(file: Need, data: bytes) -> None:
    number = file.path.rpartition("/")[2]
    one = _One(file.path, data)
    if file.kind == "metadata":
        logs.read_query_id(one)
    elif file.kind == "offsets":
        logs.read_offsets(one, int(number))
    elif file.kind == "commits":
        logs.read_commit(one, int(number))


@dataclass(frozen=True, slots=True)
class _One:
    """One file that was read already."""

    path: str
    data: bytes

    def list(self, path: str) -> Mapping[str, FileEntry]:
        return {}

    def read(self, path: str) -> bytes:
        return self.data
