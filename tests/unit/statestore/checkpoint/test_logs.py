"""Logs of each version; whether a folder is a checkpoint, and what is said of one that is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from statestore.checkpoint import LocalFiles
from statestore.checkpoint.logs import (
    check_checkpoint,
    is_checkpoint,
    read_commit,
    read_offsets,
    with_sinks_of,
    without_sinks,
)
from statestore.errors import Damaged, NotFound


def test_which_folders_are_checkpoints() -> None:
    assert is_checkpoint({"metadata", "offsets"})
    assert is_checkpoint({"commits"})
    assert not is_checkpoint({"metadata", "data"})


@pytest.mark.parametrize(
    ("folders", "says"),
    [
        ([], "There is no checkpoint at /q. There is nothing, or an empty folder"),
        (["part-0"], "neither offsets nor commits is there, but part-0. Name the folder that the query has"),
        (["a", "query/commits"], "but a, query. /q/query is one"),
        (list("abcdef"), "but a, b, c, d, e, …. Name"),
    ],
)
def test_what_is_there_instead_is_named(folders: list[str], says: str, tmp_path: Path) -> None:
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
    with pytest.raises(NotFound) as refused:
        check_checkpoint(LocalFiles(tmp_path), "/q")
    assert says in str(refused.value)


SINKS = {"sinkMetadataMap": {"0": {"isActive": True}}}


@pytest.mark.parametrize(
    ("text", "form", "uids"),
    [
        ('v1\n{"nextBatchWatermarkMs":5}', 1, {}),
        ('v2\n{"nextBatchWatermarkMs":5}', 2, {}),
        ('v2\n{"nextBatchWatermarkMs":5,"stateUniqueIds":{"0":[["a"],["b"]]}}', 2, {0: (("a",), ("b",))}),
        ("v3\n" + json.dumps({"nextBatchWatermarkMs": 5, **SINKS}), 1, {}),
        ("v3\n" + json.dumps({"nextBatchWatermarkMs": 5, "stateUniqueIds": None, **SINKS}), 1, {}),
        (
            "v3\n" + json.dumps({"nextBatchWatermarkMs": 5, "stateUniqueIds": {"0": [["a"]]}, **SINKS}),
            2,
            {0: (("a",),)},
        ),
    ],
)
def test_commits_of_each_version(text: str, form: int, uids: object, tmp_path: Path) -> None:
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").write_text(text)
    found = read_commit(LocalFiles(tmp_path), 0)
    assert (found.next_watermark_ms, found.format, found.uids) == (5, form, uids)


@pytest.mark.parametrize("sinks", [{}, {"0": {"isActive": False}}, {"0": {"isActive": True}, "1": {"isActive": True}}])
def test_a_commit_without_one_active_sink_is_refused_as_by_spark(sinks: object, tmp_path: Path) -> None:
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").write_text("v3\n" + json.dumps({"nextBatchWatermarkMs": 5, "sinkMetadataMap": sinks}))
    with pytest.raises(Damaged, match="active sinks"):
        read_commit(LocalFiles(tmp_path), 0)


@pytest.mark.parametrize(("form", "uids"), [(1, {}), (2, {"stateUniqueIds": {"0": [["a"]]}})])
def test_the_sinks_are_taken_out_of_a_commit_and_put_into_another(form: int, uids: dict[str, object]) -> None:
    before = "v3\n" + json.dumps({"nextBatchWatermarkMs": 5, **uids, **SINKS})
    version, said = without_sinks(before.encode(), form).split(b"\n")
    assert (version, json.loads(said)) == (f"v{form}".encode(), {"nextBatchWatermarkMs": 5, **uids})
    version, said = with_sinks_of(before.encode(), b'v2\n{"stateUniqueIds":{"0":[["b"]]}}').split(b"\n")
    assert (version, json.loads(said)) == (b"v3", {"stateUniqueIds": {"0": [["b"]]}, **SINKS})


def test_offsets_of_sources_with_names(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    file = tmp_path / "offsets" / "0"
    metadata = json.dumps(
        {"batchWatermarkMs": 0, "batchTimestampMs": 1, "conf": {}, "sourceMetadataInfo": {"a": {}, "b": {}}}
    )
    file.write_text(f'v2\n{metadata}\na:{{"x":1}}\nb:-')
    found = read_offsets(LocalFiles(tmp_path), 0)
    assert (found.sources, found.folders) == (('{"x":1}', None), ("sources/a", "sources/b"))
    file.write_text(f'v2\n{metadata}\na:{{"x":1}}')
    with pytest.raises(Damaged, match="'b'"):
        read_offsets(LocalFiles(tmp_path), 0)
    file.write_text(f'v2\n{metadata}\na:{{"x":1}}\nb')
    with pytest.raises(Damaged, match="NAME:offset"):
        read_offsets(LocalFiles(tmp_path), 0)
