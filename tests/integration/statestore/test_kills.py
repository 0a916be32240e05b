"""A small sample of `make soak`: a driver with two stateful queries on bk:// is killed; nothing is lost or doubled."""

from __future__ import annotations

import uuid
from pathlib import Path

from tests.soak.checks import check_checkpoints, check_ledgers, check_results, tree
from tests.soak.kills import run_killed

PAIRS = [("hdfs", "deduplication"), ("changelog2", "aggregation")]
BATCHES = 7


def test_a_killed_driver_loses_and_doubles_nothing(zookeeper: str, tmp_path: Path) -> None:
    root, options = tree(zookeeper, f"k{uuid.uuid4().hex[:10]}")
    out = tmp_path / "out"
    arguments = {"root": root, "out": str(out), "pairs": PAIRS, "batches": BATCHES, "options": options}
    assert len(run_killed(arguments, tmp_path / "driver.log", kills=1, seed=7)) == 1
    check_results(out, PAIRS, BATCHES)
    check_checkpoints(root, options, PAIRS)
    freed, left = check_ledgers(root, options)
    assert left >= 1, freed
    check_checkpoints(root, options, PAIRS)
