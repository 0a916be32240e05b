"""Deltas and changelogs of each format, made by hand from Spark's description of them."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from statestore.checkpoint import LocalFiles
from statestore.checkpoint.changes import Ancestor, Changes, changes_in, read_changes, read_lineage, snapshot_of
from statestore.checkpoint.difference import parts_of
from statestore.checkpoint.operators import Operator
from statestore.errors import Damaged
from tests.unit.statestore.checkpoint.test_compression import lz4


def plain(*changes: tuple[bytes, bytes | None]) -> bytes:
    out = b""
    for key, value in changes:
        out += struct.pack(">i", len(key)) + key
        out += struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
    return out + struct.pack(">i", -1)


def typed(*changes: tuple[int, bytes, bytes | None]) -> bytes:
    out = b""
    for kind, key, value in changes:
        out += bytes([kind]) + struct.pack(">i", len(key)) + key
        out += struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
    return out + b"\x00"


def text(words: str) -> bytes:
    return struct.pack(">H", len(words.encode())) + words.encode()


LINEAGE = json.dumps([{"version": 4, "checkpointUniqueId": "b"}, {"version": 3, "checkpointUniqueId": "a"}])
ANCESTORS = (Ancestor(3, "a"), Ancestor(4, "b"))
PLAIN = plain((b"key", b"value"), (b"gone", None), (b"", b""))
TYPED = typed((0x01, b"key", b"value"), (0x11, b"key", b"more"), (0x10, b"gone", None))
FORMATS = {
    1: (PLAIN, Changes(1, (), 2, 1)),
    2: (text("v2") + TYPED, Changes(2, (), 2, 1)),
    3: (text("v3") + text(LINEAGE) + PLAIN, Changes(3, ANCESTORS, 2, 1)),
    4: (text("v4") + text(LINEAGE) + TYPED, Changes(4, ANCESTORS, 2, 1)),
}


@pytest.mark.parametrize("form", FORMATS)
def test_each_format(form: int) -> None:
    content, expected = FORMATS[form]
    assert read_changes(lz4(content)) == expected
    assert read_lineage(lz4(content)) == expected.lineage


def test_the_changes_one_by_one() -> None:
    assert list(changes_in(lz4(PLAIN))) == [(b"key", b"value"), (b"gone", None), (b"", b"")]
    rows = [(b"key", b"value"), (b"", b""), (b"k" * 300, b"v")]
    assert list(changes_in(lz4(snapshot_of(rows)))) == rows
    with pytest.raises(Damaged):
        list(changes_in(lz4(PLAIN[:-1])))


@pytest.mark.parametrize("form", FORMATS)
def test_without_its_end_it_was_cut_short(form: int) -> None:
    content, _ = FORMATS[form]
    for at in range(len(content)):
        with pytest.raises(Damaged):
            read_changes(lz4(content[:at]))


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_may_follow_the_end(form: int) -> None:
    with pytest.raises(Damaged, match="follow the mark"):
        read_changes(lz4(FORMATS[form][0] + b"\x00"))


def test_an_empty_changelog_is_only_its_end() -> None:
    assert read_changes(lz4(b"\xff\xff\xff\xff")) == Changes(1, (), 0, 0)


@pytest.mark.parametrize(
    "content",
    [
        struct.pack(">i", -7) + b"x" * 20,
        text("v2") + b"\x77" + b"x" * 20,
        text("v2") + typed((0x01, b"key", None)),
        text("v3") + text("{") + PLAIN,
        text("v4") + text('[{"version":1}]') + TYPED,
    ],
)
def test_what_spark_does_not_write(content: bytes) -> None:
    with pytest.raises(Damaged):
        read_changes(lz4(content))


# ---- difference


FOUR = ("left-keyToNumValues", "left-keyWithIndexToValue", "right-keyToNumValues", "right-keyWithIndexToValue")


@pytest.mark.parametrize(
    ("version", "stores", "expected"),
    [
        ("1", FOUR, [(f"storeName={store}", False) for store in FOUR]),
        ("2", FOUR, [(f"storeName={store}", False) for store in FOUR]),
        ("3", ("default",), [(f"storeName={store}", False) for store in FOUR]),
        ("4", ("default",), [("joinSide=left", True), ("joinSide=right", True)]),
        ("5", ("default",), [("joinSide=left", True), ("joinSide=right", True)]),
    ],
)
def test_parts_of_a_join(
    version: str, stores: tuple[str, ...], expected: list[tuple[str, bool]], tmp_path: Path
) -> None:
    operator = Operator(0, "symmetricHashJoin", stores, 2, "", ())
    found = parts_of(LocalFiles(tmp_path), operator, version)
    assert [("=".join(part.reading[0]), part.many) for part in found] == expected
