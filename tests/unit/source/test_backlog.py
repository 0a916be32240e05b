"""Which partitions a batch left messages in is told by the two offsets of Spark's progress."""

from __future__ import annotations

import json

import pytest
from pyspark.sql.streaming.listener import SourceProgress

from eos.errors import InvalidInput
from eos.source.backlog import partitions_behind


def progress(end: object, latest: object) -> SourceProgress:
    return SourceProgress.fromJson(
        {
            "description": "pulsar",
            "startOffset": "null",
            "endOffset": end,
            "latestOffset": latest,
            "numInputRows": 3,
            "inputRowsPerSecond": 1.0,
            "processedRowsPerSecond": 1.0,
            "metrics": {},
        }
    )


def offset(**topics: str) -> str:
    return json.dumps({"version": 1, "topics": topics})


@pytest.mark.parametrize(
    ("end", "behind"),
    [("8:13", False), ("8:12", True), ("7:99", True), ("pinned 8:12", True), ("pinned 8:14", False)],
)
def test_a_partition_is_behind_where_a_newer_message_is_stored(end: str, behind: bool) -> None:
    found = partitions_behind(progress(offset(a=end, b="4:1"), offset(a="8:13", b="4:1")))
    assert found == (["a"] if behind else [])


def test_a_partition_that_the_batch_does_not_know_yet_is_behind() -> None:
    assert partitions_behind(progress(offset(a="8:13"), offset(a="8:13", b="9:0"))) == ["b"]
    assert partitions_behind(progress(offset(a="beginning"), offset(a="0:0"))) == ["a"]


@pytest.mark.parametrize("latest", [None, "None"])
def test_without_a_newest_offset_nothing_is_behind(latest: str | None) -> None:
    assert partitions_behind(progress(offset(a="8:13"), latest)) == []


def test_the_progress_of_another_source_is_refused() -> None:
    with pytest.raises(InvalidInput):
        partitions_behind(progress("{}", "{}"))
