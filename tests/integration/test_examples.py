"""The examples run as they stand, on a real Pulsar, and their results are right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from examples.accounting import read_all

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
COLUMNS = (
    "flight_id,year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,"
    "tailnum,origin,dest,air_time,distance,hour,minute,time_hour"
)


@pytest.fixture
def flights(tmp_path: Path) -> Path:
    """Three files of a few flights each, one of them cancelled."""
    folder = tmp_path / "flights"
    folder.mkdir()
    for number, delays in enumerate([(2, 4), (None, 30), (-5, 0)]):
        lines = [COLUMNS]
        for place, delay in enumerate(delays):
            late = "" if delay is None else str(float(delay))
            flight = number * 2 + place
            lines.append(
                f"{flight},2013,1,1,517.0,515,{late},830.0,819,{late},UA,1545,N14228,{'EWR' if place else 'JFK'},IAH,"
                "227.0,1400.0,5,15,2013-01-01 05:00:00"
            )
        path = folder / f"{number}.csv"
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return folder


def run(script: str, *arguments: str) -> None:
    subprocess.run(
        [sys.executable, str(EXAMPLES / script), *arguments],
        check=True,
        timeout=200,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "TZ": "UTC"},
    )


def test_flights_writes_each_flight_once(pulsar: Any, make_topic: Any, flights: Path, tmp_path: Path) -> None:
    topic = make_topic("flights", partitions=2)
    run("flights.py", pulsar.service_url, topic, str(flights), str(tmp_path / "checkpoint"))
    found = list(read_all(pulsar.service_url, topic))
    values = sorted((json.loads(message.data()) for message in found), key=lambda value: value["flight_id"])
    assert [value["flight_id"] for value in values] == [0, 1, 2, 3, 4, 5]
    assert [value["status"] for value in values] == ["on time", "on time", "cancelled", "late", "on time", "on time"]
    assert {message.partition_key() for message in found} == {"JFK-IAH", "EWR-IAH"}
    assert {message.properties()["carrier"] for message in found} == {"UA"}
    assert {pd.Timestamp(message.event_timestamp(), unit="ms").hour for message in found} == {5}


def test_delays_ends_with_the_numbers_of_a_plain_recomputation(
    pulsar: Any, make_topic: Any, flights: Path, tmp_path: Path
) -> None:
    topic = make_topic("delays", partitions=2)
    run("delays.py", pulsar.service_url, topic, str(flights), str(tmp_path / "checkpoint"))
    newest = {message.partition_key(): json.loads(message.data()) for message in read_all(pulsar.service_url, topic)}
    rows = pd.concat(pd.read_csv(path) for path in flights.glob("*.csv"))
    for origin, group in rows.groupby("origin"):
        assert newest[str(origin)] == {
            "flights": len(group),
            "departed": int(group.dep_delay.count()),
            "delay_minutes": int(group.dep_delay.sum()),
        }
