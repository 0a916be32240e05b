"""`eos doctor` on a broker that is set up as no sink would have it: each thing that needs care is told."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from eos.pulsar.net.admin import Admin
from tests.integration.sparkless import Sink, eos
from tests.waiting import until

LIMIT = 10
SETTINGS = {
    "maxActiveTransactionsPerCoordinator": LIMIT,
    "numTransactionReplayThreadPoolSize": 4,
    "allowAutoTopicCreationType": "partitioned",
    "ttlDurationDefaultInSeconds": 3_600,
    "defaultRetentionTimeInMinutes": 0,
    "defaultRetentionSizeInMB": 0,
    "maxTopicsPerNamespace": 3,
}


def test_what_needs_care_is_told_and_the_rest_is_good(
    start_pulsar: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pulsar = start_pulsar(settings=SETTINGS)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)

    def put(name: str) -> str:
        path = f"persistent/public/default/{name}"
        httpx.put(f"{pulsar.admin_url}/admin/v2/{path}", timeout=30, follow_redirects=True).raise_for_status()
        return f"persistent://public/default/{name}"

    def verdicts() -> dict[str, str]:
        done = eos(pulsar, "doctor", "--json")
        found = {one["about"]: one["verdict"] for one in json.loads(done.stdout)["checks"]}
        assert done.exit_code == (1 if "take care" in found.values() else 0), done.output
        return found

    put("__eos-rows")
    sink = Sink(pulsar, put, "rows")
    sink.write(0)
    coordinator = sink.owner.coordinator()
    opened = [coordinator.new_transaction(600_000) for _ in range(8)]
    machine = {"Python and Spark", "pyarrow", "pulsar-client", "CRC32C", "Python of workers"}
    well = machine | {"Pulsar", "subscription types of public/default", "clocks", "number of topics", "owner of rows"}
    amiss = {"recovery of topics", "coordinators", "creation of topics", "log of rows", "rows of rows"}
    assert verdicts() == dict.fromkeys(well, "good") | dict.fromkeys(amiss, "take care")
    told = eos(pulsar, "doctor").output
    assert f"Coordinator {coordinator.index} has 8 transactions open" in told
    assert "15 things looked at: 10 good, 5 to take care of" in told
    assert eos(pulsar, "doctor", "--readers").exit_code == 0
    before = eos(pulsar, "doctor", "--preflight", "--sink", "new", "--json", "rows", "nowhere")
    found = {one["about"]: one["verdict"] for one in json.loads(before.stdout)["checks"]}
    rows = "persistent://public/default/rows"
    assert found["log of new"] == "can't be known"
    assert (found[f"topic {rows}"], found[f"right to write to {rows}"]) == ("good", "good")
    assert found["topic persistent://public/default/nowhere"] == "take care"
    assert before.exit_code == 1

    put("one-more")
    assert verdicts()["number of topics"] == "take care"
    assert "public/default has 3 of at most 3 topics" in eos(pulsar, "doctor").output

    sink.client.subscription(sink.topic, "lags", initial="earliest").close()
    with Admin(pulsar.admin_url) as admin:
        used = admin.backlog(sink.topic).bytes
    assert used > 0

    def limit(kind: str, **to: int) -> str:
        """Set a backlog quota, and return what is said of it once it is in force."""
        at = f"{pulsar.admin_url}/admin/v2/{sink.topic.replace('://', '/')}/backlogQuota?backlogQuotaType={kind}"
        quota = {"policy": "producer_request_hold", **to}
        httpx.post(at, json=quota, timeout=30, follow_redirects=True).raise_for_status()

        def said() -> list[str]:
            checks = json.loads(eos(pulsar, "doctor", "--json").stdout)["checks"]
            mine = (one for one in checks if one["about"] == "backlog quota of rows")
            return [
                f"{one['verdict']}: {one['said']}" for one in mine if f"quota of {sink.topic} ({kind}" in one["said"]
            ]

        return until(said)[0]

    assert limit("destination_storage", limitSize=100 * used).startswith("good: 1% is used of the backlog quota of")
    near = until(lambda: (told := limit("destination_storage", limitSize=used + 1)).startswith("take care") and told)
    assert "refuses every producer" in str(near)
    assert limit("message_age", limitTime=10**6).startswith("can't be known: "), "the broker looks once a minute"

    for txn in opened:
        coordinator.end(txn, commit=False)
    until(lambda: verdicts()["coordinators"] == "good", "the coordinator still counts what has ended")

    class Late:
        """A clock that is slower than the broker's."""

        def time(self) -> float:
            return time.time() - 60

    monkeypatch.setattr("eos.pulsar.net.admin.time", Late())
    assert verdicts()["clocks"] == "take care"
    with Admin(pulsar.admin_url) as admin:
        assert admin.clock_ahead_s() == pytest.approx(60, abs=20)
    sink.client.close()
