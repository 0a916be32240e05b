"""Every state store provider, every kind of stateful query, drivers killed again and again: nothing lost or doubled.

`make soak` runs it, on three bookies; it takes some half an hour.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from tests.soak.checks import Pairs, check_checkpoints, check_ledgers, check_results, check_states, tree
from tests.soak.kills import launch, run_killed
from tests.soak.queries import PAIRS

pytestmark = [pytest.mark.soak, pytest.mark.timeout(2_400)]


def soak(zookeeper: str, folder: Path, pairs: Pairs, batches: int, kills: int) -> str:
    """Run the queries on bk:// with kills and on local disk without, compare; return what happened, in a line."""
    root, options = tree(zookeeper, f"s{uuid.uuid4().hex[:10]}")
    killed = {"root": root, "out": str(folder / "killed"), "pairs": pairs, "batches": batches, "options": options}
    at = run_killed(killed, folder / "killed.log", kills, seed=batches)
    assert len(at) == kills
    check_results(folder / "killed", pairs, batches)
    local = {"root": f"file://{folder}/local", "out": str(folder / "out"), "pairs": pairs, "batches": batches}
    assert launch("run", local, folder / "local.log").answer()["failures"] == []
    check_results(folder / "out", pairs, batches)
    states, others = [
        launch(
            "read", {"root": place, "pairs": pairs, "batch": batches - 1, "options": chosen}, folder / "read.log"
        ).answer()
        for place, chosen in ((root, options), (local["root"], {}))
    ]
    check_states(states, others, pairs)
    files = check_checkpoints(root, options, pairs)
    freed, left = check_ledgers(root, options)
    check_checkpoints(root, options, pairs)
    return (
        f"{len(pairs)} queries, {batches} batches each, {kills} kills (after batches {at}): results and states are "
        f"equal; {files} files verified; {freed} ledgers freed, {left} left, none orphaned"
    )


def test_each_provider_with_each_query(zookeeper: str, tmp_path: Path) -> None:
    print(soak(zookeeper, tmp_path, PAIRS, batches=30, kills=3))


def test_two_hundred_batches_and_forty_kills(zookeeper: str, tmp_path: Path) -> None:
    print(soak(zookeeper, tmp_path, [("changelog2", "aggregation")], batches=200, kills=40))
