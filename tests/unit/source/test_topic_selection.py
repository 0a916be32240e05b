"""A pattern reads what brokers load, and a leftover that they refuse blocks nothing."""

from __future__ import annotations

import pytest

from eos.errors import LimitReached, Refused, RefusedForGood, TopicMissing
from tests.unit.source.memory_cluster import Job, MemoryCluster, StoredTopic

BASE = "persistent://public/default"
ODD = f"{BASE}/days-partition-3"


LEFTOVER = RefusedForGood("subscribe", "NotAllowedError", "Partition metadata not found")
NO_RIGHT = RefusedForGood("subscribe", "AuthorizationError", "Client is not authorized to subscribe")
FORBIDDEN = RefusedForGood("subscribe", "NotAllowedError", "Subscription with sub type Exclusive is not allowed")


def job(*, with_whole: bool) -> Job:
    cluster = MemoryCluster(a=StoredTopic({5: 3}), **{"days-partition-3": StoredTopic({9: 5})})
    if with_whole:
        cluster.held[f"{BASE}/days"] = StoredTopic({7: 1})
    return Job(cluster, {"topicsPattern": f"{BASE}/.*", "startingOffsets": "earliest"})


@pytest.mark.parametrize("with_whole", [True, False])
def test_a_topic_that_has_the_name_of_a_partition_is_read(with_whole: bool) -> None:
    new = job(with_whole=with_whole)
    rows = new.start().drain()
    assert {row.split("@")[0] for row in rows} == {"a", "days-partition-3"} | ({"days"} if with_whole else set())
    assert len(rows) == 8 + with_whole
    new.cluster.topic(ODD).write(9, 2)
    assert new.drain() == [f"days-partition-3@9:{entry}" for entry in (5, 6)]


@pytest.mark.parametrize("with_whole", [True, False])
def test_one_that_brokers_refuse_to_load_is_left_out_with_one_warning(
    with_whole: bool, caplog: pytest.LogCaptureFixture
) -> None:
    new = job(with_whole=with_whole)
    new.cluster.fails = {f"load {ODD}": [LEFTOVER]}
    assert len(new.start().drain()) == 3 + with_whole
    new.cluster.topic(f"{BASE}/a").write(5, 1)
    assert new.drain() == ["a@5:3"]
    (told,) = caplog.messages
    assert f"The pattern selects {ODD}" in told
    assert "Partition metadata not found. Its messages are not read. Delete it" in told


OTHERS = [Refused("load", "MetadataError", "bookies"), LimitReached("load", "Busy", "many"), NO_RIGHT, FORBIDDEN]


@pytest.mark.parametrize("error", OTHERS)
def test_any_other_refusal_leaves_nothing_out(error: Refused) -> None:
    new = job(with_whole=False)
    new.cluster.fails = {f"load {ODD}": [error]}
    with pytest.raises(Refused):
        new.start().drain()
    assert len(new.start().drain()) == 8


@pytest.mark.parametrize("fail", ["true", "false"])
@pytest.mark.parametrize("error", [LEFTOVER, NO_RIGHT, FORBIDDEN])
def test_one_that_the_query_has_read_is_not_left_out_where_brokers_refuse_it(error: Refused, fail: str) -> None:
    """It would be a loss, or with failOnDataLoss=false be read again from its beginning later."""
    new = job(with_whole=False)
    new.options["failOnDataLoss"] = fail
    assert len(new.start().drain()) == 8
    new.cluster.topic(ODD).write(9, 2)
    new.cluster.fails = {f"load {ODD}": [error], f"last of {ODD}": [error]}
    with pytest.raises(RefusedForGood, match=error.detail):
        new.start().drain()
    new.cluster.fails = {}
    assert new.start().drain() == [f"days-partition-3@9:{entry}" for entry in (5, 6)]
    assert new.told == []


def test_one_that_is_deleted_just_then_is_left_out_and_looked_for_again() -> None:
    new = job(with_whole=False)
    new.cluster.fails = {f"load {ODD}": [TopicMissing(ODD)]}
    assert len(new.start().trigger()) == 3
    assert len(new.drain()) == 5


@pytest.mark.parametrize("namespace", ["public/__kafka", "__tenant/events"])
def test_a_pattern_reads_a_namespace_or_a_tenant_whose_name_begins_with_underscores(namespace: str) -> None:
    cluster = MemoryCluster()
    for name in ("orders", "__change_events"):
        cluster.held[f"persistent://{namespace}/{name}"] = StoredTopic({5: 1})
    new = Job(cluster, {"topicsPattern": f"persistent://{namespace}/.*", "startingOffsets": "earliest"})
    assert new.start().drain() == ["orders@5:0"]


@pytest.mark.parametrize(
    ("pattern", "selected"),
    [
        ("a|b", ["a", "b"]),
        (f"{BASE}/a|ab|b", ["a", "ab", "b"]),
        ("public/default/(?i)A|B", ["a", "b"]),
        ("a", ["a"]),
        ("[ab]+", ["a", "ab", "b"]),
    ],
)
def test_an_alternative_of_a_pattern_is_one_of_the_names_of_topics(pattern: str, selected: list[str]) -> None:
    cluster = MemoryCluster(a=StoredTopic({5: 1}), ab=StoredTopic({6: 1}), b=StoredTopic({7: 1}))
    new = Job(cluster, {"topicsPattern": pattern, "startingOffsets": "earliest"})
    assert sorted(row.split("@")[0] for row in new.start().drain()) == selected


def test_a_pattern_that_selects_nothing_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    new = Job(MemoryCluster(), {"topicsPattern": "orders-*", "startingOffsets": "earliest"}).start()
    assert new.drain() == []
    assert caplog.messages == [
        "topicsPattern='persistent://public/default/orders-*' selects no topic now, so nothing is read. After the "
        'namespace it is a regular expression for the whole name of a topic, without "-partition-N". A stream reads a '
        "topic that the pattern selects when it is there."
    ]
    new.cluster.held[f"{BASE}/orders--"] = StoredTopic({5: 1})
    assert new.drain() == ["orders--@5:0"]
    assert len(caplog.messages) == 1
