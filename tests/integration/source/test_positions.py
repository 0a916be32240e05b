"""Where queries begin and end on a real broker, and that they begin there again."""

from __future__ import annotations

import json

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from eos.pulsar.net.client import Client
from tests.clients import end, transaction
from tests.conftest import MakeTopic
from tests.integration.source.conftest import Admin, MakeStream
from tests.integration.source.streams import PATIENCE_S, Stream, values, write
from tests.planner import again_while_late


def logged(stream: Stream, batch: int) -> dict[str, str]:
    """Return the positions that the checkpoint holds as a batch's end."""
    line = (stream.checkpoint / "offsets" / str(batch)).read_text().splitlines()[-1]
    offset = json.loads(line)
    assert offset["version"] == 1
    return dict(offset["topics"])


def test_an_open_transaction_is_waited_for_and_an_end_lies_before_its_marker(
    ours: Client, make_topic: MakeTopic, make_stream: MakeStream
) -> None:
    topic = make_topic("open")
    stream = make_stream(topic=topic)
    with ours.producer(topic) as producer:
        before = producer.send_record(b"before", None)
        aborted, held = (transaction(ours, topic, ttl_ms=600_000) for _ in range(2))  # Spark starts slowly
        producer.send_record(b"aborted", aborted)
        producer.send_record(b"held", held)
        behind = producer.send_record(b"behind", None)
        assert values(stream.run()) == ["before"]
        assert logged(stream, 0) == {topic: f"{before.ledger}:{before.entry}"}
        assert stream.run() == [], "AvailableNow a second time: nothing new can be read"
        end(ours, aborted, commit=False)
        end(ours, held, commit=True)  # the last entries are markers now
    assert values(stream.run()) == ["held", "behind"]
    assert list(logged(stream, max(stream.batches)).values()) == [f"{behind.ledger}:{behind.entry}"]
    assert stream.run() == []


def fails_in(batch: int, stream: Stream) -> list[str]:
    """Run the stream into a failure at the end of this batch; return what that batch had read."""
    seen: list[str] = []

    def fail(frame: DataFrame, number: int) -> None:
        if number == batch:
            seen.extend(values(frame.collect()))
            raise RuntimeError("the driver dies here")

    def run() -> None:
        with pytest.raises(StreamingQueryException, match="the driver dies here"):
            stream.start(each=fail, availableNow=True).awaitTermination(PATIENCE_S)

    again_while_late(run)
    return seen


@pytest.mark.parametrize("start", ["earliest", "latest", "time", "reset"])
def test_a_crash_before_batch_0_is_committed_leaves_its_beginning_where_it_was(
    ours: Client, make_topic: MakeTopic, make_stream: MakeStream, start: str
) -> None:
    topic = make_topic(start)
    write(ours, topic, "a", "b")
    options = {
        "time": {"startingTime": "0"},
        "reset": {"startingOffsets": "latest", "resetSubscription": "true"},
    }.get(start, {"startingOffsets": start})
    stream = make_stream(topic=topic, **options)
    expected = [] if start in ("latest", "reset") else ["a", "b"]
    assert fails_in(0, stream) == expected
    write(ours, topic, "c", "d")
    assert values(stream.run()) == [*expected, "c", "d"]
    assert values(stream.batches[0]) == expected


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"topic": "no-such-topic"}, "persistent://public/default/no-such-topic does not exist. Check its name"),
        (
            {"startingOffsets": '{"other": "earliest"}'},
            "names persistent://public/default/other, which is",
        ),
        ({"startingOffsets": '{"TOPIC-partition-0": "earliest"}'}, "say nothing of TOPIC-partition-1. Give an entry"),
        ({"startingOffsets": '{"TOPIC": "earliest"}'}, "exists already and stands at"),
    ],
)
def test_a_new_query_that_cannot_begin_ends_with_the_reason_before_it_reads_anything(
    ours: Client, make_topic: MakeTopic, make_stream: MakeStream, given: dict[str, str], words: str
) -> None:
    topic = make_topic("refused", 2)
    write(ours, f"{topic}-partition-0", "a", "b")
    if "exists already" in words:
        with ours.subscription(f"{topic}-partition-0", "job", initial="latest"):
            pass
    options = {name: text.replace("TOPIC", topic) for name, text in ({"topic": topic} | given).items()}
    stream = make_stream(subscription="job", **options)

    def begin() -> None:
        with pytest.raises(StreamingQueryException) as ended:
            stream.start(availableNow=True).awaitTermination(PATIENCE_S)
        assert words.replace("TOPIC", topic) in str(ended.value)

    again_while_late(begin)
    assert stream.batches == {}


def test_a_batch_that_failed_reads_the_same_again(ours: Client, make_topic: MakeTopic, make_stream: MakeStream) -> None:
    topic = make_topic("again", 2)
    write(ours, f"{topic}-partition-0", "a", "b")
    stream = make_stream(topic=topic)
    assert values(stream.run()) == ["a", "b"]
    write(ours, f"{topic}-partition-0", "c")
    write(ours, f"{topic}-partition-1", "x", "y")
    failed = fails_in(max(stream.batches) + 1, stream)
    write(ours, f"{topic}-partition-0", "d")
    write(ours, f"{topic}-partition-1", "z")
    again = stream.run()
    assert sorted(values(again)[: len(failed)]) == sorted(failed) == ["c", "x", "y"]
    assert sorted(values(again)) == ["c", "d", "x", "y", "z"]


def test_a_limit_cuts_what_is_there_into_batches(ours: Client, make_topic: MakeTopic, make_stream: MakeStream) -> None:
    topic = make_topic("limit", 2)
    for partition in range(2):
        write(ours, f"{topic}-partition-{partition}", *(f"{partition}-{number}" for number in range(7)))
    stream = make_stream(topic=topic, maxEntriesPerTrigger="6")
    rows = values(stream.run())
    assert [len(batch) for batch in stream.batches.values()] == [6, 6, 2]
    assert [row for row in rows if row.startswith("0")] == [f"0-{number}" for number in range(7)]
    assert len(set(rows)) == 14


def test_partitions_that_are_added_are_read_from_their_beginning(
    ours: Client, make_topic: MakeTopic, make_stream: MakeStream, admin: Admin
) -> None:
    topic = make_topic("grows", 1)
    stream = make_stream(topic=topic, startingOffsets="latest")
    write(ours, f"{topic}-partition-0", "old")
    assert stream.run() == []
    write(ours, f"{topic}-partition-0", "a")
    assert values(stream.run()) == ["a"]
    admin("POST", topic, "partitions", 2)
    write(ours, f"{topic}-partition-1", "b", "c")
    assert values(stream.run()) == ["b", "c"]
    assert sorted(logged(stream, max(stream.batches))) == [f"{topic}-partition-{number}" for number in range(2)]
