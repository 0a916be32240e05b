"""A client of Spark Connect uses each verb of `format("pulsar")`, and is told in words what it can't have."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from eos.local import LocalPulsar
from tests.child_process import ChildProcess, python
from tests.conftest import create_topic
from tests.matrix.catalog import connect_server
from tests.reading import values_of

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1_200)]


def test_each_verb_of_spark_connect(
    start_pulsar: Callable[..., LocalPulsar], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("google.rpc", reason="it needs the client of Spark Connect: the group `connect`")
    broker = start_pulsar()
    given = {
        "service_url": broker.service_url,
        "admin_url": broker.admin_url,
        "topic": create_topic(broker.admin_url, "events", 2),
        "copies": create_topic(broker.admin_url, "copies"),
        "folder": str(tmp_path),
        "checkpoint": str(tmp_path / "checkpoint"),
    }
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # the server's, which looks there for the format
    with connect_server(given) as address:
        client = ChildProcess(
            python("tests.soak.connect_verbs", {**given, "address": address}), tmp_path / "client.log"
        )
        client.finish()
    found = json.loads(client.output.splitlines()[-1])
    numbers = [str(number) for number in range(15)]
    assert found.pop("read") == numbers[:10]
    assert found.pop("filter") == ["1", "4", "7"]
    assert (found.pop("count"), found.pop("sql")) == (10, 3)
    assert found.pop("stream") == numbers
    print(json.dumps(found, indent=1))
    for refused in found.values():
        assert "Spark Connect" in refused, refused
    assert sorted(values_of(broker.service_url, given["topic"]), key=int) == numbers
    assert sorted(values_of(broker.service_url, given["copies"]), key=int) == numbers
