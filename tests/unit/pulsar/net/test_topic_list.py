"""Topics are made of the names of partitions, and some names only look like those."""

from __future__ import annotations

from typing import Any

import pytest

from eos.errors import TopicMissing
from eos.pulsar.net.topic_list import namespace_topics

BASE = "persistent://public/default"


class Listing:
    """A namespace whose topics have these numbers of partitions; any other is gone by the time it is asked for."""

    def __init__(self, listed: tuple[str, ...], **partitions: int) -> None:
        self.listed, self.number, self.asked = listed, partitions, 0

    def topics(self, namespace: str) -> list[str]:
        return [f"{BASE}/{name}" for name in self.listed]

    def partitions(self, topic: str) -> int:
        self.asked += 1
        name = topic.removeprefix(f"{BASE}/").replace("-", "_")
        if name not in self.number:
            raise TopicMissing(topic)
        return self.number[name]


@pytest.mark.parametrize(
    ("listed", "partitions", "found"),
    [
        (("t-partition-0", "t-partition-1"), {"t": 4}, {"t": 4}),
        (("t-partition-3",), {"t_partition_3": 0}, {"t-partition-3": 0}),
        (("t", "t-partition-3"), {"t": 0, "t_partition_3": 0}, {"t": 0, "t-partition-3": 0}),
        (("t-partition-3",), {}, {}),
        (("t", "t-partition-x", "__t-partition-0"), {}, {"t": 0, "t-partition-x": 0}),
    ],
)
def test_a_topic_of_its_own_may_have_the_name_of_a_partition(
    listed: tuple[str, ...], partitions: dict[str, int], found: dict[str, int]
) -> None:
    client: Any = Listing(listed, **partitions)
    expected = {f"{BASE}/{name}": number for name, number in found.items()}
    assert namespace_topics(client, "public/default", lambda topic: "__" not in topic) == expected


def test_topics_without_partitions_are_not_asked_about() -> None:
    client: Any = Listing(("a", "b", "__c-partition-0"))
    namespace_topics(client, "public/default", lambda topic: "__" not in topic)
    assert client.asked == 0
