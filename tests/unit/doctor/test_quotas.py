"""What `eos doctor` says of backlog quotas and of a namespace's limit of topics: how much of them is used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from eos.doctor.check import CheckVerdict
from eos.doctor.quotas import backlog, backlogs, topics
from eos.errors import Refused, TopicMissing
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.policies import Backlog, BacklogQuota

ROWS = "persistent://public/default/rows"
AGE = BacklogQuota("message_age", 100, "consumer_backlog_eviction")
SIZE = BacklogQuota("destination_storage", 1_000, "producer_request_hold")
FORBIDDEN = Refused("GET", "403", "only for superusers")


@pytest.mark.parametrize(
    ("quota", "used", "verdict", "said"),
    [
        (SIZE, Backlog(799, None, "slow", {"slow": 7}), CheckVerdict.GOOD, "80% is used"),
        (
            SIZE,
            Backlog(800, None, "slow", {"slow": 7}),
            CheckVerdict.CARE,
            "refuses every producer, and batches fail. Let the ",
        ),
        (SIZE, Backlog(9_000, None, "", {"slow": 7}), CheckVerdict.CARE, "900% is used"),
        (AGE, Backlog(9_000, 79, "slow", {"slow": 7}), CheckVerdict.GOOD, "79% is used"),
        (
            AGE,
            Backlog(0, 80, "slow", {"slow": 7}),
            CheckVerdict.CARE,
            "deletes the oldest messages, which it has not read",
        ),
        (AGE, Backlog(0, 80, "slow", {"slow": 7}), CheckVerdict.CARE, 'the subscription "slow"'),
        (AGE, Backlog(0, None, "", {"slow": 7}), CheckVerdict.UNKNOWN, "Ask again later"),
        (AGE, Backlog(0, None, "", {}), CheckVerdict.GOOD, "no subscription that could lag"),
    ],
)
def test_how_much_of_a_backlog_quota_is_used(
    quota: BacklogQuota, used: Backlog, verdict: CheckVerdict, said: str
) -> None:
    found = backlog("quota", quota, used, ROWS)
    assert (found.verdict, said in found.said) == (verdict, True), found


class SecondRemoved:
    """A topic whose second partition is removed."""

    def backlog(self, topic: str) -> Backlog:
        if topic == "two":
            raise TopicMissing(topic)
        return Backlog(799, None, "slow", {"slow": 7})


def test_a_partition_that_the_broker_has_removed_uses_nothing_of_a_quota() -> None:
    (found,) = backlogs("quota", cast(Admin, SecondRemoved()), [SIZE], ["one", "two"])
    assert "80% is used of the backlog quota of one" in found.said
    (found,) = backlogs("quota", cast(Admin, SecondRemoved()), [SIZE], ["two"])
    assert found.verdict is CheckVerdict.GOOD


@dataclass
class FakeAdmin:
    """A namespace with five topics; its own limit, and that of its broker. An error: not told."""

    own: Any = None
    brokers: Any = "0"
    asked: list[str] = field(default_factory=list)

    def most_topics(self, namespace: str) -> int | None:
        assert namespace == "public/default"
        if isinstance(self.own, Exception):
            raise self.own
        return cast(int | None, self.own)

    def setting(self, name: str) -> str | None:
        assert name == "maxTopicsPerNamespace"
        if isinstance(self.brokers, Exception):
            raise self.brokers
        return cast(str | None, self.brokers)

    def topics(self, namespace: str) -> tuple[str, ...]:
        return ("t",) * 5


@pytest.mark.parametrize(
    ("admin", "verdict", "said"),
    [
        (FakeAdmin(), CheckVerdict.GOOD, "has no limit"),
        (FakeAdmin(None, None), CheckVerdict.GOOD, "has no limit"),
        (FakeAdmin(0, "5"), CheckVerdict.GOOD, "has no limit"),
        (FakeAdmin(None, "7"), CheckVerdict.GOOD, "5 of at most 7"),
        (FakeAdmin(None, "6"), CheckVerdict.CARE, "set-max-topics-per-namespace -t NUMBER public/default"),
        (FakeAdmin(5, FORBIDDEN), CheckVerdict.CARE, "5 of at most 5"),
        (FakeAdmin(FORBIDDEN), CheckVerdict.UNKNOWN, "is not told"),
        (FakeAdmin(None, FORBIDDEN), CheckVerdict.UNKNOWN, "only for superusers"),
    ],
)
def test_how_near_a_namespace_is_to_its_limit_of_topics(admin: FakeAdmin, verdict: CheckVerdict, said: str) -> None:
    found = topics(cast(Admin, admin), "public/default")
    assert (found.verdict, said in found.said) == (verdict, True), found
