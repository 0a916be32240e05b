"""`verify` on three bookies: one has a flipped byte, another is down. Each is named, and all is still read."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

import statestore
from eos.local import LocalCluster
from statestore.hadoop.file_systems import Hadoop
from tests.soak.checks import tree
from tests.soak.kills import launch

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]


def test_a_flipped_byte_and_a_dead_bookie_are_named(cluster: LocalCluster, tmp_path: Path) -> None:
    root, options = tree(cluster.zookeeper, f"r{uuid.uuid4().hex[:10]}")
    arguments = {"root": root, "out": str(tmp_path / "out"), "pairs": [("hdfs", "deduplication")], "batches": 3}
    driver = launch("run", {**arguments, "options": options}, tmp_path / "driver.log")
    assert driver.answer()["failures"] == []
    checkpoint = f"{root}hdfs-deduplication"
    assert statestore.verify(checkpoint, options=options, operators=1).findings == ()

    metadata = Hadoop.of(options=options).read(f"{checkpoint}/metadata")
    cluster["bookie-0"].kill()
    assert flip(cluster["bookie-0"].home, json.loads(metadata)["id"].encode()) >= 1
    cluster.restart("bookie-0")
    report = statestore.verify(checkpoint, options=options, operators=1)
    (finding,) = report.findings
    assert not report.ok
    assert (finding.kind, finding.file) == ("replica", "metadata")
    assert finding.bookie == cluster["bookie-0"].address
    assert finding.ledger is not None
    assert finding.entry is not None
    assert "digest" in finding.message
    # Another bookie's copy is read in its place.
    assert Hadoop.of(options=options).read(f"{checkpoint}/metadata") == metadata

    cluster["bookie-1"].kill()
    found = statestore.verify(checkpoint, options=options, operators=1).findings
    silent = [finding for finding in found if finding.bookie == cluster["bookie-1"].address]
    assert silent
    assert {finding.severity for finding in silent} == {"warning"}
    assert [finding.bookie for finding in found if finding.severity == "error"] == [cluster["bookie-0"].address]
    cluster.restart("bookie-1")


def flip(folder: Path, words: bytes) -> int:
    """Flip a bit of these words in each file below a folder that has them; return in how many places."""
    places = 0
    for file in folder.rglob("*"):
        data = file.read_bytes() if file.is_file() else b""
        while words in data:
            at = data.index(words)
            data = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
            file.write_bytes(data)
            places += 1
    return places
