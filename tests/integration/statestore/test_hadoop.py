"""Hadoop's file systems from Python, on a JVM of its own and on Spark's."""

from __future__ import annotations

import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

from statestore import InvalidInput, NotFound
from statestore.hadoop.file_systems import Hadoop


@pytest.fixture(params=["own JVM", "Spark's JVM"])
def hadoop(request: pytest.FixtureRequest, spark: Any) -> Hadoop:
    return Hadoop.of(spark, own_jvm=request.param == "own JVM")


@pytest.mark.parametrize("scheme", ["bk", "file"])
def test_files_and_folders(hadoop: Hadoop, scheme: str, bk: str, tmp_path: Path) -> None:
    base = bk if scheme == "bk" else f"file://{tmp_path}/base"
    assert hadoop.status(base) is None
    hadoop.write(f"{base}/a/one", b"1" * 1000)
    hadoop.write(f"{base}/a/none", b"")
    hadoop.write(f"{base}/z", bytes(range(256)))
    one = hadoop.status(f"{base}/a/one")
    assert one is not None
    assert (one.name, one.length, one.is_directory) == ("one", 1000, False)
    assert abs(one.mtime_ms - time.time() * 1000) < 60_000
    assert [(status.name, status.is_directory) for status in hadoop.list(base)] == [("a", True), ("z", False)]
    assert [status.path.rpartition("/")[2] for status in hadoop.walk(base)] == ["none", "one", "z"]
    assert hadoop.read(f"{base}/z") == bytes(range(256))
    assert hadoop.read(f"{base}/a/none") == b""
    hadoop.rename(f"{base}/z", f"{base}/a/y")
    assert hadoop.status(f"{base}/z") is None
    with pytest.raises(InvalidInput, match="exists already"):
        hadoop.rename(f"{base}/a/y", f"{base}/a/one")
    if scheme == "bk":
        with pytest.raises(InvalidInput, match="folder above"):
            hadoop.rename(f"{base}/a/y", f"{base}/no-such/z")
    with pytest.raises(InvalidInput, match="not empty"):
        hadoop.delete(f"{base}/a")
    assert hadoop.delete(f"{base}/a", recursive=True)
    assert not hadoop.delete(f"{base}/a")


def test_writing_twice_must_be_asked_for(hadoop: Hadoop, bk: str) -> None:
    hadoop.write(f"{bk}/x", b"1")
    with pytest.raises(InvalidInput, match="already exists"):
        hadoop.write(f"{bk}/x", b"2")
    assert hadoop.read(f"{bk}/x") == b"1"
    hadoop.write(f"{bk}/x", b"2", overwrite=True)
    assert hadoop.read(f"{bk}/x") == b"2"


def test_copies_there_and_back(hadoop: Hadoop, bk: str, tmp_path: Path) -> None:
    big = zlib.compress(bytes(tmp_path)) + bytes(range(256)) * 10_000
    (tmp_path / "in/deep").mkdir(parents=True)
    (tmp_path / "in/big").write_bytes(big)
    (tmp_path / "in/deep/small with space%20").write_bytes(b"x")
    copied: list[int] = []
    assert hadoop.copy(f"file://{tmp_path}/in", f"{bk}/copy", copied.append) == len(big) + 1
    assert sorted(copied) == [1, len(big)]
    assert b"".join(hadoop.blocks(f"{bk}/copy/big")) == big
    hadoop.copy(f"{bk}/copy", f"file://{tmp_path}/out")
    assert (tmp_path / "out/big").read_bytes() == big
    assert (tmp_path / "out/deep/small with space%20").read_bytes() == b"x"
    with pytest.raises(InvalidInput, match="exists already"):
        hadoop.copy(f"{bk}/copy/big", f"{bk}/copy/deep")


def test_errors_say_what_is_wrong(hadoop: Hadoop, bk: str) -> None:
    for call in (hadoop.read, hadoop.list, lambda uri: hadoop.copy(uri, f"{bk}/x")):
        with pytest.raises(NotFound, match=r"nothing.* does not exist"):
            call(f"{bk}/nothing")
    with pytest.raises(NotFound, match="does not exist"):
        hadoop.rename(f"{bk}/nothing", f"{bk}/x")
    with pytest.raises(InvalidInput, match="nosuch"):
        hadoop.list("nosuch://x/y")
    with pytest.raises(InvalidInput, match="empty string"):
        hadoop.status("")


def test_options_hold_for_the_caller_only(spark: Any, own_tree: tuple[str, dict[str, str]]) -> None:
    address, options = own_tree
    Hadoop.of(spark, options).write(f"{address}x", b"1")
    other = options | {"fs.bk.root": options["fs.bk.root"] + "-other"}
    assert Hadoop.of(spark, options).read(f"{address}x") == b"1"
    assert Hadoop.of(spark, other).status(f"{address}x") is None


def test_the_jvm_ends_with_python(bk: str) -> None:
    code = (
        "import sys\n"
        "from statestore.hadoop import own_jvm\n"
        "from statestore.hadoop.file_systems import Hadoop\n"
        "Hadoop.of().write(sys.argv[1], b'1')\n"
        "print(own_jvm._own.java_process.pid, flush=True)\n"
    )
    finished = subprocess.run([sys.executable, "-c", code, f"{bk}/x"], capture_output=True, text=True, timeout=120)
    assert finished.returncode == 0, finished.stderr
    assert not Path(f"/proc/{int(finished.stdout)}").exists()
    assert Hadoop.of().read(f"{bk}/x") == b"1"
