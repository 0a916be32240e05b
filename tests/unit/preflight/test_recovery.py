"""What is said of a broker that recovers topics side by side, that cannot recover them, or that does not tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pytest

from eos.errors import Refused
from eos.preflight.recovery import Danger, danger, unreadable_snapshots
from eos.pulsar.net.admin import Admin


@dataclass
class FakeAdmin:
    """Answers as a broker of this version with these threads; `refuses` its settings."""

    threads: str | None
    told: str = "4.2.4"
    refuses: bool = False

    def version(self) -> str:
        return self.told

    def setting(self, name: str) -> str | None:
        if self.refuses:
            raise Refused("GET", "403", "only for superusers")
        assert name == "numTransactionReplayThreadPoolSize"
        return self.threads


def said(admin: FakeAdmin) -> Danger | None:
    return danger(cast(Admin, admin))


@pytest.mark.parametrize("version", ["4.2.4", "4.2.4-SNAPSHOT", "4.0.9", "5.0.0-M1"])
def test_more_than_one_thread_is_told_with_the_setting_to_change(version: str) -> None:
    told = said(FakeAdmin("16", version))
    assert told is not None
    assert told.certain
    for word in ("16 threads", "numTransactionReplayThreadPoolSize=1", version):
        assert word in told.text


@pytest.mark.parametrize("version", ["4.2.4", "4.0.0", "4.2.5", "5.0.0-M1", "5.0.0", "6.1.0"])
def test_one_thread_has_nobody_to_race_with_in_every_version(version: str) -> None:
    assert said(FakeAdmin("1", version)) is None


@pytest.mark.parametrize(
    ("admin", "why"),
    [
        (FakeAdmin(None), "Pulsar 4.2.4 has no setting"),
        (FakeAdmin(None, "5.0.0-M1"), "Pulsar 5.0.0-M1 has no setting"),
        (FakeAdmin("many"), '="many"'),
        (FakeAdmin("0"), '="0"'),
        (FakeAdmin("16", "4.2.5"), "no test looked at Pulsar 4.2.5"),
        (FakeAdmin("16", "5.0.0"), "no test looked at Pulsar 5.0.0"),
        (FakeAdmin("16", "5.0.0-M2"), "4.2.4, 5.0.0-M1 do so"),
    ],
)
def test_no_version_is_safe_because_nobody_has_looked_at_it(admin: FakeAdmin, why: str) -> None:
    told = said(admin)
    assert told is not None
    assert not told.certain
    for words in ("can't be known", why, "numTransactionReplayThreadPoolSize"):
        assert words in told.text


def test_a_broker_that_tells_no_settings_is_not_taken_for_a_safe_one() -> None:
    told = said(FakeAdmin("1", refuses=True))
    assert told is not None
    assert not told.certain
    assert "can't be known" in told.text
    assert "only for superusers" in told.text


@pytest.mark.parametrize("types", [("Exclusive",), ("Exclusive", "Shared")])
def test_a_namespace_that_lets_brokers_read_its_snapshots_is_fine(types: tuple[str, ...]) -> None:
    """Whatever its brokers are set to."""
    assert unreadable_snapshots(cast(Admin, Namespace(types)), "public/x") is None


@pytest.mark.parametrize("brokers", [(), ("Exclusive",), ("Exclusive", "Shared")])
def test_brokers_that_let_themselves_read_snapshots_are_fine(brokers: tuple[str, ...]) -> None:
    assert unreadable_snapshots(cast(Admin, Namespace((), brokers)), "public/x") is None


def test_brokers_that_keep_themselves_from_snapshots_are_told_with_the_command() -> None:
    told = unreadable_snapshots(cast(Admin, Namespace((), ("Failover", "Shared"))), "public/x")
    assert told is not None
    assert told.startswith(
        "The brokers allow only subscriptions of the type Failover or Shared (subscriptionTypesEnabled)"
    )
    assert "update-dynamic-config --config subscriptionTypesEnabled --value Exclusive,Failover,Shared. " in told


def test_a_namespace_that_keeps_brokers_from_its_snapshots_is_told_with_the_command() -> None:
    told = unreadable_snapshots(cast(Admin, Namespace(("Failover", "Key_Shared"))), "public/x")
    assert told is not None
    for words in ("the type Failover or Key_Shared.", "--types Exclusive,Failover,Key_Shared public/x"):
        assert words in told


@dataclass
class Namespace:
    """A namespace that allows these types of subscriptions."""

    types: tuple[str, ...]
    brokers: tuple[str, ...] = ("Failover",)

    def subscription_types(self, namespace: str) -> tuple[str, ...]:
        assert namespace == "public/x"
        return self.types

    def broker_subscription_types(self) -> tuple[str, ...]:
        return self.brokers
