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
    well = {"Python and Spark", "CRC32C", "Python of workers", "Pulsar", "clocks", "owner of rows"}
    amiss = {"recovery of topics", "coordinators", "creation of topics", "log of rows", "rows of rows"}
    assert verdicts() == dict.fromkeys(well, "good") | dict.fromkeys(amiss, "take care")
    told = eos(pulsar, "doctor").output
    assert f"Coordinator {coordinator.index} has 8 transactions open" in told
    assert "11 things looked at: 6 good, 5 to take care of" in told
    assert eos(pulsar, "doctor", "--readers").exit_code == 0

    for txn in opened:
        coordinator.end(txn, commit=False)
    until(lambda: verdicts()["coordinators"] == "good", "the coordinator still counts what has ended")

    class Late:
        """A clock that is behind the broker's."""

        def time(self) -> float:
            return time.time() - 60

    monkeypatch.setattr("eos.pulsar.net.admin.time", Late())
    assert verdicts()["clocks"] == "take care"
    with Admin(pulsar.admin_url) as admin:
        assert admin.clock_ahead_s() == pytest.approx(60, abs=2)
    sink.client.close()
