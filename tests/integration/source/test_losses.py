"""Deletions of others are missed, by name. Nothing is skipped in silence."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest

from eos.errors import InvalidInput
from eos.pulsar.net.admin import Admin as AdminApi
from eos.pulsar.net.client import Client
from eos.pulsar.net.entries import EntryReader
from eos.pulsar.wire.message_id import EntryId
from eos.source.batch_plan import batch_ranges
from eos.source.boundaries import Boundary
from eos.source.offsets import Offsets
from eos.source.range_reader import read_range
from tests.integration.source.conftest import Admin, Run
from tests.integration.source.queries import Query, read
from tests.integration.source.streams import write
from tests.waiting import until

Kept = Callable[[], set[int]]


@pytest.fixture
def topic(pulsar: Any) -> str:
    """A topic that keeps only what a subscription still needs, as Pulsar does by default."""
    namespace = f"public/loss-{uuid.uuid4().hex[:10]}"
    nothing = {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}
    for method, path, body in (
        ("PUT", f"namespaces/{namespace}", {"replication_clusters": ["standalone"]}),
        ("POST", f"namespaces/{namespace}/retention", nothing),
        ("PUT", f"persistent/{namespace}/rows", None),
    ):
        httpx.request(method, f"{pulsar.admin_url}/admin/v2/{path}", json=body, timeout=30).raise_for_status()
    return f"persistent://{namespace}/rows"


@pytest.fixture
def kept(pulsar: Any, topic: str) -> Iterator[Kept]:
    """Ask which ledgers the broker keeps of the topic. A reader that gets nothing may only be waiting."""
    with AdminApi(pulsar.admin_url) as asked:
        yield lambda: {ledger.id for ledger in asked.ledgers(topic)}


def delete(
    ledger: int, topic: str, admin: Admin, kept: Kept, method: str = "POST", command: str = "subscription/job/skip_all"
) -> None:
    """Let go of what a ledger holds, until the broker has deleted it."""

    def gone() -> bool:
        with suppress(httpx.HTTPStatusError):  # expiring is refused while it is under way
            admin(method, topic, command)
        admin("PUT", topic, "unload")
        admin("POST", topic, "trim")
        return ledger not in kept()

    until(gone, "the ledger was not deleted", pause_s=0.3)


@pytest.fixture
def done(run: Run, ours: Client, topic: str) -> Offsets:
    """Where a query stands that has read "a" and "b"."""
    query = run(topic=topic, startingOffsets="earliest")
    start = query.begins()
    write(ours, topic, "a", "b")
    end = query.latest(start)
    assert query.read(start, end) == ["a", "b"]
    assert query.latest(end) == end
    query.brokers.close()
    return end


def careless(run: Run, topic: str) -> Query:
    return run(topic=topic, failOnDataLoss="false")


def told(query: Query) -> str:
    return "\n".join(query.told)


@pytest.mark.parametrize(
    ("method", "command"),
    [
        ("POST", "subscription/job/skip_all"),
        ("POST", "subscription/job/expireMessages/1"),
        ("DELETE", "truncate"),
    ],
)
def test_what_others_skip_expire_or_truncate_is_a_loss_between_two_named_entries(
    run: Run, ours: Client, topic: str, done: Offsets, admin: Admin, kept: Kept, method: str, command: str
) -> None:
    (lost,) = write(ours, topic, "lost")

    delete(lost.ledger, topic, admin, kept, method, command)
    (left,) = write(ours, topic, "left")
    read = done.topics[topic].entry
    words = f"data of {topic} was lost: .*read up to {read},.*begins with {left}.*after {read} and before {left}"
    with pytest.raises(InvalidInput, match=words):
        run(topic=topic).behind(done)
    query = careless(run, topic)
    assert query.behind(done) == ["left"]
    assert f"begins with {left}" in told(query)


def test_a_table_says_that_the_entry_where_it_was_to_begin_is_no_longer_stored(
    run: Run, ours: Client, topic: str, admin: Admin, kept: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    ours.subscription(topic, "job", initial="earliest").close()
    _, second = write(ours, topic, "a", "b")
    brokers = run(topic=topic).brokers

    def table() -> list[str]:
        begin = Boundary("entries", entries={topic: second})
        return read(brokers, batch_ranges(brokers, begin, Boundary("latest")))

    assert table() == ["b"]
    assert not caplog.messages
    delete(second.ledger, topic, admin, kept)
    write(ours, topic, "c")
    assert table() == ["c"]
    assert f"startingOffsets begins at {second} on {topic}, which is no longer stored" in caplog.text


def test_what_came_before_its_ledger_was_deleted_is_no_loss(
    run: Run, ours: Client, topic: str, done: Offsets, admin: Admin, kept: Kept
) -> None:
    write(ours, topic, "c")
    admin("PUT", topic, "unload")
    write(ours, topic, "d")
    query = run(topic=topic)
    (part,) = query.plan.ranges(done, query.latest(done))
    groups = read_range(part, query.brokers.open, query.lose)
    assert len(next(groups)) == 2
    delete(done.topics[topic].entry.ledger, topic, admin, kept)
    assert list(groups) == []


def test_a_ledger_that_is_deleted_while_a_range_is_read_is_a_loss(
    run: Run, ours: Client, topic: str, done: Offsets, admin: Admin, kept: Kept
) -> None:
    """The reader has permits for one message, so the rest is still at the broker when its ledger goes."""
    write(ours, topic, "c")
    admin("PUT", topic, "unload")
    write(ours, topic, "d")
    query = run(topic=topic)
    (part,) = query.plan.ranges(done, query.latest(done))

    def one_by_one(topic: str, start: EntryId | None, permits: int | None, *, stored: bool = False) -> EntryReader:
        return query.brokers.open(topic, start, 1, stored=stored)

    delete(done.topics[topic].entry.ledger, topic, admin, kept)
    with pytest.raises(InvalidInput, match=f"data of {topic} was lost"):
        list(read_range(part, one_by_one, query.lose))


def test_a_subscription_that_others_move_is_no_loss_while_the_data_is_there(
    run: Run, ours: Client, topic: str, done: Offsets, admin: Admin
) -> None:
    write(ours, topic, "c")
    admin("POST", topic, "subscription/job/skip_all")
    assert run(topic=topic).behind(done) == ["c"]


def test_a_trim_right_after_our_acknowledgement_is_no_loss(
    run: Run, ours: Client, topic: str, admin: Admin, kept: Kept
) -> None:
    """The end of the batch before is kept, as the proof, and so is all that the next batch reads, also again."""
    query = run(topic=topic, startingOffsets="earliest")
    position, ledgers = query.begins(), set[int]()
    for value in ("a", "b", "c"):
        (place,) = write(ours, topic, f"{value}1", value)[:1]
        ledgers.add(place.ledger)
        until_here = query.latest(position)
        admin("PUT", topic, "unload")
        admin("POST", topic, "trim")
        assert query.read(position, until_here) == [f"{value}1", value]
        assert run(topic=topic).read(position, until_here) == [f"{value}1", value]
        position = until_here

    def only_the_proof_is_left() -> bool:
        admin("POST", topic, "trim")
        return kept() & ledgers == {position.topics[topic].entry.ledger}

    assert query.latest(position) == position
    until(only_the_proof_is_left, "what was read was not deleted", pause_s=0.3)
    write(ours, topic, "d")
    assert run(topic=topic).behind(position) == ["d"]
    assert told(query) == ""


def test_a_topic_that_was_made_again_is_another_topic(
    run: Run, ours: Client, topic: str, done: Offsets, admin: Admin
) -> None:
    read = done.topics[topic].entry
    admin("DELETE", topic, "?force=true")
    with pytest.raises(InvalidInput, match=f"the topic {topic} is gone. The query had read it up to {read}"):
        run(topic=topic).behind(done)
    query = careless(run, topic)
    assert query.latest(done) == Offsets({})
    assert "is gone" in told(query)
    admin("PUT", topic)
    with pytest.raises(
        InvalidInput, match=f"has read up to {read}, but the topic now holds no message at all.*made again"
    ):
        run(topic=topic).behind(done)
    write(ours, topic, "new")
    with pytest.raises(InvalidInput, match=f"data of {topic} was lost"):
        run(topic=topic).behind(done)
    assert careless(run, topic).behind(done) == ["new"]


def test_a_first_batch_that_was_skipped_is_read_again_while_it_is_stored_and_is_a_loss_after_that(
    run: Run, ours: Client, topic: str, admin: Admin, kept: Kept
) -> None:
    query = run(topic=topic, startingOffsets="earliest")
    write(ours, topic, "a", "b")
    logged = query.latest(query.plan.first())
    query.brokers.close()
    write(ours, topic, "c")
    admin("POST", topic, "subscription/job/skip_all")
    again = run(topic=topic, startingOffsets="earliest")
    assert again.read(again.plan.first(), logged) == ["a", "b"]
    delete(logged.topics[topic].entry.ledger, topic, admin, kept)
    again = run(topic=topic, startingOffsets="earliest")
    with pytest.raises(InvalidInput, match=f"data of {topic} was lost"):
        again.read(again.plan.first(), logged)
