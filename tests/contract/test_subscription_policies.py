"""The demands of a namespace on subscriptions: names that begin with the role, and types."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import httpx
import pytest

from eos.commit.control_topic import HOLD
from eos.commit.owner import Owner
from eos.config import Cluster
from eos.doctor.doctor import Doctor, ReaderState
from eos.errors import InvalidInput, NetworkError, RefusedForGood
from eos.preflight.recovery import check_recovery
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.source.batch_plan import batch_ranges
from eos.source.brokers import PulsarBrokers
from eos.source.options import SourceOptions, parse_options
from eos.source.stream_plan import StreamPlan
from tests.contract.conftest import Running
from tests.contract.test_rights import BOTH, CONSUME, Guarded
from tests.contract.test_rights import guarded as guarded
from tests.contract.test_rights import role as role
from tests.integration.source.queries import fail, read
from tests.waiting import PATIENCE_S, until


def put(url: str, policy: str, body: object, bearer: str = "") -> None:
    headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
    httpx.post(f"{url}/{policy}", json=body, headers=headers, timeout=30).raise_for_status()


def written(client: Client, topic: str) -> bool:
    """Write a row; False where the broker closed the producer, and the row may be there all the same."""
    try:
        with client.producer(topic) as producer:
            producer.send_record(b"row", None)
    except NetworkError:
        return False
    return True


def refusal(used: Callable[[], object]) -> str:
    """Return the words of a refusal for good; none where it worked, or a topic moved meanwhile."""
    try:
        used()
    except RefusedForGood as refused:
        return str(refused)
    except NetworkError:
        pass
    return ""


def rows_or_none(given: Mapping[str, str]) -> list[str]:
    """Return the rows of a topic; none while its policy has not come to it."""
    try:
        return table(parse_options(given, "batch"))
    except NetworkError:
        return []


def table(options: SourceOptions) -> list[str]:
    brokers = PulsarBrokers(options)
    (part,) = batch_ranges(brokers, options.start, options.end)
    with brokers.retained(part, "spark-batch-test"):
        return read(brokers, [part])


def stream(options: SourceOptions) -> list[str]:
    brokers = PulsarBrokers(options)
    plan = StreamPlan(brokers, options.start, fail_on_data_loss=True, warn=fail)
    start = plan.first()
    found = read(brokers, plan.ranges(start, plan.latest(start, None)))
    brokers.close()
    return found


def log_of_a_sink(client: Client, log: str) -> None:
    owner = Owner(client, "sink", log)
    owner.take_over("query", "run")
    owner.close()


@pytest.fixture
def demanding(guarded: Guarded, role: str) -> str:
    """A namespace whose subscriptions must have names that begin with the role."""
    namespace = f"public/prefix-{uuid.uuid4().hex[:8]}"
    admin = f"{guarded.broker.admin_url}/admin/v2/namespaces"
    bearer = str(guarded.credentials("admin").data)
    headers = {"Authorization": f"Bearer {bearer}"}
    httpx.put(f"{admin}/{namespace}", json={}, headers=headers, timeout=30).raise_for_status()
    put(f"{admin}/{namespace}", "subscriptionAuthMode", "Prefix", bearer)
    guarded.grant(role, namespace, BOTH)
    guarded.grant(role, "pulsar/system", CONSUME)
    return namespace


def test_names_that_must_begin_with_the_role_do_so_by_an_option(guarded: Guarded, role: str, demanding: str) -> None:
    topic, log = f"persistent://{demanding}/rows", f"persistent://{demanding}/__eos-sink"
    with guarded.client(role) as plain:
        plain.ensure_topic(topic)
        plain.ensure_topic(log)
        with plain.producer(topic) as producer:
            producer.send_record(b"row", None)
        with pytest.raises(RefusedForGood, match=r"prefixed by the authentication role.*subscription_prefix"):
            log_of_a_sink(plain, log)
    given = {"service.url": guarded.broker.service_url, "topic": topic, "token": str(guarded.credentials(role).data)}
    with pytest.raises(RefusedForGood, match=r"prefixed by the authentication role.*subscriptionPrefix"):
        table(parse_options(given, "batch"))
    prefix = {"subscriptionPrefix": role}
    assert table(parse_options(given | prefix, "batch")) == ["row"]
    assert table(parse_options(given | prefix | {"startingTime": "0"}, "batch")) == ["row"]
    assert stream(parse_options(given | prefix | {"startingOffsets": "earliest"}, "stream")) == ["row"]
    named = given | {"subscription": f"{role}.named", "startingTime": "0"}
    assert stream(parse_options(named, "stream")) == ["row"]
    cluster = Cluster(guarded.broker.service_url, guarded.credentials(role), subscription_prefix=role)
    with Client(cluster) as client:
        log_of_a_sink(client, log)
        assert not client.is_held(log, HOLD)
        with client.entry_reader(topic, None) as entries:
            assert len(entries.read(PATIENCE_S)) == 1


@pytest.mark.parametrize("allowed", [["Exclusive"], ["Exclusive", "Shared"], ["Failover"], ["Shared"]], ids=str)
def test_the_types_that_a_namespace_allows_are_used_or_the_missing_ones_named(
    pulsar: Running, make_client: Callable[[], Client], allowed: list[str]
) -> None:
    namespace = f"public/types-{uuid.uuid4().hex[:8]}"
    admin = f"{pulsar.admin_url}/admin/v2/namespaces/{namespace}"
    httpx.put(admin, json={}, timeout=30).raise_for_status()
    topic, log = f"persistent://{namespace}/rows", f"persistent://{namespace}/__eos-sink"
    client = make_client()
    client.ensure_topic(topic)
    client.ensure_topic(log)
    put(admin, "subscriptionTypesEnabled", allowed)
    until(lambda: written(client, topic), "the broker closes a topic's producers when its policies come")
    given: dict[str, Any] = {"service.url": pulsar.service_url, "topic": topic}
    stream_of = {"subscription": "job", "startingTime": "0"}
    if "Exclusive" not in allowed:
        words = r"sub type.*pulsar-admin namespaces set-subscription-types-enabled"
        for used in (lambda: log_of_a_sink(client, log), lambda: table(parse_options(given, "batch"))):
            said = until(partial(refusal, used), "a policy comes to a topic some moments after it was set")
            assert re.search(words, said)
        # The transaction buffer of a topic that is loaded now never recovers: its own reader is refused too.
        httpx.put(f"{admin}/unload", timeout=60).raise_for_status()
        for used in (
            lambda: table(parse_options(given | {"startingTime": "0"}, "batch")),
            lambda: stream(parse_options(given | stream_of, "stream")),
            lambda: stream(parse_options(given | stream_of | {"resetSubscription": "true"}, "stream")),
        ):
            with pytest.raises(RefusedForGood, match=words):
                used()
        with Admin(pulsar.admin_url) as asked:
            doctor = Doctor(client, asked)
            (found,) = doctor.look([topic])
            assert (found.state, f"type {allowed[0]}." in found.remedy) == (ReaderState.UNRECOVERED, True)
            with pytest.raises(InvalidInput, match=rf"can't write to {namespace}\..*set-subscription-types-enabled"):
                check_recovery(asked, namespace)
            put(admin, "subscriptionTypesEnabled", ["Exclusive", *allowed])
            check_recovery(asked, namespace)
            assert set(until(lambda: rows_or_none(given), "the broker recovers the topic by itself")) == {"row"}
            until(lambda: doctor.look([topic], {}) == [], "the broker recovers the topic by itself")
        return
    assert set(table(parse_options(given, "batch"))) == {"row"}
    assert set(stream(parse_options(given | stream_of, "stream"))) == {"row"}
    log_of_a_sink(client, log)
    assert not client.is_held(log, HOLD)
