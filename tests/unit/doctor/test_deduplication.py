from __future__ import annotations

from typing import Any

import pytest

from eos.doctor.deduplication import check_deduplication
from eos.errors import InvalidInput

TOPIC = "persistent://acme/live/t"


class FakeAdmin:
    def __init__(self, **status: str) -> None:
        self.status = status

    def deduplication(self, topic: str) -> str:
        return self.status[topic[-1]]


@pytest.mark.parametrize("status", ["Disabled", "Recovering", "Removing", "Failed", "None"])
def test_a_partition_whose_duplicates_are_not_dropped_is_refused_with_what_helps(status: str) -> None:
    admin: Any = FakeAdmin(**{"0": "Enabled", "1": status})
    check_deduplication(admin, [f"{TOPIC}-partition-0"])
    with pytest.raises(InvalidInput) as caught:
        check_deduplication(admin, [f"{TOPIC}-partition-{part}" for part in range(2)])
    assert f"on {TOPIC}-partition-1 it is {status}." in str(caught.value)
    assert f"topicPolicies set-deduplication --enable {TOPIC};" in str(caught.value)
    assert "namespaces set-deduplication --enable acme/live;" in str(caught.value)
