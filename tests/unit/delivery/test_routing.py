"""Routing of rows to topics and partitions: as if row by row, in one pass for all topics of a record batch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos.delivery import routing
from eos.delivery.routing import Router
from eos.errors import InvalidInput
from eos.pulsar.protocol.topics import full_name, partition_name
from eos.pulsar.wire.routing import Sorted, partition_of, sort_by_partition

COUNTS = {"plain": 0, "one": 1, "three": 3, "many": 300}
TOPICS = sorted(COUNTS)
ROW = st.tuples(
    st.sampled_from(TOPICS), st.booleans(), st.none() | st.sampled_from(["a", "b", "c", "d"]), st.none() | st.just(0)
)


def counts(topics: Sequence[str]) -> list[int]:
    return [COUNTS[topic.rpartition("/")[2]] for topic in topics]


def router(topic: str | None = None, keyed: bool = False) -> Router:
    return Router(topic, "murmur3", keyed, counts, 0)


def batch(rows: Sequence[tuple[str, bool, str | None, int | None]]) -> pa.RecordBatch:
    """Args: for each row its topic, whether that is written out, its key, its explicit partition."""
    return pa.RecordBatch.from_pydict(
        {
            "value": [str(number) for number in range(len(rows))],
            "topic": [full_name(topic) if whole else topic for topic, whole, _, _ in rows],
            "key": pa.array([key for _, _, key, _ in rows], pa.string()),
            "partition": pa.array([partition for _, _, _, partition in rows], pa.int32()),
        }
    )


@given(st.lists(ROW, min_size=1, max_size=60))
def test_each_row_goes_where_it_would_alone_and_rows_of_a_part_keep_their_order(rows: list[Any]) -> None:
    routed = router().route(batch(rows), 0)
    assert len(set(routed.names)) == len(routed.names)
    begin, seen = 0, []
    for topic, name, end in zip(routed.topics, routed.names, routed.parts.ends, strict=True):
        numbers = [int(text) for text in routed.parts.rows.column("value")[begin:end].to_pylist()]
        assert numbers == sorted(numbers)
        for number in numbers:
            named, _, key, explicit = rows[number]
            count = COUNTS[named]
            assert topic == full_name(named)
            if count == 0:
                assert name == topic
            elif explicit is not None:
                assert name == partition_name(topic, explicit)
            elif key is not None:
                (chosen,) = partition_of(pa.array([key]), count, "murmur3")
                assert name == partition_name(topic, int(chosen))
            else:
                assert name in {partition_name(topic, place) for place in range(count)}
        seen += numbers
        begin = end
    assert sorted(seen) == list(range(len(rows)))
    keyless = {(topic, name) for topic, name in zip(routed.topics, routed.names, strict=True)}
    for topic in TOPICS:
        alone = [row for row in rows if row[0] == topic]
        if alone and all(row[2] is None and row[3] is None for row in alone):
            assert len([one for one in keyless if one[0] == full_name(topic)]) == 1, "keyless rows stay together"


def test_the_parts_of_a_topic_lie_side_by_side() -> None:
    rows = [(topic, False, key, None) for key in "abcdefgh" for topic in ("three", "plain", "many")]
    topics = router().route(batch(rows), 0).topics
    assert [full_name(one) for one in ("three", "plain", "many")] == list(dict.fromkeys(topics))
    assert sum(before != after for before, after in pairwise(topics)) == 2


def test_keyless_rows_take_turns_over_the_partitions() -> None:
    spread = router(full_name("three"))
    rows = pa.RecordBatch.from_pydict({"value": ["x", "y"]})
    names = [spread.route(rows, 0).names for _ in range(4)]
    assert names == [[partition_name(full_name("three"), place)] for place in (0, 1, 2, 0)]


def test_rows_are_sorted_once_however_many_topics_they_name(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[int] = []

    def counted(rows: pa.RecordBatch, partitions: npt.NDArray[np.integer]) -> Sorted:
        passes.append(rows.num_rows)
        return sort_by_partition(rows, partitions)

    monkeypatch.setattr(routing, "sort_by_partition", counted)
    many = Router(None, "murmur3", False, lambda topics: [0] * len(topics), 0)
    rows = pa.RecordBatch.from_pydict(
        {"value": ["x"] * 3_000, "topic": [f"topic-{number % 1_000}" for number in range(3_000)]}
    )
    assert len(many.route(rows, 0).names) == 1_000
    assert passes == [3_000]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([("one", True, "k", 0), ("three", False, None, 3)], "asks for partition 3 of .*/three, which has .* 0 to 2"),
        ([("three", False, None, -1)], "asks for partition -1"),
        ([("one", False, None, 0), ("plain", True, None, 1)], "names partitions of .*/plain, which has none"),
    ],
)
def test_a_partition_that_is_not_there_is_named(rows: list[Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        router().route(batch(rows), 0)


def test_rows_of_one_sticky_key_are_parted_within_their_topics() -> None:
    rows = [(topic, False, key, None) for topic in ("plain", "one") for key in "abab"]
    routed = router(keyed=True).route(batch(rows), 0)
    assert routed.names == [full_name("plain")] * 2 + [partition_name(full_name("one"), 0)] * 2
    assert routed.parts.ends == [2, 4, 6, 8]
