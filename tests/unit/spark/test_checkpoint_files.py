"""When a note in the checkpoint counts as missing, whatever words a file system has for that."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from eos.spark.checkpoint_files import CheckpointFiles


def files(error: str, exists: bool) -> CheckpointFiles:
    """Return files of which none can be opened."""

    def fail(path: str) -> None:
        java: Any = SimpleNamespace(
            _target_id="o1", getClass=lambda: SimpleNamespace(getName=lambda: error), _gateway_client=None
        )
        raise Py4JJavaError("An error occurred while calling open", java)

    manager = SimpleNamespace(open=fail, exists=lambda path: exists)
    return CheckpointFiles(manager, "root", lambda root, name: f"{root}/{name}")


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
