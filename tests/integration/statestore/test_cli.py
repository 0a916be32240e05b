"""The command `statestore` on a real ZooKeeper and bookie: what it shows, what it refuses, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import google_crc32c
import pytest

from statestore import BkAddress
from statestore.bk import tree
from statestore.cli import app as cli
from statestore.hadoop.file_systems import Hadoop
from tests.integration.statestore.conftest import OwnTree, raw_zookeeper
from tests.traces import traces

Statestore = Callable[..., tuple[int, str]]


@pytest.fixture
def statestore(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Statestore:
    """Run the command in this process, which starts one JVM for all: exit code, and output or else the error."""

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["statestore", *arguments])
        with pytest.raises(SystemExit) as left:
            cli.app()
        sys.stdout.flush()
        told = capfdbinary.readouterr()
        if not left.value.code:
            assert traces(told.err.decode()) == []
        return int(left.value.code or 0), (told.out or told.err).decode()

    return run


@pytest.fixture
def own_pack(own_tree: OwnTree, statestore: Statestore) -> tuple[str, Hadoop, Statestore]:
    """A folder with a pack of its own, since one that all tests share is closed at any write, once it is old enough.

    Its address, access to it, and the command with its options.
    """
    root, options = own_tree
    given = [f"--option={key}={value}" for key, value in options.items()]
    return f"{root}folder", Hadoop.of(options=options), lambda *words: statestore(*words, *given)


def as_json(answer: tuple[int, str]) -> Any:
    assert answer[0] == 0, answer[1]
    return json.loads(answer[1])


def test_a_file_is_listed_described_read_and_deleted(own_pack: tuple[str, Hadoop, Statestore]) -> None:
    bk, hadoop, statestore = own_pack
    data = bytes(range(256)) * 10
    hadoop.write(f"{bk}/a/b/one", data)
    hadoop.write(f"{bk}/a/b/text", "größer\n".encode())
    hadoop.write(f"{bk}/none", b"")
    assert [(one["name"], one["is_directory"], one["length"]) for one in as_json(statestore("ls", bk, "--json"))] == [
        ("a", True, 0),
        ("none", False, 0),
    ]
    code, text = statestore("ls", "-r", bk)
    assert code == 0
    assert [line for line in text.splitlines() if "2.5 KiB" in line and "/a/b/one" in line], text
    facts = as_json(statestore("stat", f"{bk}/a/b/one", "--json"))
    assert (facts["length"], facts["generation"], facts["first_entry"]) == (2560, 0, facts["last_entry"])
    assert int(facts["crc32c"], 16) == google_crc32c.value(data)
    assert facts["ledger_quorum"] == "1/1/1"
    assert len(facts["ledger_bookies"]) == 1
    assert (facts["ledger_sealed"], facts["ledger_savepoints"], facts["ledger_length"]) == (False, [], None)
    code, text = statestore("stat", f"{bk}/a/b/one")
    assert (code, "2.5 KiB (2560)" in text, f"{facts['ledger']}" in text) == (0, True, True)
    assert as_json(statestore("stat", f"{bk}/none", "--json"))["ledger"] is None
    assert as_json(statestore("stat", bk, "--json"))["names"] == 2
    assert statestore("cat", f"{bk}/a/b/text") == (0, "größer\n")
    assert statestore("rm", f"{bk}/a/b/one")[0] == 0
    assert [one["name"] for one in as_json(statestore("ls", "-r", bk, "--json"))] == ["text", "none"]


def test_rm_deletes_a_symbolic_link_and_not_the_checkpoint_behind_it(statestore: Statestore, tmp_path: Path) -> None:
    """On Hadoop's own file:// file system, which shows a link as the folder behind it."""
    live, old = tmp_path / "live", tmp_path / "old"
    (live / "offsets").mkdir(parents=True)
    (live / "metadata").write_text('{"id":"x"}')
    old.mkdir()
    (old / "link").symlink_to(live)
    (old / "round").symlink_to(old)
    for folder in (old / "link", old):
        assert statestore("rm", "-r", f"file://{folder}")[0] == 0
        assert not folder.is_symlink()
        assert not folder.exists()
        assert {path.name for path in live.iterdir()} == {"offsets", "metadata"}


def test_usage(own_pack: tuple[str, Hadoop, Statestore], tmp_path: Path) -> None:
    bk, hadoop, statestore = own_pack
    (tmp_path / "in/deep").mkdir(parents=True)
    (tmp_path / "in/big").write_bytes(b"b" * 3_000_000)
    (tmp_path / "in/deep/small").write_bytes(b"s" * 10)
    hadoop.copy(f"file://{tmp_path}/in", f"{bk}/in")
    usage = as_json(statestore("du", f"{bk}/in", "--json"))
    assert usage["names"] == {"big": {"files": 1, "bytes": 3_000_000}, "deep": {"files": 1, "bytes": 10}}
    assert (usage["files"], usage["bytes"], usage["ledgers"], usage["open_ledgers"]) == (2, 3_000_010, 2, 1)
    assert usage["sealed_ledgers_hold_bytes"] == usage["of_that_below_this_address_bytes"] == 3_000_000
    assert "2.9 MiB" in statestore("du", f"{bk}/in")[1]
    local = as_json(statestore("du", f"file://{tmp_path}/in", "--json"))
    assert local == {"files": 2, "bytes": 3_000_010, "names": usage["names"]}


def test_what_is_wrong_is_said_with_what_to_do(statestore: Statestore, bk: str, own_tree: Any) -> None:
    hadoop = Hadoop.of()
    hadoop.write(f"{bk}/d/x", b"1")
    for verb in ("ls", "stat", "cat", "du", "rm"):
        code, text = statestore(verb, f"{bk}/nothing")
        assert (code, "does not exist" in text) == (2, True)
    code, text = statestore("rm", f"{bk}/d")
    assert (code, "--recursive" in text) == (2, True)
    assert hadoop.status(f"{bk}/d/x") is not None
    name, options = own_tree
    code, text = statestore("ls", name, *(f"--option={key}={value}" for key, value in options.items()))
    assert (code, "fs.bk.root is another" in text) == (2, True)
    code, text = statestore("ls", bk, "--option", "fs.bk.rot=/x")
    assert (code, "Did you mean fs.bk.root?" in text) == (2, True)


def test_a_checkpoint_is_not_deleted_unasked(statestore: Statestore, bk: str) -> None:
    hadoop = Hadoop.of()
    for name in ("metadata", "offsets/0", "commits/0"):
        hadoop.write(f"{bk}/q/{name}", b"v1")
    for uri in (bk, f"{bk}/q"):
        code, text = statestore("rm", "-r", uri)
        assert (code, "a query's checkpoint" in text, "--yes" in text) == (2, True, True)
    assert hadoop.status(f"{bk}/q/commits/0") is not None
    assert statestore("rm", "-r", "--yes", f"{bk}/q")[0] == 0
    assert hadoop.status(f"{bk}/q") is None


def test_gc_frees_what_nothing_refers_to(statestore: Statestore, own_tree: Any) -> None:
    name, options = own_tree
    options = options | {"fs.bk.grace.ms": "0"}
    given = [f"--option={key}={value}" for key, value in options.items()]
    hadoop = Hadoop.of(options=options)
    hadoop.write(f"{name}kept", b"k" * 2_000_000)
    hadoop.write(f"{name}gone", b"g" * 2_000_000)
    ledgers = {path: file.ledger for path, file in tree.files(hadoop, BkAddress.parse(name, options)).items()}
    assert statestore("rm", f"{name}gone", *given)[0] == 0
    assert as_json(statestore("gc", name, "--json", *given)) == {
        "freed": [ledgers["/gone"]],
        "removed": [],
        "left_alone": {},
    }
    assert statestore("gc", name, *given) == (0, "Freed no ledgers.\n")
    assert len(hadoop.read(f"{name}kept")) == 2_000_000


def test_orphans_are_found(statestore: Statestore, own_tree: Any, tmp_path: Path) -> None:
    """A writer that died between making a ledger and registering it: here, its registration is taken away."""
    name, options = own_tree
    given = [f"--option={key}={value}" for key, value in (options | {"fs.bk.grace.ms": "0"}).items()]
    write = (
        "import json, sys, statestore.hadoop.file_systems as h\n"
        "h.Hadoop.of(options=json.loads(sys.argv[2])).write(sys.argv[1], b'x' * 5000)\n"
    )
    subprocess.run([sys.executable, "-c", write, f"{name}x", json.dumps(options)], check=True, timeout=120)
    assert statestore("orphans", name, *given)[0] == 0
    address, hadoop = BkAddress.parse(name, options), Hadoop.of(options=options)
    (record,) = tree.files(hadoop, address).values()
    registered = f"{address.root}/L/{record.ledger}"
    with raw_zookeeper(hadoop, address.servers) as zookeeper:
        for path in (f"{address.root}/n/x", f"{registered}/{record.write}", registered):
            zookeeper.delete(path, -1)
    path = hadoop.jvm.org.apache.bookkeeper.util.StringUtils.getHybridHierarchicalLedgerPath(record.ledger)
    open_to_all = hadoop.jvm.org.apache.zookeeper.data.Id("world", "anyone")
    with raw_zookeeper(hadoop, address.servers) as zookeeper:
        for rights, leads_to in ((16, 3), (31, 1)):  # of another user, and of all
            acl = hadoop.jvm.java.util.ArrayList()
            acl.add(hadoop.jvm.org.apache.zookeeper.data.ACL(rights, open_to_all))
            zookeeper.setACL(f"/ledgers{path}", acl, -1)
            code, text = statestore("orphans", name, *given)
            assert (code, f"The first is ledger {record.ledger} (" in text) == (leads_to, leads_to == 3), text
    code, text = statestore("orphans", name, "--json", *given)
    assert (code, json.loads(text)) == (1, {"orphans": [record.ledger], "readings": [], "left_alone": {}})
    assert as_json(statestore("gc", name, "--json", *given)) == {
        "freed": [record.ledger],
        "removed": [],
        "left_alone": {},
    }
    code, text = statestore("orphans", name, *given)
    assert (code, text) == (0, "No orphans: every ledger of this tree is registered.\n")
