"""A control topic whose records the cluster would delete is refused before the first batch."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest

from eos.config import Cluster
from eos.errors import InvalidInput
from eos.retention import check_retention


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
