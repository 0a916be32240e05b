"""Which subscriptions are left behind by reads."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from eos.doctor.leftovers import Leftover, remove_leftovers
from eos.errors import Refused, TopicMissing

HEX = "0123456789abcdef" * 2
USED, FREE = f"spark-batch-app-1-0042-{HEX}-7", f"spark-batch-app-1-0042-{HEX}-8"


@dataclass
class Topic:
    names: tuple[str, ...]
    refusals: dict[str, Refused | TopicMissing] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)

    def subscriptions(self, topic: str) -> tuple[str, ...]:
        if topic == "removed":
            raise TopicMissing(topic)
        return self.names

    def unsubscribe(self, topic: str, subscription: str) -> None:
        if subscription in self.refusals:
            raise self.refusals[subscription]
        self.deleted.append(subscription)


@pytest.mark.parametrize("name", [USED, f"spark-batch-{HEX}-0", f"role-{USED}", f"spark-batch-spark-{HEX}-{HEX}-12"])
def test_a_subscription_of_one_read_is_removed(name: str) -> None:
    assert list(remove_leftovers(Topic((name,)), ["t"])) == [Leftover("t", name)]


@pytest.mark.parametrize(
    "name",
    [
        *("job", f"spark-{HEX}-7", f"spark-batch-{HEX}", f"spark-batch-{HEX}-", f"spark-batch-{HEX}-7a", "__eos-hold"),
        *(f"spark-batch-{HEX}0-7", f"spark-batch-{HEX[:-1]}-7", f"my{USED}", f"spark-place-{HEX}", f"{USED}-eos"),
        *(f"spark-batch-app{HEX}-7", f"spark-batch-app.1-{HEX}-7", "spark-batch-0a1b2c3d"),
    ],
)
def test_any_other_is_left_alone(name: str) -> None:
    topic = Topic((name,))
    assert list(remove_leftovers(topic, ["t"])) == []
    assert topic.deleted == []


def test_one_that_a_read_uses_is_left_alone_and_the_next_is_looked_at() -> None:
    topic = Topic((USED, FREE), {USED: Refused("delete", "412", "Subscription has active connected consumers")})
    assert list(remove_leftovers(topic, ["t"])) == [Leftover("t", FREE)]


def test_a_role_that_may_not_is_told() -> None:
    with pytest.raises(Refused, match="403"):
        list(remove_leftovers(Topic((USED,), {USED: Refused("delete", "403", "no")}), ["t"]))


def test_what_is_removed_by_now_holds_up_nothing() -> None:
    """A partition that the broker removed, and a subscription that another command has deleted."""
    topic = Topic((USED, FREE), {USED: TopicMissing("Subscription not found")})
    assert list(remove_leftovers(topic, ["removed", "t"])) == [Leftover("t", FREE)]
