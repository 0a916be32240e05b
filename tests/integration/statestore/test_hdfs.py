"""`statestore cp` between bk:// and HDFS, both ways: the query goes on from each copy as if nothing had happened."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hdfs import SingleNodeHdfs

WORDS = ("state", "moves", "from", "here", "to", "there", "and", "back")


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with SingleNodeHdfs(tmp_path_factory.mktemp("hdfs")) as started:
        yield started.uri


def statestore(*arguments: str) -> Any:
    """Run the command in a process of its own, and return what it answers."""
    line = [sys.executable, "-m", "statestore.cli.app", *arguments, "--json"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr or done.stdout
    return json.loads(done.stdout)


@pytest.mark.soak
@pytest.mark.parametrize("provider", ["hdfs", "rocksdb"])
def test_a_checkpoint_moves_to_hdfs_and_back_and_its_query_goes_on(
    provider: str, hdfs: str, bk: str, run_job: Any, tmp_path: Path
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    seen: Counter[str] = Counter()

    def feed_and_run(checkpoint: str) -> int:
        """Give the query three files that it has not seen; return the last batch."""
        for _ in range(3):
            number = len(list(files.iterdir()))
            words = [WORDS[(number * 3 + place) % len(WORDS)] for place in range(number % 4 + 2)]
            seen.update(words)
            (files / f"{number:04d}.txt").write_text("\n".join(words) + "\n")
        answer = run_job("count", checkpoint=checkpoint, files=str(files), provider=provider)
        assert answer["counts"] == seen
        return int(answer["batch"])

    places = [f"{bk}/q", f"{hdfs}/{provider}/q", f"{bk}/returned"]
    last = feed_and_run(places[0])
    for source, target in itertools.pairwise(places):
        copied = statestore("cp", source, target)
        assert copied["batch"] == last
        assert statestore("verify", target, "--operators", "1")["findings"] == []
        last = feed_and_run(target)
        assert last == copied["batch"] + 3
        assert statestore("verify", target, "--operators", "1")["findings"] == []
