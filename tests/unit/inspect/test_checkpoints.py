"""A query's checkpoint, read without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from eos.commit.registration import REGISTRATION, UNLOGGED, Registration, Unlogged
from eos.errors import InvalidInput
from eos.inspect.adoption import adoption
from eos.inspect.checkpoints import Checkpoint, read_checkpoint
from eos.pulsar.net.client import Client


def checkpoint(folder: Path, begun: int, committed: int, begun_ms: int | None = 1_000) -> Path:
    """Write a checkpoint as Spark does; -1: no batch."""
    for log, newest in (("offsets", begun), ("commits", committed)):
        (folder / log).mkdir(parents=True)
        for batch in range(newest + 1):
            planned = {} if begun_ms is None else {"batchTimestampMs": begun_ms}
            (folder / log / str(batch)).write_text(f'v1\n{json.dumps(planned)}\n{{"logOffset":0}}')
            (folder / log / f".{batch}.crc").write_text("")
    (folder / "metadata").write_text('{"id":"query"}')
    return folder


@pytest.mark.parametrize(
    ("begun", "committed", "expected"),
    [(-1, -1, (None, None)), (0, -1, (0, None)), (3, 3, (3, 3)), (11, 10, (11, 10))],
)
def test_how_far_a_query_is(tmp_path: Path, begun: int, committed: int, expected: tuple[int | None, ...]) -> None:
    folder = checkpoint(tmp_path / "c", begun, committed)
    found = read_checkpoint(str(folder))
    assert (found.begun, found.committed) == expected
    assert found == read_checkpoint(folder.as_uri())
    assert (found.query_id, found.begun_ms, found.registered) == ("query", None if begun < 0 else 1_000, None)


def test_what_an_old_spark_does_not_write_is_not_known(tmp_path: Path) -> None:
    assert read_checkpoint(str(checkpoint(tmp_path / "c", 1, 0, None))).begun_ms is None


def test_the_sink_that_a_checkpoint_has_is_found(tmp_path: Path) -> None:
    folder, mine = checkpoint(tmp_path / "c", 0, 0), Registration("flights", "persistent://public/default/__eos-f", 7)
    (folder / REGISTRATION).write_text(mine.text)
    assert read_checkpoint(str(folder)) == Checkpoint("query", 0, 0, 1_000, mine)


def test_a_batch_in_doubt_of_a_weaker_guarantee_cant_be_adopted(tmp_path: Path) -> None:
    """The first start would refuse it by the same words; what Spark has noted the end of is in no doubt."""
    folder = checkpoint(tmp_path / "c", 3, 2)
    (folder / UNLOGGED).write_text(Unlogged(3).text)
    words = r'batch 3 was begun with guarantee="at-least-once".*Then start it with "exactly-o'
    with pytest.raises(InvalidInput, match=words):
        adoption(cast(Client, None), None, read_checkpoint(str(folder)), "persistent://public/default/flights", "f")
    ended = checkpoint(tmp_path / "ended", 3, 3)
    (ended / UNLOGGED).write_text(Unlogged(3).text)
    with pytest.raises(AttributeError, match="coordinators"):  # the cluster is asked next, and there is none
        adoption(cast(Client, None), None, read_checkpoint(str(ended)), "persistent://public/default/flights", "f")


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"has no file metadata. Give what the query has as its option"):
        read_checkpoint(str(tmp_path))
    with pytest.raises(InvalidInput, match="not a checkpoint of a query"):
        read_checkpoint(str(tmp_path / "none"))
    with pytest.raises(InvalidInput, match=r"can't read the checkpoint bk://localhost/c: .*copy the file metadata"):
        read_checkpoint("bk://localhost/c")
    folder = checkpoint(tmp_path / "c", 0, 0)
    (folder / "offsets/0").write_text("v1")
    with pytest.raises(InvalidInput, match=r"can't be read: IndexError.*Restore it from a backup"):
        read_checkpoint(str(folder))
