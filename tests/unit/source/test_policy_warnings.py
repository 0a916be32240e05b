"""What is said of policies before a read."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from eos.errors import Refused
from eos.pulsar.net.policies import BacklogQuota, TopicPolicies
from eos.source.policy_warnings import policy_warnings, setting_warnings

TOPIC = "persistent://public/default/t"


@dataclass
class Asked:
    rates: tuple[str, ...] = ()
    quotas: tuple[BacklogQuota, ...] = ()
    filters: tuple[str, ...] = ()
    passes_over: str | Refused | None = "false"

    def setting(self, name: str) -> str | None:
        assert name == "autoSkipNonRecoverableData"
        if isinstance(self.passes_over, Refused):
            raise self.passes_over
        return self.passes_over

    def read_rates(self, topic: str) -> tuple[str, ...]:
        assert topic == f"{TOPIC}-partition-0"
        return self.rates

    def entry_filters(self, topic: str) -> tuple[str, ...]:
        assert topic == f"{TOPIC}-partition-0"
        return self.filters

    def keeping(self, topic: str) -> TopicPolicies:
        return TopicPolicies(0, self.quotas, 0, 0)


def told(asked: Asked, *, retained: bool = False) -> list[str]:
    return policy_warnings(asked, TOPIC, f"{TOPIC}-partition-0", retained=retained)


def test_a_topic_without_such_policies_is_not_spoken_of() -> None:
    assert told(Asked(), retained=True) == []


@pytest.mark.parametrize(
    ("rate", "command"),
    [
        ("dispatchRate of 5 messages in 1 s", " set-dispatch-rate"),
        ("subscriptionDispatchRate of 9 bytes in 2 s", " set-subscription-dispatch-rate"),
    ],
)
def test_a_rate_is_named_with_the_command_that_raises_it(rate: str, command: str) -> None:
    (text,) = told(Asked((rate,)))
    assert TOPIC in text
    assert rate in text
    assert command in text


def test_entry_filters_are_named_since_what_they_reject_leaves_no_trace() -> None:
    (text,) = told(Asked(filters=("by-region", "by-size")))
    assert text.startswith(f"The brokers apply the entry filters by-region, by-size to {TOPIC}.")
    assert "cannot report their rows as lost" in text


def test_a_quota_matters_to_a_read_that_retains_unless_it_evicts() -> None:
    holds = BacklogQuota("destination_storage", 10, "producer_request_hold")
    evicts = BacklogQuota("destination_storage", 10, "consumer_backlog_eviction")
    assert told(Asked(quotas=(holds, evicts))) == []
    (text,) = told(Asked(quotas=(holds, evicts)), retained=True)
    assert text.startswith(f"retainWhileReading=true and the backlog quota of {TOPIC} (destination_storage of 10 bytes")


def test_a_broker_that_passes_over_lost_entries_is_named_where_the_role_may_ask() -> None:
    assert setting_warnings(Asked()) == setting_warnings(Asked(passes_over=None)) == []
    (text,) = setting_warnings(Asked(passes_over="true"))
    assert text.startswith("The broker has autoSkipNonRecoverableData=true.")
    assert setting_warnings(Asked(passes_over=Refused("GET", "403", "not a superuser"))) == []
    with pytest.raises(Refused, match="500"):
        setting_warnings(Asked(passes_over=Refused("GET", "500", "broken")))
