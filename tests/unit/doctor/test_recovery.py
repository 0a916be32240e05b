"""What is said of a broker that recovers topics side by side, and what can't be known of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from eos.doctor.recovery import danger
from eos.errors import Refused
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


def said(admin: FakeAdmin) -> str | None:
    return danger(cast(Admin, admin))


@pytest.mark.parametrize("version", ["4.2.4", "4.2.4-SNAPSHOT", "4.0.9"])
def test_more_than_one_thread_is_told_with_the_setting_to_change(version: str) -> None:
    told = said(FakeAdmin("16", version))
    assert told is not None
    assert "16 threads" in told
    assert "numTransactionReplayThreadPoolSize=1" in told
    assert version in told


@pytest.mark.parametrize(
    "admin",
    [
        FakeAdmin("1"),
        FakeAdmin(None),
        FakeAdmin("many"),
        FakeAdmin("16", "4.2.5"),
        FakeAdmin("16", "5.0.0"),
        FakeAdmin("16", refuses=True),
    ],
)
def test_nothing_is_said_where_it_is_well_or_not_known(admin: Any) -> None:
    assert said(admin) is None
