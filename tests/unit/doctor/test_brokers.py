"""What `eos doctor` says of brokers: what they told, what they did not tell, and what needs care."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from eos.doctor.brokers import auto_creation, broker_version, brokers, clock, coordinators, subscription_types
from eos.doctor.check import CheckVerdict
from eos.errors import InvalidInput, Refused, Unanswered
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from tests.unit.doctor.cluster import FakeTypes

FORBIDDEN = Refused("GET", "403", "only for superusers")
LIMIT = "maxActiveTransactionsPerCoordinator"


@dataclass
class FakeAdmin(FakeTypes):
    """A broker: its settings, or none for who is no superuser; {coordinator: its state and what it has open}."""

    told: dict[str, str] | None
    states: dict[int, Any] = field(default_factory=dict)

    def version(self) -> str:
        return "4.2.4"

    def setting(self, name: str) -> str | None:
        return self.settings().get(name)

    def settings(self) -> dict[str, str]:
        if self.told is None:
            raise FORBIDDEN
        return self.told

    def clock_ahead_s(self) -> float:
        return 0.2

    def coordinator(self, index: int) -> tuple[str, int]:
        said = self.states.get(index, ("Ready", 0))
        if isinstance(said, Exception):
            raise said
        return cast(tuple[str, int], said)

    def auto_creation(self, namespace: str) -> None:
        assert namespace == "public/default"


@dataclass
class FakeClient:
    number: int = 2

    def coordinators(self) -> int:
        if not self.number:
            raise InvalidInput("transactions are off")
        return self.number


def coordinated(settings: Any, number: int = 2, **states: Any) -> list[tuple[CheckVerdict, str]]:
    admin = FakeAdmin({}, {int(name[1:]): state for name, state in states.items()})
    found = coordinators(cast(Client, FakeClient(number)), cast(Admin, admin), settings)
    return [(check.verdict, check.said) for check in found]


def test_coordinators_below_their_limit_are_well() -> None:
    ((verdict, said),) = coordinated({LIMIT: "100"}, c1=("Ready", 79))
    assert (verdict, "limit of 100" in said) == (CheckVerdict.GOOD, True)
    ((verdict, said),) = coordinated({LIMIT: "0"}, c1=("Ready", 10_000))
    assert (verdict, "no limit" in said) == (CheckVerdict.GOOD, True)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (("Ready", 80), "80 transactions open, and maxActiveTransactionsPerCoordinator=100"),
        (("Initializing", 0), '"Initializing", not ready'),
        (Unanswered("no answer within 30 s"), "transaction_coordinator_assign-partition-1"),
    ],
)
def test_a_coordinator_that_holds_sinks_up_is_named(state: Any, said: str) -> None:
    ((verdict, told),) = coordinated({LIMIT: "100"}, c1=state)
    assert (verdict, said in told, "Coordinator 1" in told) == (CheckVerdict.CARE, True, True), told


def test_what_coordinators_do_not_tell_is_not_taken_for_well() -> None:
    assert [verdict for verdict, _ in coordinated(FORBIDDEN)] == [CheckVerdict.UNKNOWN]
    assert [verdict for verdict, _ in coordinated({}, c0=FORBIDDEN)] == [CheckVerdict.UNKNOWN]
    ((verdict, told),) = coordinated({}, number=0)
    assert (verdict, "transactions are off" in told) == (CheckVerdict.CARE, True)


@pytest.mark.parametrize(
    ("ahead_s", "verdict"),
    [
        (0.9, CheckVerdict.GOOD),
        (-5.0, CheckVerdict.GOOD),
        (5.1, CheckVerdict.CARE),
        (-90.0, CheckVerdict.CARE),
        (None, CheckVerdict.UNKNOWN),
    ],
)
def test_clocks_that_differ_are_told_with_their_side(ahead_s: float | None, verdict: CheckVerdict) -> None:
    found = clock(ahead_s)
    assert found.verdict is verdict
    if verdict is CheckVerdict.CARE:
        assert ("5 s ahead of ours" if ahead_s == 5.1 else "90 s behind ours") in found.said


def test_another_version_is_not_known() -> None:
    assert broker_version("4.2.4").verdict is CheckVerdict.GOOD
    assert broker_version("4.3.0").verdict is CheckVerdict.UNKNOWN


def creates(kind: str) -> dict[str, str]:
    return {"allowAutoTopicCreation": "true", "allowAutoTopicCreationType": kind}


@pytest.mark.parametrize(
    ("settings", "override", "verdict", "said"),
    [
        (
            {"allowAutoTopicCreation": "true", "allowAutoTopicCreationType": "non-partitioned"},
            None,
            "good",
            "by itself.",
        ),
        ({"allowAutoTopicCreation": "true", "allowAutoTopicCreationType": "partitioned"}, None, "take care", "refuses"),
        ({"allowAutoTopicCreation": "false"}, None, "good", "pulsar-admin topics create"),
        ({}, {"allowAutoTopicCreation": True, "topicType": "partitioned"}, "take care", "refuses"),
        (FORBIDDEN, {"allowAutoTopicCreation": True, "topicType": "non-partitioned"}, "good", "by itself."),
        (FORBIDDEN, None, "can't be known", "only for superusers"),
        ({}, FORBIDDEN, "can't be known", "only for superusers"),
    ],
)
def test_whether_a_new_sinks_control_topic_is_made(settings: Any, override: Any, verdict: str, said: str) -> None:
    found = auto_creation(settings, override)
    assert (found.verdict, said in found.said) == (verdict, True), found


@pytest.mark.parametrize(
    ("types", "broker_types", "verdict", "said"),
    [
        ((), ("Exclusive", "Shared"), "good", "public/default allows Exclusive subscriptions"),
        (("Exclusive", "Shared"), FORBIDDEN, "good", "public/default allows Exclusive subscriptions"),
        (("Shared",), FORBIDDEN, "take care", "--types Exclusive,Shared public/default"),
        ((), ("Shared",), "take care", "--config subscriptionTypesEnabled --value Exclusive,Shared"),
        ((), FORBIDDEN, "can't be known", "only for superusers"),
        (FORBIDDEN, ("Exclusive",), "can't be known", "only for superusers"),
    ],
)
def test_whether_brokers_may_read_what_they_recover_topics_from(
    types: Any, broker_types: Any, verdict: str, said: str
) -> None:
    admin = FakeAdmin({}, types=types, broker_types=broker_types)
    found = subscription_types(cast(Admin, admin), "public/default")
    assert (found.verdict, said in found.said) == (verdict, True), found


def test_who_is_no_superuser_is_told_what_cant_be_known() -> None:
    def verdicts(admin: FakeAdmin) -> dict[str, str]:
        found = brokers(cast(Client, FakeClient()), cast(Admin, admin), "public/default")
        return {check.about: check.verdict.value for check in found}

    told = {"numTransactionReplayThreadPoolSize": "1", "allowAutoTopicCreation": "true"}
    assert set(verdicts(FakeAdmin(told)).values()) == {"good"}
    assert verdicts(FakeAdmin(None)) == {
        "Pulsar": "good",
        "recovery of topics": "can't be known",
        "subscription types of public/default": "good",
        "clocks": "good",
        "coordinators": "can't be known",
        "creation of topics": "can't be known",
    }
