"""A stateful query with its checkpoint on bk://, in local mode and on executors of their own: it goes on."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from statestore import jar_path

pytestmark = pytest.mark.slow


def write(folder: Path, name: str, words: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("\n".join(words.split()) + "\n")


@pytest.mark.timeout(1_200)
def test_state_survives_on_bookkeeper(bk: str, run_job: Any, tmp_path: Path) -> None:
    """Each run goes on with the state of the one before: executors with the driver's, and a driver with theirs."""
    files = tmp_path / "files"
    batch = -1
    for master, new, counts in (
        ("local[2]", ("a b a", "a c"), {"a": 3, "b": 1, "c": 1}),
        ("local-cluster[2,1,1024]", ("b c c", "a d"), {"a": 4, "b": 2, "c": 3, "d": 1}),
        ("local[2]", ("d d",), {"a": 4, "b": 2, "c": 3, "d": 3}),
    ):
        for number, words in enumerate(new):
            write(files, f"{batch + 1}-{number}.txt", words)
        answer = run_job("count", master=master, checkpoint=f"{bk}/q", files=str(files))
        assert answer["counts"] == counts, master
        assert answer["batch"] == batch + len(new), "it went on, and did not begin anew"
        batch = answer["batch"]


def test_the_jar_leaves_the_logging_to_spark() -> None:
    with zipfile.ZipFile(jar_path()) as jar:
        names = [name.rpartition("/")[2] for name in jar.namelist()]
    assert not [name for name in names if name.startswith(("log4j", "logback")) and not name.endswith(".class")]
