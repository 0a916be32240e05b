"""A broker by default removes partitions that nobody uses and that hold nothing. That must not count as a loss."""

from __future__ import annotations

from typing import Any

import pytest

from eos.errors import InvalidInput, TopicMissing
from eos.inspect.rows import TopicRows
from eos.pulsar.net.admin import Admin as AdminApi
from eos.pulsar.net.client import Client
from eos.source.batch_plan import batch_ranges
from eos.source.brokers import PulsarBrokers
from eos.source.offsets import BEGINNING
from eos.source.options import parse_options
from tests.conftest import MakeTopic
from tests.integration.source.conftest import Admin, Run
from tests.integration.source.queries import Query, fail, read
from tests.integration.source.streams import write


@pytest.fixture
def idle(make_topic: MakeTopic, ours: Client, admin: Admin) -> str:
    """A topic of three partitions. The first holds "a", and the others are gone."""
    topic = make_topic("idle", 3)
    write(ours, f"{topic}-partition-0", "a")
    for number in (1, 2):
        remove(f"{topic}-partition-{number}", admin)
    return topic


def remove(partition: str, admin: Admin) -> None:
    """Delete a partition as the broker does."""
    admin("DELETE", partition, "?force=true")


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_new_query_has_partitions_made_again_and_keeps_what_is_written_there(
    run: Run, ours: Client, idle: str, pulsar: Any, start: str
) -> None:
    query = run(topic=idle, startingOffsets=start)
    first = query.begins()
    query.brokers.close()
    partitions = [f"{idle}-partition-{number}" for number in range(3)]
    assert sorted(first.topics) == partitions
    with AdminApi(pulsar.admin_url) as asked:
        assert all("job" in asked.subscriptions(partition) for partition in partitions)
    write(ours, partitions[1], "b")
    assert run(topic=idle).behind(first) == (["a", "b"] if start == "earliest" else ["b"])


def test_a_partition_that_is_removed_between_two_runs_is_no_loss_while_nothing_of_it_was_read(
    run: Run, ours: Client, make_topic: MakeTopic, admin: Admin
) -> None:
    topic = make_topic("between", 2)
    query = run(topic=topic, startingOffsets="earliest")
    start = query.begins()
    query.brokers.close()
    write(ours, f"{topic}-partition-0", "a")
    remove(f"{topic}-partition-1", admin)
    query = run(topic=topic)
    end = query.latest(start)
    assert query.read(start, end) == ["a"]
    assert end.topics[f"{topic}-partition-1"] == BEGINNING
    assert "The query has read nothing of it yet" in query.told[0]
    query.brokers.close()
    write(ours, f"{topic}-partition-1", "b")
    query = run(topic=topic)
    done = query.latest(end)
    assert query.read(end, done) == ["b"]
    remove(f"{topic}-partition-1", admin)
    with pytest.raises(InvalidInput, match=f"the topic {topic}-partition-1 is gone"):
        run(topic=topic).latest(done)


@pytest.mark.parametrize("boundary", [{}, {"startingTime": "0"}, {"startingOffsets": "latest"}], ids=str)
def test_a_table_takes_a_partition_that_is_missing_for_an_empty_one(
    pulsar: Any, idle: str, boundary: dict[str, str]
) -> None:
    def table(topic: str) -> list[str]:
        options = parse_options({"service.url": pulsar.service_url, "topic": topic, **boundary}, "batch")
        brokers = PulsarBrokers(options)
        return read(brokers, batch_ranges(brokers, options.start, options.end))

    assert table(idle) == ([] if "startingOffsets" in boundary else ["a"])
    assert table(f"{idle}-partition-2") == []
    with pytest.raises(TopicMissing):
        table(f"{idle}-partition-3")


def test_rows_are_shown_where_partitions_are_missing(ours: Client, idle: str) -> None:
    rows = TopicRows(ours.cluster, idle, "earliest", fail)
    assert [row.value for row in rows.stored()] == [b"a"]
    coming = rows.coming()
    assert next(coming).value == b"a"
    write(ours, f"{idle}-partition-2", "b")
    assert next(coming).value == b"b"


def test_a_partition_that_is_missing_at_a_trigger_is_read_when_it_is_there_again(
    run: Run, ours: Client, idle: str
) -> None:
    query: Query = run(topicsPattern=idle, startingOffsets="latest")
    start = query.begins()
    query.plan.stop_at_what_is_there()
    write(ours, f"{idle}-partition-0", "later")
    assert query.latest(start).topics == start.topics
    assert query.plan.newest().topics.keys() == {f"{idle}-partition-0"}


def test_a_topic_of_a_pattern_whose_partitions_are_all_removed_is_no_loss(
    run: Run, ours: Client, make_topic: MakeTopic, admin: Admin
) -> None:
    topic = make_topic("unlisted", 1)
    pattern = f"{topic}.*"
    query = run(topicsPattern=pattern, startingOffsets="earliest")
    start = query.begins()
    query.brokers.close()
    remove(f"{topic}-partition-0", admin)
    query = run(topicsPattern=pattern)
    end = query.latest(start)
    assert end.topics == {f"{topic}-partition-0": BEGINNING}
    write(ours, f"{topic}-partition-0", "a")
    assert query.behind(end) == ["a"]
    with pytest.raises(InvalidInput, match=f"no longer select the topic {topic}-partition-0"):
        run(topic=make_topic("other")).latest(end)
