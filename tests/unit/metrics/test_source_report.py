"""The report of a source in Spark's progress."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from eos.metrics.source_report import PartitionLag, PlannedEntries, SourceReport, report_of

NEWEST = {"version": 1, "topics": {"a": "8:13"}}


def source(latest: str | None) -> Any:
    return SimpleNamespace(latestOffset=latest)


@pytest.mark.parametrize(
    "report",
    [
        SourceReport(),
        SourceReport(
            lags=(
                PartitionLag(topic="a", entries=3),
                PartitionLag(topic="b", entries=4, whole=False, oldest_ms=1_700_000_000_000),
            ),
            planned=(
                PlannedEntries(reader="brokers", entries=5, whole=False),
                PlannedEntries(reader="offloaded", entries=900),
            ),
            losses=2,
        ),
        SourceReport(planned=(PlannedEntries(reader="brokers", entries=5),), lags_known=False),
    ],
)
def test_a_report_comes_back_from_the_progress_as_it_was_made(report: SourceReport) -> None:
    assert report_of(source(json.dumps(report.within(NEWEST)))) == report


def test_a_source_with_nothing_to_say_reports_the_newest_offset_alone() -> None:
    assert SourceReport().within(NEWEST) == NEWEST


@pytest.mark.parametrize(
    "latest",
    [None, "None", "null", "17", "[1]", '{"topic": {"0": 2}}', '{"lag": 5}', '{"version": 1, "topics": 3, "lag": 5}'],
)
def test_another_source_has_no_report(latest: str | None) -> None:
    assert report_of(source(latest)) is None
