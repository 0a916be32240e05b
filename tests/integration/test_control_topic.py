"""A control topic whose records the cluster would delete is refused before the first batch."""

from __future__ import annotations

import uuid
from contextlib import closing
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

import eos
from eos.config import Cluster
from eos.doctor.deletion_policies import keeping
from eos.doctor.sinks import SinkState, SinkStatus
from eos.errors import InvalidInput, NetworkError
from eos.preflight.retention import check_admin, check_expiry, check_retention, holders
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from tests.clients import end, transaction
from tests.waiting import until


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


def test_an_expiry_of_subscriptions_is_refused_for_a_job_until_the_topic_retains_all(
    pulsar: Any, namespace: str
) -> None:
    topic, admin = f"persistent://{namespace}/__eos-sink", f"{pulsar.admin_url}/admin/v2"
    check(pulsar, namespace)
    check_expiry(pulsar.admin_url, Cluster(pulsar.service_url), topic)
    expiry = f"{admin}/namespaces/{namespace}/subscriptionExpirationTime"
    httpx.post(expiry, json=60, timeout=30).raise_for_status()
    none = {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}  # `eos local` retains all
    httpx.post(f"{admin}/namespaces/{namespace}/retention", json=none, timeout=30).raise_for_status()
    with pytest.raises(InvalidInput, match=r"for 60 minutes .* set-retention --time -1 --size -1"):
        check_expiry(pulsar.admin_url, Cluster(pulsar.service_url), topic)
    own = f"{admin}/persistent/{namespace}/__eos-sink/retention"
    for_ever = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    httpx.post(own, json=for_ever, timeout=30).raise_for_status()

    def retained() -> bool:
        return bool(httpx.get(own, params={"applied": True}, timeout=30).json() == for_ever)

    until(retained)
    check_expiry(pulsar.admin_url, Cluster(pulsar.service_url), topic)


@pytest.mark.parametrize("policy", ["consumer_backlog_eviction", "producer_request_hold", "producer_exception"])
@pytest.mark.parametrize("kind", ["message_age", "destination_storage"])
def test_a_backlog_quota_is_refused_until_the_topic_is_exempt(
    pulsar: Any, namespace: str, policy: str, kind: str
) -> None:
    limit, option = ("limitTime", "--limitTime") if kind == "message_age" else ("limitSize", "--limit")
    set_quota(pulsar, f"namespaces/{namespace}", kind, {"limitSize": -1, "limitTime": -1, limit: 1000}, policy)
    words = rf"\({kind} of 1000 \w+, policy {policy}\).* set-backlog-quota --type {kind} {option}=-1 --policy "
    with pytest.raises(InvalidInput, match=words):
        check(pulsar, namespace)
    set_quota(pulsar, f"persistent/{namespace}/__eos-sink", kind, {"limitSize": -1, "limitTime": -1})
    check_retention(pulsar.admin_url, Cluster(pulsar.service_url), f"persistent://{namespace}/__eos-sink")


def test_one_consumer_is_too_few_until_the_topic_may_have_more(pulsar: Any, namespace: str) -> None:
    limit = f"{pulsar.admin_url}/admin/v2/namespaces/{namespace}/maxConsumersPerTopic"
    httpx.post(limit, json=1, timeout=30).raise_for_status()
    with pytest.raises(
        InvalidInput, match=r"1 consumer at a time \(maxConsumersPerTopic\).* set-max-consumers --max-c"
    ):
        check(pulsar, namespace)
    own = f"{pulsar.admin_url}/admin/v2/persistent/{namespace}/__eos-sink/maxConsumers"
    httpx.post(own, json=8, timeout=30).raise_for_status()
    check_retention(pulsar.admin_url, Cluster(pulsar.service_url), f"persistent://{namespace}/__eos-sink")


def test_a_quota_on_a_topic_with_partitions_is_told_of_a_partition(pulsar: Any, namespace: str) -> None:
    topic = f"persistent://{namespace}/rows"
    path = f"persistent/{namespace}/rows"
    httpx.put(f"{pulsar.admin_url}/admin/v2/{path}/partitions", json=2, timeout=30).raise_for_status()
    set_quota(pulsar, f"namespaces/{namespace}", "destination_storage", {"limitSize": 1000, "limitTime": -1})
    gone = f"persistent://{namespace}/gone"
    sinks = [SinkState("s", SinkStatus.COMMITTED, topics=(topic, gone))]
    httpx.put(f"{pulsar.admin_url}/admin/v2/persistent/{namespace}/__eos-s", timeout=30).raise_for_status()
    with Client(Cluster(pulsar.service_url)) as client, Admin(pulsar.admin_url) as admin:
        told = [f"{one.about}: {one.said}" for one in keeping(client, admin, sinks, namespace)]
    assert [one for one in told if one.startswith("backlog quota of s: ") and f"{topic}-partition-0" in one], told
    assert [one for one in told if one.startswith(f"rows of s: {gone}") and "is not there any more" in one], told


def test_a_quota_that_is_used_up_shuts_out_producers_but_not_from_an_exempt_topic(pulsar: Any, namespace: str) -> None:
    """The reason why the advice is right: a topic's own quota without a limit stands in for its namespace's."""
    topic = f"persistent/{namespace}/__eos-sink"
    httpx.put(f"{pulsar.admin_url}/admin/v2/{topic}", timeout=30).raise_for_status()
    name = topic.replace("/", "://", 1)
    set_quota(pulsar, f"namespaces/{namespace}", "message_age", {"limitSize": -1, "limitTime": 1})
    with Client(Cluster(pulsar.service_url)) as client:
        client.hold(name, "keep").close()
        client.producer(name).send_record(b"old", None)
        httpx.put(f"{pulsar.admin_url}/admin/v2/{topic}/unload", timeout=30).raise_for_status()  # closes the ledger

        def shut_out() -> str | None:
            try:
                client.producer(name).send_record(b"new", None)
            except NetworkError as error:
                return str(error) if "Quota" in str(error) else None
            return None

        words = until(shut_out, "the quota does not bite", patience_s=150, pause_s=1)
        assert "A backlog quota of the topic is used up" in str(words)
        set_quota(pulsar, topic, "message_age", {"limitSize": -1, "limitTime": -1})
        until(lambda: shut_out() is None, "the topic is not exempt")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("pulsar://localhost:6650", 'the admin URL "pulsar://localhost:6650" must begin with http'),
        ("http://127.0.0.1:1", 'admin_url="http://127.0.0.1:1": GET .*refused.* the admin URL is right'),
    ],
)
def test_an_admin_url_that_is_none(url: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        check_admin(url, Cluster("pulsar://127.0.0.1:1"))


def test_an_admin_url_that_is_right(pulsar: Any) -> None:
    check_admin(pulsar.admin_url, Cluster(pulsar.service_url))


def set_quota(pulsar: Any, of: str, kind: str, limits: dict[str, int], policy: str = "producer_request_hold") -> None:
    url = f"{pulsar.admin_url}/admin/v2/{of}/backlogQuota"
    answer = httpx.post(url, params={"backlogQuotaType": kind}, json={**limits, "policy": policy}, timeout=30)
    answer.raise_for_status()


def test_the_holder_of_a_topic_is_named(pulsar: Any, make_topic: Any) -> None:
    cluster = Cluster(pulsar.service_url)
    topic = make_topic("held")
    with Client(cluster) as client:
        txn = transaction(client, topic)
        words = holders(pulsar.admin_url, cluster, 0)
        end(client, txn, commit=False)
    assert words is not None
    assert f"transaction {txn}, OPEN" in words
    assert topic in words
    assert str(txn) not in (holders(pulsar.admin_url, cluster, 0) or "")


def test_an_admin_api_out_of_reach_names_nobody() -> None:
    assert holders("http://127.0.0.1:1", Cluster("pulsar://127.0.0.1:1"), 0) is None


# ---- how brokers recover topics


def test_a_sink_that_knows_the_admin_api_warns_at_its_start(
    spark: SparkSession, pulsar: Any, make_topic: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("eos.preflight.recovery.SETTING", "numIOThreads")  # of which a broker has two or more
    topic = make_topic("warned")
    name = topic.rsplit("/")[-1]
    sink = eos.sink(pulsar.service_url, topic=topic, name=name, admin_url=pulsar.admin_url)
    with (
        closing(sink),
        sink.batch(0, eos.Identity("query", "run", "offsets 0")) as txn,
    ):
        txn.write(spark.range(3).selectExpr("cast(id as string) value"))
    assert "The broker recovers topics in" in "\n".join(caplog.messages)
