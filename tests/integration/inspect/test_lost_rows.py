"""`eos sink verify` of a sink one of whose topics has lost a ledger: the rows are missing, and the ledger is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing

import httpx
import pytest
from kazoo.client import KazooClient

from eos.bookkeeper.wire.metadata import znode
from eos.local import LocalPulsar
from eos.pulsar.net.admin import Admin
from tests.conftest import create_topic
from tests.integration.sparkless import Sink, eos

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]


def lose(pulsar: LocalPulsar, topic: str, number: int) -> int:
    """Take the metadata of a ledger away, as a disaster or a wrong command does. Return its id."""
    with Admin(pulsar.admin_url) as admin:
        ledger = admin.ledgers(topic)[number].id
    zookeeper = KazooClient(pulsar.zookeeper)
    zookeeper.start()
    try:
        zookeeper.delete(znode(ledger))
    finally:
        zookeeper.stop()
        zookeeper.close()
    return ledger


def test_rows_of_a_lost_ledger_are_missing_and_the_ledger_is_named(start_pulsar: Callable[..., LocalPulsar]) -> None:
    pulsar = start_pulsar(settings={"autoSkipNonRecoverableData": True})
    sink = Sink(pulsar, lambda stem: create_topic(pulsar.admin_url, stem))
    unload = f"{pulsar.admin_url}/admin/v2/{sink.topic.replace('://', '/')}/unload"
    with closing(sink.client):
        for batch_id in range(3):
            sink.write(batch_id)
            httpx.put(unload, timeout=60).raise_for_status()
        ledger = lose(pulsar, sink.topic, 1)
        httpx.put(unload, timeout=60).raise_for_status()
        answer = eos(pulsar, "sink", "verify", sink.name, "--json")
        found = json.loads(answer.stdout)
        assert answer.exit_code == 1
        assert [(one["batch_id"], one["verdict"]) for one in found["discrepancies"]] == [(1, "missing")]
        (missing,) = found["missing_entries"]
        assert f"the entries of {sink.topic} from {ledger}:0 to the end of its ledger were not all delivered" in missing
        assert missing.endswith("They are lost")
        (unsure,) = json.loads(eos(pulsar, "sink", "verify", sink.name, "--json", admin=False).stdout)[
            "missing_entries"
        ]
        assert "They belong to aborted transactions, or are lost" in unsure
