"""The topics of a namespace, from the names that a broker lists."""

from __future__ import annotations

from typing import Any

import pytest

from eos.errors import InvalidInput
from eos.inspect.tables import TopicTable, tables
from eos.pulsar.protocol.schemas import Registered

BASE = "persistent://public/default"


class Listing:
    def __init__(self, *names: str) -> None:
        self._names = [f"{BASE}/{name}" for name in names]

    def topics(self, namespace: str) -> list[str]:
        assert namespace == "public/default"
        return self._names

    def schema(self, topic: str) -> Registered | None:
        return Registered(topic, bytes(8), "INT32", b"", {}) if topic.endswith("/c") else None


def test_partitions_are_one_topic_and_hidden_topics_are_left_out() -> None:
    client: Any = Listing("b-partition-1", "c", "b-partition-0", "__eos-sink", "a-partition-x")
    assert tables(client, "public/default") == [
        TopicTable(f"{BASE}/a-partition-x", 0, None),
        TopicTable(f"{BASE}/b", 2, None),
        TopicTable(f"{BASE}/c", 0, "INT32"),
    ]


@pytest.mark.parametrize("name", ["public", "public/default/", "a b/c", "persistent://public/default", ""])
def test_a_malformed_namespace_is_refused_before_anything_is_asked(name: str) -> None:
    client: Any = None
    with pytest.raises(InvalidInput, match="not a namespace: write tenant/namespace"):
        tables(client, name)
