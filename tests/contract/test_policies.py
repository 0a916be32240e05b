"""Each policy of a namespace or a topic, one at a time: a sink and a source work under it, or are refused by name."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx
import pytest
from pyspark.sql.types import StructType

from eos.config import Cluster
from eos.errors import CommitUnknown, EosError
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.net.policies import BacklogQuota, TopicPolicies
from eos.pulsar.wire.batch import Chunk
from eos.source.batch import PulsarReader
from eos.source.brokers import PulsarBrokers
from eos.source.options import parse_options
from eos.source.stream import PulsarStreamReader
from tests.clients import end, transaction
from tests.conftest import create_topic
from tests.contract.conftest import Running
from tests.contract.policies import NOT_TRIED, TRIED, WORKS, Policy
from tests.contract.policy_place import ALL, AT_ONCE, JOB, OLD, Level, Place, add_what_policies_name
from tests.waiting import until

FIELDS: dict[str, list[str]] = json.loads((Path(__file__).parents[1] / "vectors" / "policies.json").read_text())


def differs(expected: str, rows: list[str], act: Callable[[], list[str]], slow: str = "") -> str | None:
    """Say how it went otherwise than expected, by the patterns of a `Policy`; None: it did not."""
    try:
        found = act()
    except EosError as error:
        unhelpful = isinstance(error, CommitUnknown) and "helps once that has changed" not in str(error)
        if expected != WORKS and re.search(expected, str(error), re.DOTALL) and not unhelpful:
            return None
        if slow and re.search(slow, str(error), re.DOTALL):
            return None
        return f"{type(error).__name__}: {error}"
    if expected != WORKS:
        return f"works, and was to be refused with {expected}"
    return None if sorted(found) == sorted(rows) else f"gives {found}"


def tried(pulsar: Running, policy: Policy, level: Level, *, streams: bool = True) -> list[str]:
    """Return what was otherwise than expected."""
    try:
        place = Place(pulsar, policy, level)
    except AssertionError as error:
        return [f"{policy.name} ({level}): not set: {error}"]
    wrong = {"sink": differs(policy.sink, [], place.sink, policy.slow)}
    rows = OLD + place.committed
    wrong["table"] = differs(policy.table, rows, place.table, policy.slow)
    if streams:
        for name, start, expected in (
            (JOB, {"startingOffsets": "earliest"}, policy.stream),
            ("job-timed", {"startingTime": "0"}, policy.timed),
        ):
            wrong[name] = differs(expected, rows, partial(place.stream, subscription=name, **start), policy.slow)
    return [f"{policy.name} ({level}), {act}: {how}" for act, how in wrong.items() if how is not None]


def test_each_field_of_the_policies_of_a_broker_is_tried_or_has_a_reason(pulsar: Running) -> None:
    tried_fields = {field for policy in TRIED for field in policy.fields}
    known = {*FIELDS["Policies"], *FIELDS["TopicPolicies"]}
    assert tried_fields | NOT_TRIED.keys() == known
    assert not tried_fields & NOT_TRIED.keys()
    told = httpx.get(f"{pulsar.admin_url}/admin/v2/namespaces/public/default", timeout=30).raise_for_status().json()
    assert set(told) <= set(FIELDS["Policies"])


@pytest.mark.parametrize("policy", [policy for policy in TRIED if policy.quick], ids=lambda policy: policy.name)
def test_a_policy_lets_work_or_is_named(pulsar: Running, policy: Policy) -> None:
    assert tried(pulsar, policy, "namespace", streams=False) == []


@pytest.mark.soak
@pytest.mark.timeout(2_400)
def test_every_policy_of_a_namespace_or_a_topic_lets_work_or_is_named(pulsar: Running) -> None:
    add_what_policies_name(pulsar)

    def one(case: tuple[Policy, Level]) -> list[str]:
        began = time.monotonic()
        found = tried(pulsar, *case)
        print(f"{case[0].name} ({case[1]}): {time.monotonic() - began:.1f} s", *found, sep="\n  ", flush=True)
        return found

    with ThreadPoolExecutor(AT_ONCE) as pool:
        wrong = [text for found in pool.map(one, ALL) for text in found]
    print(f"{len(ALL)} cases")
    assert wrong == []


def test_a_rate_and_a_quota_are_told_of_before_a_read_where_the_admin_api_is_known(
    pulsar: Running, caplog: pytest.LogCaptureFixture
) -> None:
    (rate,) = (one for one in TRIED if one.name == "dispatch rate")
    place = Place(pulsar, rate, "namespace")
    quota = {"limitSize": 10**9, "policy": "producer_exception"}
    place.ask("POST", f"namespaces/{place.namespace}/backlogQuota", quota)
    options = {"admin.url": pulsar.admin_url, "retainWhileReading": "true"}
    PulsarReader(parse_options(place.given(**options), "batch"), StructType()).partitions()
    assert sum("dispatchRate of 5 messages in 1 s limits" in text for text in caplog.messages) == 1
    assert sum("producer_exception) do not fit" in text for text in caplog.messages) == 1
    caplog.clear()
    options = {"admin.url": pulsar.admin_url, "subscription": "job"}
    reader = PulsarStreamReader(parse_options(place.given(**options), "stream"), StructType())
    reader.initialOffset()
    reader.stop()
    assert [f"Reads of {place.topic} are slow" in text for text in caplog.messages] == [True]
    caplog.clear()
    brokers = PulsarBrokers(parse_options(place.given(**{"admin.url": "http://localhost:1"}), "batch"))
    told: list[str] = []
    brokers.warn_of_policies([place.topic], told.append)
    assert ["can't be known" in text for text in told] == [True]


# ---- policies of a partition


def test_the_policies_of_a_partition_are_those_of_its_topic(pulsar: Running) -> None:
    topic = create_topic(pulsar.admin_url, "policies", partitions=2)
    partition, at = f"{topic}-partition-1", f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}"
    quota = {"limitSize": 1_000_000, "policy": "producer_exception"}
    for name, value in {
        "retention": {"retentionTimeInMinutes": 3, "retentionSizeInMB": 4},
        "messageTTL?messageTTL=70": None,
        "maxConsumers": 8,
        "backlogQuota?backlogQuotaType=destination_storage": quota,
        "dispatchRate": {"dispatchThrottlingRateInMsg": 50, "ratePeriodInSecond": 1},
    }.items():
        httpx.post(f"{at}/{name}", json=value, timeout=30).raise_for_status()
    wanted = TopicPolicies(70, (BacklogQuota("destination_storage", 1_000_000, "producer_exception"),), 3, 4, 8)
    with Admin(pulsar.admin_url) as admin:
        until(lambda: admin.keeping(topic) == wanted, lambda: f"it has {admin.keeping(topic)}")
        assert admin.keeping(partition) == wanted
        assert any("50" in rate for rate in admin.read_rates(partition)), admin.read_rates(partition)


# ---- a topic that takes little a second


RATE = 200_000  # bytes a second
TIMEOUT_S = 7.0
CHUNK = Chunk(messages=1, payload=b"x" * 100_000, uncompressed_size=100_000, rows_bytes=100_000, compression="none")


def test_a_batch_that_takes_longer_than_the_time_out_passes(pulsar: Running, make_topic: Callable[..., str]) -> None:
    topic = make_topic("slow")
    url = f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/publishRate"
    limit = {"publishThrottlingRateInByte": RATE, "publishThrottlingRateInMsg": -1}
    httpx.post(url, json=limit, timeout=30).raise_for_status()
    until(lambda: httpx.get(url, timeout=30).text.find(str(RATE)) >= 0)
    with Client(Cluster(pulsar.service_url)) as client:
        txn = transaction(client, topic)
        producer = client.producer(topic)
        producer._timeout_s = TIMEOUT_S
        began = time.monotonic()
        for _ in range(20):  # 10 s at that rate
            producer.send(CHUNK, txn)
        producer.flush()
        assert time.monotonic() - began > TIMEOUT_S
        end(client, txn, commit=False)
