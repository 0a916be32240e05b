"""A checkpoint of another sink: what can't be asked hides nothing else that counts."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from eos.errors import NetworkError, Refused, TopicMissing, Unreachable
from eos.inspect.adoption import adoption

TOPIC = "persistent://public/default/rows"


def verdicts(producers: Callable[[str], tuple[str, ...]]) -> dict[str, tuple[str, str]]:
    def partitions(topic: str) -> int:
        if topic != TOPIC:
            raise TopicMissing(topic)
        return 0

    client: Any = SimpleNamespace(cluster=None, partitions=partitions, schema=lambda _: None, coordinators=lambda: 1)
    admin: Any = SimpleNamespace(producers=producers)
    checkpoint: Any = SimpleNamespace(
        registered=None, unlogged=None, begun=3, committed=3, next_batch=4, query_id="query"
    )
    found = adoption(client, admin, checkpoint, TOPIC, "rows")
    return {one.about: (str(one.verdict), one.said) for one in found.findings}


@pytest.mark.parametrize("error", [Refused("GET", "403", "no permission"), Unreachable("connection refused")])
def test_who_writes_may_not_be_told(error: NetworkError) -> None:
    def refused(topic: str) -> tuple[str, ...]:
        raise error

    found = verdicts(refused)
    assert found["producers"][0] == "can't be known"
    assert f"The producers of the topic are not told: {error}" in found["producers"][1]
    assert found["last batch"][0] == "good"


def test_who_writes_is_told() -> None:
    assert verdicts(lambda topic: ())["producers"][0] == "good"
    assert verdicts(lambda topic: ("a (10.0.0.1)",))["producers"][0] == "take care"
