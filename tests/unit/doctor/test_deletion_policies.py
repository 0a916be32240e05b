"""What `eos doctor` says of policies that delete what a sink has written, or shut its producers out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from eos.doctor.check import Check, CheckVerdict
from eos.doctor.deletion_policies import keeping
from eos.doctor.sinks import SinkState, SinkStatus
from eos.errors import Refused, TopicMissing
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.net.policies import Backlog, BacklogQuota, TopicPolicies

LOG, ROWS = "persistent://public/default/__eos-rows", "persistent://public/default/rows"
SINK = SinkState("rows", SinkStatus.COMMITTED, "query", "run", 3, 1, topics=(ROWS,))
KEPT = TopicPolicies(0, (), -1, -1)
EVICTS = BacklogQuota("message_age", 60, "consumer_backlog_eviction")
HOLDS = BacklogQuota("destination_storage", 60, "producer_request_hold")


@dataclass
class FakeAdmin:
    """The policies and the subscriptions of topics, and the client; policies of None for who may not ask."""

    policies: dict[str, TopicPolicies | None] = field(default_factory=dict)
    subscribed: dict[str, tuple[str, ...]] = field(default_factory=lambda: {LOG: ("__eos-hold",)})
    asked: list[str] = field(default_factory=list)
    backlogs: dict[str, Backlog] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    number: int = 0
    filters: dict[str, tuple[str, ...]] = field(default_factory=dict)
    clusters: tuple[str, ...] = ("here",)

    def partitions(self, topic: str) -> int:
        return self.number

    def keeping(self, topic: str) -> TopicPolicies:
        self.asked.append(topic)
        return self._of(topic)

    def _of(self, topic: str) -> TopicPolicies:
        if topic in self.gone:
            raise TopicMissing("Topic not found")
        found = self.policies.get(topic, KEPT)
        if found is None:
            raise Refused("GET", "401", "no permission")
        return found

    def entry_filters(self, topic: str) -> tuple[str, ...]:
        self._of(topic)
        return self.filters.get(topic, ())

    def backlog(self, topic: str) -> Backlog:
        self.asked.append(topic)
        return self.backlogs.get(topic, Backlog(30, 30, "reader", {"reader": 7}))

    def replicated_on(self, topic: str) -> tuple[str, ...]:
        assert topic == LOG, "rows may be replicated"
        return self.clusters

    def subscriptions(self, topic: str) -> tuple[str, ...]:
        return self.subscribed.get(topic, ())


def looked_at(admin: FakeAdmin) -> list[Check]:
    return list(keeping(cast(Client, admin), cast(Admin, admin), [SINK], "public/default"))


def test_a_sink_whose_log_and_rows_are_kept_is_well() -> None:
    admin = FakeAdmin()
    assert [(one.about, one.verdict) for one in looked_at(admin)] == [
        ("log of rows", CheckVerdict.GOOD),
        ("rows of rows", CheckVerdict.GOOD),
    ]
    assert admin.asked == [LOG, ROWS], "each is five requests"


@pytest.mark.parametrize(
    ("policies", "said"),
    [
        (replace(KEPT, ttl_s=60), "set-message-ttl --ttl 0"),
        (replace(KEPT, quotas=(EVICTS,)), "deletes the records"),
        (replace(KEPT, quotas=(HOLDS,)), "refuses the sink's own producer"),
        (replace(KEPT, most_consumers=1), "maxConsumersPerTopic"),
    ],
)
def test_what_endangers_the_log_is_told_with_the_command_that_lifts_it(policies: TopicPolicies, said: str) -> None:
    log, *_ = looked_at(FakeAdmin({LOG: policies}))
    assert (log.verdict, said in log.said, "pulsar-admin" in log.said) == (CheckVerdict.CARE, True, True), log


@pytest.mark.parametrize("topic", [LOG, ROWS])
def test_entry_filters_need_care_on_a_log_and_on_rows(topic: str) -> None:
    *_, filters = looked_at(FakeAdmin(filters={topic: ("by-region",)}))
    assert (filters.about, filters.verdict) == ("entry filters of rows", CheckVerdict.CARE)
    assert filters.said.startswith(f"The brokers apply the entry filters by-region to {topic}.")


@pytest.mark.parametrize("most", [0, 2])
def test_a_log_that_its_sink_can_hold_and_read_is_well(most: int) -> None:
    log, *_ = looked_at(FakeAdmin({LOG: replace(KEPT, most_consumers=most)}))
    assert log.verdict is CheckVerdict.GOOD


def test_a_log_without_the_subscription_that_retains_it_needs_care() -> None:
    log, _ = looked_at(FakeAdmin(subscribed={}))
    assert (log.verdict, '"__eos-hold"' in log.said) == (CheckVerdict.CARE, True)


def test_a_log_that_a_subscription_of_another_prefix_retains_too_needs_care() -> None:
    """Nothing acknowledges that one, so the broker deletes no record any more."""
    log, _ = looked_at(FakeAdmin(subscribed={LOG: ("role-__eos-hold", "audit", "__eos-hold")}))
    assert log.verdict is CheckVerdict.CARE
    assert "retain its records: __eos-hold, role-__eos-hold. The sink uses the one with" in log.said
    assert f"pulsar-admin topics unsubscribe --subscription NAME {LOG}" in log.said


def test_a_log_that_is_replicated_needs_care_and_is_told_with_the_command_that_keeps_it_in_its_cluster() -> None:
    log, rows = looked_at(FakeAdmin(clusters=("elsewhere", "here")))
    assert (log.about, log.verdict, rows.verdict) == ("log of rows", CheckVerdict.CARE, CheckVerdict.GOOD)
    assert f"pulsar-admin topics set-replication-clusters --clusters CLUSTER {LOG}" in log.said


@pytest.mark.parametrize("retention", [{"retention_minutes": 0}, {"retention_mb": 0}])
def test_rows_that_go_before_a_reader_comes_need_care(retention: dict[str, int]) -> None:
    policies = replace(KEPT, **retention)  # type: ignore[arg-type]
    _, rows = looked_at(FakeAdmin({ROWS: policies}))
    assert (rows.verdict, "set-retention" in rows.said, "public/default" in rows.said) == (
        CheckVerdict.CARE,
        True,
        True,
    )
    _, rows = looked_at(FakeAdmin({ROWS: policies}, {LOG: ("__eos-hold",), ROWS: ("reader",)}))
    assert rows.verdict is CheckVerdict.GOOD


def test_a_ttl_and_a_quota_on_the_rows_are_told() -> None:
    _, rows, quota = looked_at(FakeAdmin({ROWS: replace(KEPT, ttl_s=60, quotas=(HOLDS,))}))
    assert rows.verdict is CheckVerdict.GOOD
    assert "TTL of 60 s" in rows.said
    assert (quota.about, quota.verdict) == ("backlog quota of rows", CheckVerdict.GOOD)
    assert "50% is used" in quota.said
    assert "producer_request_hold" in quota.said


def test_a_quota_of_a_topic_with_partitions_is_looked_at_where_most_of_it_is_used() -> None:
    """The broker has no backlog of the whole topic, and answers that there is none of this name."""
    used = {
        f"{ROWS}-partition-0": Backlog(59, 1, "a", {"a": 7}),
        f"{ROWS}-partition-1": Backlog(1, None, "b", {"b": 7}),
    }
    admin = FakeAdmin({ROWS: replace(KEPT, quotas=(EVICTS, HOLDS))}, number=2, backlogs=used)
    *_, age, size = looked_at(admin)
    assert ROWS not in admin.asked[2:]
    assert (age.verdict, f"{ROWS}-partition-1" in age.said) == (CheckVerdict.UNKNOWN, True)
    assert (size.verdict, f"{ROWS}-partition-0" in size.said) == (CheckVerdict.CARE, True)


def test_a_topic_of_the_newest_batch_that_is_gone_is_told_once() -> None:
    _, rows = looked_at(FakeAdmin(gone=(ROWS,)))
    assert (rows.about, rows.verdict, "is not there any more" in rows.said) == ("rows of rows", CheckVerdict.CARE, True)


def test_a_log_that_is_gone_meanwhile_is_not_known() -> None:
    log, _ = looked_at(FakeAdmin(gone=(LOG,)))
    assert (log.about, log.verdict) == ("log of rows", CheckVerdict.UNKNOWN)


def test_what_is_not_told_is_not_known() -> None:
    assert [one.verdict for one in looked_at(FakeAdmin({LOG: None, ROWS: None}))] == [CheckVerdict.UNKNOWN] * 6
