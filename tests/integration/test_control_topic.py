"""A control topic whose records the cluster would delete is refused before the first batch."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest

from eos.config import Cluster
from eos.doctor.retention import check_retention, holders
from eos.errors import InvalidInput
from eos.pulsar.net.client import Client


@pytest.fixture
def namespace(pulsar: Any) -> str:
    name = f"public/kept-{uuid.uuid4().hex[:8]}"
    httpx.put(f"{pulsar.admin_url}/admin/v2/namespaces/{name}", timeout=30).raise_for_status()
    return name


def check(pulsar: Any, namespace: str) -> None:
    topic = f"persistent://{namespace}/__eos-sink"
    httpx.put(f"{pulsar.admin_url}/admin/v2/persistent/{namespace}/__eos-sink", timeout=30).raise_for_status()
    check_retention(pulsar.admin_url, Cluster(pulsar.service_url), topic)


def test_a_namespace_that_keeps_everything_is_fine(pulsar: Any, namespace: str) -> None:
    check(pulsar, namespace)


def test_a_message_ttl_is_refused_with_the_command_that_lifts_it(pulsar: Any, namespace: str) -> None:
    httpx.post(f"{pulsar.admin_url}/admin/v2/namespaces/{namespace}/messageTTL", json=60, timeout=30).raise_for_status()
    with pytest.raises(InvalidInput, match=r"TTL of 60 s .* set-message-ttl --ttl 0"):
        check(pulsar, namespace)


def test_a_topic_of_its_own_ttl_0_is_exempt(pulsar: Any, namespace: str) -> None:
    httpx.post(f"{pulsar.admin_url}/admin/v2/namespaces/{namespace}/messageTTL", json=60, timeout=30).raise_for_status()
    topic = f"{pulsar.admin_url}/admin/v2/persistent/{namespace}/__eos-sink"
    httpx.put(topic, timeout=30).raise_for_status()
    httpx.post(f"{topic}/messageTTL", params={"messageTTL": 0}, timeout=30).raise_for_status()
    check_retention(pulsar.admin_url, Cluster(pulsar.service_url), f"persistent://{namespace}/__eos-sink")


def test_an_evicting_backlog_quota_is_refused(pulsar: Any, namespace: str) -> None:
    quota = {"limitSize": 1000, "policy": "consumer_backlog_eviction"}
    url = f"{pulsar.admin_url}/admin/v2/namespaces/{namespace}/backlogQuota"
    httpx.post(url, json=quota, timeout=30).raise_for_status()
    with pytest.raises(InvalidInput, match="backlog quota that evicts"):
        check(pulsar, namespace)


def test_the_holder_of_a_topic_is_named(pulsar: Any, make_topic: Any) -> None:
    cluster = Cluster(pulsar.service_url)
    topic = make_topic("held")
    with Client(cluster) as client:
        coordinator = client.coordinator(0)
        txn = coordinator.new_transaction(60_000)
        coordinator.add_partitions(txn, [topic])
        words = holders(pulsar.admin_url, cluster, 0)
        coordinator.end(txn, commit=False)
    assert words is not None
    assert f"transaction {txn}, OPEN" in words
    assert topic in words
    assert str(txn) not in (holders(pulsar.admin_url, cluster, 0) or "")


def test_an_admin_api_out_of_reach_names_nobody() -> None:
    assert holders("http://127.0.0.1:1", Cluster("pulsar://127.0.0.1:1"), 0) is None
