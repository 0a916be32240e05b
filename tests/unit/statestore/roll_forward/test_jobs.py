"""A user's job is found by its name, and what is wrong with the name or the job is said."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from statestore.errors import InvalidInput
from statestore.roll_forward.jobs import load_job

MODULE = """
def start(spark, checkpoint, trigger):
    return (spark, checkpoint, trigger)

def too_few(spark):
    return spark

number = 7
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "staged_job.py").write_text(MODULE)
    (tmp_path / "broken_job.py").write_text("import no_such_module")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    yield
    sys.modules.pop("staged_job", None)


def test_a_job_in_the_working_directory_is_found() -> None:
    start = cast(Callable[..., object], load_job("staged_job:start"))
    assert start("spark", "bk://z:1/q", {"once": True}) == ("spark", "bk://z:1/q", {"once": True})


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("staged_job", "names no job: expected package.module:function"),
        (":start", "names no job"),
        ("no_such_job:start", "can't be imported: ModuleNotFoundError"),
        ("broken_job:start", "can't be imported: ModuleNotFoundError: No module named 'no_such_module'"),
        ("staged_job:stop", "can't be imported: AttributeError"),
        ("staged_job:too_few", "is not a job. It must be a function that takes a Spark session"),
        ("staged_job:number", "is not a job"),
    ],
)
def test_what_is_no_job_is_refused(where: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        load_job(where)
