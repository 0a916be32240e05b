"""What a query releases: all that it has read, but no chunk of a message that is not complete where it stands."""

from __future__ import annotations

import pytest

from eos.errors import InvalidInput
from eos.pulsar.wire.message_id import EntryId
from eos.source import unfinished_chunks
from eos.source.unfinished_chunks import NOTHING, Unfinished
from tests.unit.source.fake_brokers import at
from tests.unit.source.memory_cluster import Job, MemoryCluster, StoredTopic
from tests.unit.source.test_chunked_messages import Reader, Silent, Topic, entry


def test_within_one_ledger_nothing_is_read() -> None:
    topic = Topic([entry("5:0", "m", 0, 3), entry("5:1")])
    assert Unfinished("t", topic.open, within=5).bound(at("5:1")) == at("5:0")
    assert topic.opened == []


def test_the_first_chunk_stays_until_the_last_one_was_read() -> None:
    topic = Topic(
        [entry("5:0"), entry("5:1", "m", 0, 3), entry("5:2"), entry("7:0"), entry("7:1", "m", 1, 3), entry("7:2")]
    )
    found = Unfinished("t", topic.open, within=5)
    assert found.bound(at("5:2")) == at("5:1"), "its ledger stays"
    assert found.bound(at("7:1")) == at("5:0")
    assert found.bound(at("7:2")) == at("5:0")
    topic.entries += [entry("7:3", "m", 2, 3), entry("7:4")]
    assert found.bound(at("7:4")) == at("7:3")
    opened = len(topic.opened)
    assert found.bound(at("7:4")) == at("7:3")
    assert len(topic.opened) == opened, "nothing is left to wait for"


@pytest.mark.parametrize("other", ["b", "a@west"])
def test_messages_between_one_another_are_kept_from_the_first_that_is_not_complete(other: str) -> None:
    topic = Topic(
        [
            entry("5:0", "a", 0, 2), entry("5:1", other, 0, 2), entry("5:2", "a", 1, 2), entry("5:3", "c", 0, 2),
            entry("7:0"), entry("7:1"),
        ]
    )  # fmt: skip
    assert Unfinished("t", topic.open).bound(at("7:1")) == at("5:0")


def test_a_message_that_began_before_the_entries_looked_at_is_looked_for_further_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unfinished_chunks, "LOOKED_AT", 2)
    topic = Topic([entry("5:3", "m", 0, 3), *(entry(f"5:{n}") for n in range(4, 9)), entry("5:9", "m", 1, 3)])
    topic.entries += [entry("7:0"), entry("7:1")]
    assert Unfinished("t", topic.open).bound(at("7:1")) == at("5:2")


def test_a_message_that_no_task_could_put_together_is_kept_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfinished_chunks, "LOOK_BACK", (2, 4))
    topic = Topic([entry("5:3", "m", 0, 3), *(entry(f"7:{n}") for n in range(9))])
    found = Unfinished("t", topic.open)
    assert found.bound(at("7:1")) == at("5:2")
    assert found.bound(at("7:5")) == at("7:4")


def test_a_loss_before_the_start_is_left_to_the_task() -> None:
    topic = Topic([entry("5:3", "m", 0, 3)])
    assert Unfinished("t", topic.open).bound(at("7:1")) == at("5:2")


def test_nothing_is_released_before_a_silent_broker_has_shown_what_is_not_complete() -> None:
    """The first chunk was acknowledged and deleted with its ledger, and the message was lost."""

    class Busy(Topic):
        silent = True

        def open(self, topic: str, start: EntryId | None, permits: int | None, *, stored: bool = False) -> Reader:
            return Silent(self.entries, start or EntryId(-1, -1), after=0 if self.silent else len(self.entries) + 1)

    topic = Busy([entry("5:0"), entry("5:1", "m", 0, 2), entry("7:0"), entry("7:1"), entry("7:2")])
    found = Unfinished("t", topic.open, within=5)
    assert found.bound(at("7:1")) == NOTHING
    topic.silent = False
    assert found.bound(at("7:1")) == at("5:0")
    topic.entries.append(entry("7:3", "m", 1, 2))
    topic.silent = True
    assert found.bound(at("7:3")) == NOTHING
    topic.silent = False
    assert found.bound(at("7:3")) == at("7:2")


def test_a_topic_with_one_message_in_each_ledger_keeps_the_last_one_that_was_read() -> None:
    """Where messages are rarer than ledgers: each batch ends with a ledger's first entry, and nothing was released."""
    topic = StoredTopic({5: 1})
    job = Job(MemoryCluster(t=topic), {"topic": "t", "startingOffsets": "earliest"}).start()
    for ledger in range(5, 10):
        topic.write(ledger + 1, 0)
        assert job.drain() == [f"t@{ledger}:0"]
        topic.write(ledger + 1, 1)
    assert topic.subscriptions["job"] == at("8:0")
    topic.trim()
    assert list(topic.ledgers) == [9, 10]
    assert job.start().drain() == ["t@10:0"]
    assert job.told == []


def test_a_query_that_is_started_on_another_cluster_releases_nothing_there() -> None:
    """A new checkpoint is the way out. Then all messages of that cluster must be there."""
    job = Job(MemoryCluster(t=StoredTopic({7: 4})), {"topic": "t", "startingOffsets": "earliest"})
    assert len(job.start().drain()) == 4
    topic = StoredTopic({5: 10, 8: 20, 9: 0})
    job.cluster = MemoryCluster(t=topic)
    with pytest.raises(InvalidInput, match="misses 7:3"):
        job.start().drain()
    topic.trim()
    assert list(topic.ledgers) == [5, 8, 9]
    assert len(Job(job.cluster, job.options).start().drain()) == 30


def test_a_query_that_starts_again_releases_what_it_has_read() -> None:
    topic = StoredTopic({5: 4, 6: 3})
    job = Job(MemoryCluster(t=topic), {"topic": "t", "startingOffsets": "earliest"})
    assert len(job.start().trigger()) == 7
    for last in ("6:1", "6:3"):
        topic.write(6, 2)
        assert len(job.start().trigger()) == 2
        assert topic.subscriptions["job"] == at(last)
