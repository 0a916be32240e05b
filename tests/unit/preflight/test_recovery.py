"""What is said of a broker that recovers topics side by side, and of one that does not tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from eos.errors import Refused
from eos.preflight.recovery import Danger, danger
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


@pytest.mark.parametrize("version", ["4.2.4", "4.2.4-SNAPSHOT", "4.0.9"])
def test_more_than_one_thread_is_told_with_the_setting_to_change(version: str) -> None:
    told = said(FakeAdmin("16", version))
    assert told is not None
    assert told.certain
    for word in ("16 threads", "numTransactionReplayThreadPoolSize=1", version):
        assert word in told.text


@pytest.mark.parametrize(
    "admin",
    [
        FakeAdmin("1"),
        FakeAdmin(None),
        FakeAdmin("many"),
        FakeAdmin("16", "4.2.5"),
        FakeAdmin("16", "5.0.0"),
    ],
)
def test_nothing_is_said_where_it_is_well_or_of_a_version_not_looked_at(admin: Any) -> None:
    assert said(admin) is None


def test_a_broker_that_tells_no_settings_is_not_taken_for_a_safe_one() -> None:
    told = said(FakeAdmin("1", refuses=True))
    assert told is not None
    assert not told.certain
    assert "can't be known" in told.text
    assert "only for superusers" in told.text
