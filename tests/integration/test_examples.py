"""The examples run as they stand, on a real Pulsar, and their results are right."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from statestore.drills.judge.oracle import messages_of
from tests.planner import again_while_late
from tests.spark_session import quick_start

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

FLIGHTS = 180  # some ninety entries, hence five micro-batches
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
COLUMNS = (
    "flight_id,year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,"
    "tailnum,origin,dest,air_time,distance,hour,minute,time_hour"
)


def write_file(folder: Path, number: int, day: int, delays: tuple[int | None, ...]) -> None:
    """A file of flights from JFK and EWR in turn, each as late as `delays` says; None: cancelled."""
    folder.mkdir(exist_ok=True)
    lines = [COLUMNS]
    for place, delay in enumerate(delays):
        late = "" if delay is None else str(float(delay))
        flight = number * 2 + place
        lines.append(
            f"{flight},2013,1,{day},517.0,515,{late},830.0,819,{late},UA,1545,N14228,{'EWR' if place % 2 else 'JFK'},"
            f"IAH,227.0,1400.0,5,15,2013-01-{day:02d} 05:00:00"
        )
    path = folder / f"{number}.csv"
    path.write_text("\n".join(lines) + "\n")
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


@pytest.fixture
def flights(tmp_path: Path) -> Path:
    """Three files of a few flights each, one of them cancelled."""
    for number, delays in enumerate([(2, 4), (None, 30), (-5, 0)]):
        write_file(tmp_path / "flights", number, 1, delays)
    return tmp_path / "flights"


def run(script: str, *arguments: str) -> None:
    subprocess.run(
        [sys.executable, str(EXAMPLES / script), *arguments],
        check=True,
        timeout=900,
        env={**os.environ, **quick_start(with_bk=any("bk://" in word for word in arguments)), "TZ": "UTC"},
    )


def test_flights_writes_each_flight_once(pulsar: Any, make_topic: Any, flights: Path, tmp_path: Path) -> None:
    topic = make_topic("flights", partitions=2)
    run("flights.py", pulsar.service_url, topic, str(flights), str(tmp_path / "checkpoint"))
    found = list(messages_of(pulsar.service_url, topic))
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
    newest = {message.partition_key(): json.loads(message.data()) for message in messages_of(pulsar.service_url, topic)}
    rows = pd.concat(pd.read_csv(path) for path in flights.glob("*.csv"))
    for origin, group in rows.groupby("origin"):
        assert newest[str(origin)] == {
            "flights": len(group),
            "departed": int(group.dep_delay.count()),
            "delay_minutes": int(group.dep_delay.sum()),
        }


def test_the_pipeline_counts_each_flight_once_from_topic_to_topic_when_it_is_killed(
    pulsar: Any, make_topic: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    demo = importlib.import_module("demo")
    flights = pd.DataFrame(
        {
            "flight_id": range(FLIGHTS),
            "tailnum": [None if number % 50 == 0 else f"N{number % 7}" for number in range(FLIGHTS)],
            "origin": "JFK",
            "dest": [f"D{number % 5}" for number in range(FLIGHTS)],
            "dep_delay": [
                None if number % 9 == 0 or number % 50 == 0 else float(number % 13) for number in range(FLIGHTS)
            ],
        }
    )
    topics = make_topic("flights", partitions=2), make_topic("aircraft", partitions=2)
    monkeypatch.setattr(demo, "MESSAGES_PER_ENTRY", 2)
    entries = demo.feed(pulsar.service_url, topics[0], flights)
    assert entries > 2 * demo.ENTRIES_PER_BATCH
    checkpoint = f"bk://{pulsar.zookeeper}/{topics[1].rpartition('/')[2]}"
    for name, value in quick_start(with_bk=True).items():
        monkeypatch.setenv(name, value)
    job = (pulsar.service_url, *topics, checkpoint)
    # At once: on a fast machine the job might have ended before a later moment.
    assert again_while_late(lambda: demo.run_and_kill(job, tmp_path / "log", 5, kills=1, seed=7, within_s=0)) == 1
    expected = demo.recompute(flights)
    found = [(one.partition_key(), one.data()) for one in messages_of(pulsar.service_url, topics[1])]
    account = demo.compare(expected, found)
    assert (account.flights, account.counted, account.aircraft, account.exact) == (FLIGHTS, FLIGHTS, 8, True)
    assert "delay_minutes" not in expected["unknown"]
    again = demo.compare(expected, [*found, found[-1]])
    assert (again.repeated, again.wrong, again.exact) == (1, 0, False)
    assert demo.compare(expected, found[:-1]).wrong == 1
    assert demo.compare(expected, [*found, ("N8", b'{"flights": 1}')]).wrong == 1


@pytest.mark.soak
def test_delays_by_day_go_on_from_bookkeeper_on_a_wiped_machine(pulsar: Any, make_topic: Any, tmp_path: Path) -> None:
    topic = make_topic("days", partitions=2)
    folder = tmp_path / "flights"
    checkpoint = f"bk://{pulsar.zookeeper}/{topic.rpartition('/')[2]}"
    files = [(1, (2, 4)), (2, (None, 30)), (2, (-5, 0, 7)), (4, (1, 60)), (6, (3, 3))]
    for number, (day, delays) in enumerate(files):
        write_file(folder, number, day, delays)
        if number in (1, len(files) - 1):
            local = tmp_path / f"local-{number}"
            local.mkdir()
            run("delays.py", pulsar.service_url, topic, str(folder), checkpoint, "--by-day", "--local-dir", str(local))
            shutil.rmtree(local, ignore_errors=True)  # Spark's JVM may just be removing the same
            assert not local.exists()
    days = [(message.partition_key(), json.loads(message.data())) for message in messages_of(pulsar.service_url, topic)]
    rows = pd.concat(pd.read_csv(path) for path in folder.glob("*.csv"))
    # The flights of the sixth say that the fourth is over; whether theirs is, no later flight has said yet.
    over = rows[rows.day < 6].groupby(["origin", "day"])
    expected = [
        (
            origin,
            {
                "day": f"2013-01-{day:02d}",
                "flights": len(group),
                "departed": int(group.dep_delay.count()),
                "delay_minutes": int(group.dep_delay.sum()),
            },
        )
        for (origin, day), group in over
    ]
    assert sorted(days, key=str) == sorted(expected, key=str)
