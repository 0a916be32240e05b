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


@pytest.mark.parametrize("master", ["local[2]", "local-cluster[2,1,1024]"])
def test_state_survives_on_bookkeeper(master: str, bk: str, run_job: Any, tmp_path: Path) -> None:
    files = tmp_path / "files"
    write(files, "1.txt", "a b a")
    write(files, "2.txt", "a c")
    first = run_job("count", master=master, checkpoint=f"{bk}/q", files=str(files))
    assert first["counts"] == {"a": 3, "b": 1, "c": 1}
    write(files, "3.txt", "b c c")
    second = run_job("count", master=master, checkpoint=f"{bk}/q", files=str(files))
    assert second["counts"] == {"a": 3, "b": 2, "c": 3}
    assert second["batch"] > first["batch"]


def test_the_jar_leaves_the_logging_to_spark() -> None:
    with zipfile.ZipFile(jar_path()) as jar:
        names = [name.rpartition("/")[2] for name in jar.namelist()]
    assert not [name for name in names if name.startswith(("log4j", "logback")) and not name.endswith(".class")]
