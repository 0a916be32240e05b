"""Names of topics, in any tenant and namespace."""

from __future__ import annotations

import pytest

from eos.pulsar.protocol.topics import is_hidden


@pytest.mark.parametrize("tenant", ["public", "__tenant"])
@pytest.mark.parametrize("namespace", ["default", "__kafka"])
@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("__eos-sink", True),
        ("__change_events-partition-0", True),
        ("orders", False),
        ("_orders", False),
        ("a__b", False),
    ],
)
def test_a_topic_is_hidden_by_its_own_name_alone(name: str, namespace: str, tenant: str, *, hidden: bool) -> None:
    assert is_hidden(f"persistent://{tenant}/{namespace}/{name}") == hidden
