"""Files of a tree of names, asked of the jar in answers that its JVM has the memory for."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import pytest

from statestore import NotFound
from statestore.bk import tree
from statestore.bk.address import BkAddress
from statestore.checkpoint import verification
from statestore.checkpoint.inspection import Inspection
from statestore.hadoop.file_systems import Status

ADDRESS = BkAddress.parse("bk://zk:2181/q", {})


class Jar:
    """The jar, with files at some paths. Attributes: asked: how many paths it was asked for at a time."""

    def __init__(self, paths: list[str], *, gone: str = "") -> None:
        self._paths, self._gone = paths, gone
        self.asked: list[int] = []
        self.jvm = self.eos = self.bk = self.Look = self

    def explained(self, uri: str) -> nullcontext[None]:
        return nullcontext()

    def file_system(self, uri: str) -> Jar:
        return self

    def list(self, uri: str) -> list[Status]:
        top = uri.removeprefix("bk://zk:2181")
        below = [path.removeprefix(f"{top}/") for path in self._paths if path.startswith(f"{top}/")]
        if not below or top == self._gone:
            raise NotFound(f"{top} does not exist")
        names = dict.fromkeys(name.partition("/")[0] for name in below)
        return [Status(f"{uri}/{one}", f"{top}/{one}", one, 0, 0, f"{top}/{one}" not in self._paths) for one in names]

    def files(self, file_system: Jar, paths: str) -> str:
        wanted = json.loads(paths)
        self.asked.append(len(wanted))
        there = set(self._paths)
        rest = {"write": "w-1", "generation": 0, "ledger": -1, "first": 0, "last": -1, "entry_size": 1}
        rest |= {"length": 0, "crc32c": 0, "mtime_ms": 0}
        return json.dumps([{"path": one, **rest} for one in wanted if one in there])

    def ledgers(self, file_system: Jar, ids: str) -> str:
        return "[]"


def test_a_large_tree_is_asked_for_in_parts() -> None:
    """In one answer 300,000 files are 80 MB, for which a JVM of 512 MiB has not the memory."""
    paths = [f"/q/state/0/{part}/{number}.delta" for part in range(25) for number in range(1_000)]
    jar: Any = Jar([*paths, "/q/metadata"])
    assert sorted(tree.files(jar, ADDRESS)) == sorted([*paths, "/q/metadata"])
    assert jar.asked == [10_000, 10_000, 5_001]


def test_a_folder_that_goes_meanwhile_is_left_out() -> None:
    paths = ["/q/a/1", "/q/b/2"]
    assert list(tree.files(Jar(paths, gone="/q/a"), ADDRESS)) == ["/q/b/2"]  # type: ignore[arg-type]
    with pytest.raises(NotFound, match="/q does not exist"):
        tree.files(Jar([]), ADDRESS)  # type: ignore[arg-type]


def test_verify_asks_for_the_files_that_it_has_read() -> None:
    """A checkpoint of 3,000 stores has hundreds of thousands of files, and a restart needs few of them."""
    jar: Any = Jar([f"/q/offsets/{batch}" for batch in range(1_000)])
    read = dict.fromkeys(("offsets/998", "offsets/999", "offsets/1000"), 1)
    assert verification._replicas(jar, ADDRESS, Inspection("id", (998, 999), read, ()), None) == (0, [])
    assert jar.asked == [3]
