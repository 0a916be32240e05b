"""Topics are made of the names of partitions, and some names only look like those."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from eos.errors import Refused, RefusedForGood, TopicMissing
from eos.pulsar.net.topic_list import AT_ONCE, namespace_topics, topic_names

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


def is_taken(topic: str) -> bool:
    return "__" not in topic


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
    assert namespace_topics(client, "public/default", is_taken) == expected
    assert topic_names(client, "public/default", is_taken) == list(expected)


def test_topics_without_partitions_are_not_asked_about() -> None:
    client: Any = Listing(("a", "b", "__c-partition-0"))
    namespace_topics(client, "public/default", is_taken)
    assert client.asked == 0


@pytest.mark.parametrize("error", [RefusedForGood("ask", "AuthorizationError", "no right"), Refused("ask", "?", "no")])
@pytest.mark.parametrize("refused", ["a", "b", "b-partition-3"])
def test_a_refusal_for_one_topic_does_not_keep_the_names_of_the_others_back(refused: str, error: Refused) -> None:
    class Refusing(Listing):
        def partitions(self, topic: str) -> int:
            if topic == f"{BASE}/{refused}":
                raise error
            return super().partitions(topic)

    client: Any = Refusing(("a-partition-0", "b-partition-3", "c"), a=1, b_partition_3=0)
    own = "b" if refused == "b" else "b-partition-3"
    assert topic_names(client, "public/default", is_taken) == [f"{BASE}/{name}" for name in ("a", own, "c")]
    with pytest.raises(Refused):  # who needs the number can't do without
        namespace_topics(client, "public/default", is_taken)


@pytest.mark.parametrize("partitioned", [True, False])
def test_topics_are_asked_about_side_by_side(*, partitioned: bool) -> None:
    together = threading.Barrier(2)  # a pool of threads need not have all of them at work at once

    class Slow(Listing):
        def partitions(self, topic: str) -> int:
            if partitioned or "-partition-" in topic:
                together.wait(60)
            return super().partitions(topic)

    names = [f"t{number}" for number in range(AT_ONCE)]
    numbers = dict.fromkeys(names, 1) if partitioned else {f"{name}_partition_0": 0 for name in names}
    client: Any = Slow(tuple(f"{name}-partition-0" for name in names), **numbers)
    assert len(namespace_topics(client, "public/default", is_taken)) == AT_ONCE
