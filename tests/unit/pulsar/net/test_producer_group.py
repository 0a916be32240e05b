"""Questions about many topics, some at a time."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from eos.errors import TopicMissing
from eos.pulsar.net.producer_group import AT_ONCE, known_partition_counts, partition_counts
from tests.waiting import PATIENCE_S


class Brokers:
    """Answers a question once as many are asked at a time as may be."""

    def __init__(self, at_once: int, missing: str | None = None) -> None:
        self.asked: list[str] = []
        self.most = self._now = 0
        self._missing, self._gate, self._lock = missing, threading.Barrier(at_once), threading.Lock()

    def partitions(self, topic: str) -> int:
        with self._lock:
            self.asked.append(topic)
            self._now += 1
            self.most = max(self.most, self._now)
        self._gate.wait(PATIENCE_S)
        with self._lock:
            self._now -= 1
        if topic == self._missing:
            raise TopicMissing(f"{topic} does not exist")
        return int(topic)


def test_topics_are_asked_for_once_each_and_sixteen_at_a_time() -> None:
    brokers: Any = Brokers(AT_ONCE)
    topics = [str(number) for number in range(2 * AT_ONCE)]
    assert partition_counts(brokers, topics) == {topic: int(topic) for topic in topics}
    assert sorted(brokers.asked) == sorted(topics)
    assert brokers.most == AT_ONCE


def test_a_topic_that_is_missing_is_raised_or_left_out() -> None:
    brokers: Any = Brokers(1, missing="3")
    with pytest.raises(TopicMissing, match="3 does not exist"):
        partition_counts(brokers, ["2", "3"])
    assert known_partition_counts(brokers, ["2", "3", "4"]) == {"2": 2, "4": 4}
    assert known_partition_counts(brokers, []) == {}
