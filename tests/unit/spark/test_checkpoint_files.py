"""When a note in the checkpoint counts as missing, whatever words a file system has for that."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from eos.spark.checkpoint_files import CheckpointFiles


def failure(error: str) -> Py4JJavaError:
    java: Any = SimpleNamespace(
        _target_id="o1", getClass=lambda: SimpleNamespace(getName=lambda: error), _gateway_client=None
    )
    return Py4JJavaError("An error occurred while calling open", java)


def files(error: str, exists: bool) -> CheckpointFiles:
    """Return files of which none can be opened."""

    def fail(path: str) -> None:
        raise failure(error)

    manager = SimpleNamespace(open=fail, exists=lambda path: exists)
    return CheckpointFiles(manager, "root", lambda root, name: f"{root}/{name}")


class Written:
    """A file that Spark writes, or deletes, between two looks at it: whether each `open` finds it, then each look."""

    def __init__(self, opened: list[bool], there: list[bool]) -> None:
        self._opened, self._there = opened, there
        self.files = CheckpointFiles(self, "root", lambda root, name: f"{root}/{name}")

    def open(self, path: str) -> Any:
        if path.endswith(".next") or not self._opened.pop(0):
            raise failure("java.io.FileNotFoundException")
        return SimpleNamespace(readAllBytes=lambda: b"v1", close=lambda: None)

    def exists(self, path: str) -> bool:
        return not path.endswith(".next") and self._there.pop(0)


def test_a_file_that_comes_between_two_looks_is_read() -> None:
    """Spark notes a batch while the sink waits for that: a look at that moment ended the waiting."""
    assert Written([False, True], [True]).files.read("commits/2") == "v1"


def test_a_file_that_goes_between_two_looks_is_missing() -> None:
    assert Written([False, False], [True, False]).files.read("eos-failed.json") is None


@pytest.mark.parametrize(
    "error", ["java.io.FileNotFoundException", "com.example.store.ObjectNotFoundException", "java.io.IOException"]
)
def test_a_file_that_is_not_there_is_missing_in_whichever_words(error: str) -> None:
    assert files(error, exists=False).read("eos-sink.json") is None


@pytest.mark.parametrize("error", ["java.io.IOException", "java.io.FileNotFoundException"])
def test_a_file_that_is_there_and_cannot_be_read_is_not_missing(error: str) -> None:
    """To take it for missing would make the sink forget what it noted."""
    with pytest.raises(Py4JJavaError):
        files(error, exists=True).read("eos-sink.json")
