"""A namespace with a sink's control topic and a topic with rows, under one policy."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal

import httpx

from eos.commit.attempt import attempt
from eos.commit.decision import Identity
from eos.commit.owner import Owner
from eos.commit.retry import OwnerSettings
from eos.delivery.row_writer import WriteReport
from eos.errors import NotCommitted
from eos.pulsar.wire.txn import TxnId
from eos.source.batch_plan import batch_ranges
from eos.source.brokers import PulsarBrokers
from eos.source.options import parse_options
from tests.contract.conftest import Running
from tests.contract.policies import TRIED, Policy
from tests.contract.raw import client
from tests.integration.source.queries import Query, read
from tests.simulation.job import Sends

Level = Literal["namespace", "topic"]

OLD = [f"old {row}" for row in range(10)]
NEW = [f"new {row}" for row in range(5)]
SETTINGS = OwnerSettings(ttl_s=60, patience_s=60, limit_s=2)
AT_ONCE = 4
"""Policies that are tried at the same time."""
TRIES = 3
JOB = "job-earliest"
"""The subscription of a stream."""
_clients = itertools.count()


def levels(policy: Policy) -> Iterator[tuple[Policy, Level]]:
    if policy.namespace:
        yield policy, "namespace"
    if policy.topic:
        yield policy, "topic"


ALL = [case for policy in TRIED for case in levels(policy)]


def add_what_policies_name(pulsar: Running) -> None:
    """Add the resource group and the shadow topic that policies name."""
    limits = {"dispatchRateInMsgs": 5, "dispatchRateInBytes": 1_000_000, "publishRateInMsgs": 5}
    group = {**limits, "publishRateInBytes": 1_000_000}
    httpx.put(f"{pulsar.admin_url}/admin/v2/resourcegroups/small", json=group, timeout=30).raise_for_status()
    shadow = f"{pulsar.admin_url}/admin/v2/persistent/public/default/policy-shadow"
    assert httpx.put(shadow, timeout=30).status_code in (204, 409)


def _until_known(write: Callable[[], object]) -> None:
    """Write a batch as a user does, who starts a query again that ended with an outcome that can pass."""
    for left in reversed(range(TRIES)):
        try:
            write()
            return
        except NotCommitted:
            if not left:
                raise


class Place:
    """A namespace of the test's own, with rows in a topic and a control topic, under a policy.

    Attributes:
        committed: the rows of the sink.
    """

    def __init__(self, pulsar: Running, policy: Policy, level: Level, *, written: bool = False) -> None:
        """Args: the broker; the policy; where it is set; whether a sink and a stream were there before the policy."""
        self.pulsar = pulsar
        self.committed: list[str] = []
        self.namespace = f"public/policy-{uuid.uuid4().hex[:8]}"
        self.admin = f"{pulsar.admin_url}/admin/v2"
        self.topic = f"persistent://{self.namespace}/rows"
        self.log = f"persistent://{self.namespace}/__eos-sink"
        self.ask("PUT", f"namespaces/{self.namespace}", {})
        for name in ("rows", "__eos-sink"):
            self.ask("PUT", f"persistent/{self.namespace}/{name}", None)
        with client(pulsar.service_url) as ours, ours.producer(self.topic) as producer:
            for row in OLD:
                producer.send_record(row.encode(), None)
        if written:
            self.sink()
            self.ask("PUT", f"persistent/{self.namespace}/rows/subscription/{JOB}", {"ledgerId": -1, "entryId": -1})
        if not policy.retains:  # each read finds the rows that another one has acknowledged
            unread = f"persistent/{self.namespace}/rows/subscription/unread"
            self.ask("PUT", unread, {"ledgerId": -1, "entryId": -1})
        if level == "namespace":
            self.ask(policy.method, f"namespaces/{self.namespace}/{policy.namespace}", policy.body)
        else:
            for name in ("rows", "__eos-sink"):
                self.ask(policy.method, f"persistent/{self.namespace}/{name}/{policy.topic}", policy.body)
        self.ask("PUT", f"namespaces/{self.namespace}/unload", None)  # a topic that is loaded anew has all its policies

    def ask(self, method: str, path: str, body: object) -> None:
        answer = httpx.request(method, f"{self.admin}/{path}", json=body, timeout=60)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text[:300]}"

    def sink(self) -> list[str]:
        """Write two batches, each in a run of its own."""
        for batch_id in range(2):
            with client(self.pulsar.service_url) as ours:

                def rows(txn: TxnId) -> WriteReport:
                    ours.coordinator(txn.coordinator).add_partitions(txn, [self.topic])
                    with ours.producer(self.topic) as producer:
                        for row in NEW:
                            producer.send_record(row.encode(), txn)
                    return WriteReport({self.topic: len(NEW)}, {self.topic: 50})

                owner = Owner(ours, "sink", self.log, SETTINGS)
                owner.make_log()
                owner.take_over("query", f"run {batch_id}")
                identity = Identity("query", f"run {batch_id}", f"offsets {batch_id}")
                _until_known(partial(attempt, owner, batch_id, identity, Sends(rows)))
                owner.close()
                self.committed += NEW
        return []

    def given(self, **options: str) -> dict[str, str]:
        # Another time-out makes it another client, as each worker of Spark is one.
        timeout = str(30 + next(_clients) / 1000)
        return {"service.url": self.pulsar.service_url, "topic": self.topic, "request_timeout_s": timeout, **options}

    def table(self) -> list[str]:
        options = parse_options(self.given(), "batch")
        brokers = PulsarBrokers(options)
        return read(brokers, batch_ranges(brokers, options.start, options.end))

    def stream(self, **start: str) -> list[str]:
        query = Query(parse_options(self.given(maxEntriesPerTrigger="6", **start), "stream"))
        found: list[str] = []
        offsets = query.plan.first()
        while (end := query.latest(offsets)) != offsets:
            found += query.read(offsets, end)
            offsets = end
        query.brokers.close()
        return found
