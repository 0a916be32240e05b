"""The lag of a source in Spark's progress."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from eos.metrics.partition_lag import KEY, PartitionLag, partition_lags


def source(latest: str | None) -> Any:
    return SimpleNamespace(latestOffset=latest)


def test_a_lag_comes_back_from_the_progress_as_it_was_reported() -> None:
    lags = [
        PartitionLag(topic="a", entries=3),
        PartitionLag(topic="b", entries=4, whole=False, oldest_ms=1_700_000_000_000),
    ]
    reported = {"version": 1, "topics": {}, KEY: {one.topic: one.as_json() for one in reversed(lags)}}
    assert partition_lags(source(json.dumps(reported))) == lags


@pytest.mark.parametrize(
    "latest", [None, "None", "null", "17", '{"version": 1, "topics": {"a": "8:13"}}', '{"topic": {"0": 2}}']
)
def test_nothing_is_said_of_a_source_that_keeps_up_or_of_another_one(latest: str | None) -> None:
    assert partition_lags(source(latest)) == []
