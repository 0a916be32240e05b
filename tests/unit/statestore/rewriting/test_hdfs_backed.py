"""State of Spark's default provider, as it is loaded before it is written anew: with checksums of rows, and without."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

import google_crc32c
import pytest

from statestore.checkpoint import LocalFiles
from statestore.checkpoint.compression import compress
from statestore.errors import CutFailed, Damaged
from statestore.rewriting.hdfs_backed import load


def checked(content: bytes, before: bytes = b"") -> bytes:
    """A row's value after the checksum of key and value, or the key of a deletion after its own."""
    return struct.pack("<I", google_crc32c.value(before + content)) + content


def delta(folder: Path, version: int, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
    """Write changes as HDFSBackedStateStoreProvider does; None: the key is deleted."""
    parts = [
        struct.pack(">i", len(key))
        + key
        + (struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value)
        for key, value in changes
    ]
    (folder / f"{version}.delta").write_bytes(compress(b"".join([*parts, struct.pack(">i", -1)]), "lz4"))


def test_rows_without_checksums(tmp_path: Path) -> None:
    delta(tmp_path, 1, [(b"a", b"1"), (b"b", b"2")])
    delta(tmp_path, 2, [(b"a", None), (b"b", b"3")])
    assert load(LocalFiles(tmp_path), "", 2, checksums=False) == {b"b": b"3"}
    with pytest.raises(CutFailed, match=r"3\.delta"):
        load(LocalFiles(tmp_path), "", 3, checksums=False)


def test_checksums_move_with_their_rows_and_deletions_have_one_too(tmp_path: Path) -> None:
    delta(tmp_path, 1, [(b"a", checked(b"1", b"a")), (b"b", checked(b"2", b"b"))])
    delta(tmp_path, 2, [(checked(b"a"), None), (b"b", checked(b"3", b"b"))])
    assert load(LocalFiles(tmp_path), "", 2, checksums=True) == {b"b": checked(b"3", b"b")}


@pytest.mark.parametrize(
    "change",
    [
        (b"b", b"2"),
        (b"b", b""),
        (b"b", checked(b"2", b"a")),
        (b"b", checked(b"2")),
        (b"a", None),
        (checked(b"a", b"x"), None),
    ],
)
def test_a_row_without_its_checksum_is_damaged(change: tuple[bytes, bytes | None], tmp_path: Path) -> None:
    delta(tmp_path, 1, [(b"a", checked(b"1", b"a")), change])
    with pytest.raises(Damaged, match=r"A row of 1\.delta does not have its checksum"):
        load(LocalFiles(tmp_path), "", 1, checksums=True)
