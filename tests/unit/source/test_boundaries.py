"""Where a read begins and ends on each topic, where options say it by topic."""

from __future__ import annotations

import json
import time

import pytest

from eos.errors import InvalidInput
from eos.source.boundaries import Boundary, check_complete, check_named, parse_boundary, time_of

A, B = "persistent://public/default/a", "persistent://public/default/b"


def by_time(text: str) -> Boundary:
    return parse_boundary({"startingOffsets": None, "startingTime": text}, "startingOffsets", "startingTime", "latest")


def test_one_time_is_that_of_every_topic() -> None:
    assert time_of(by_time("7"), A) == time_of(by_time("1970-01-01T00:00:00.007+00:00"), B) == 7


@pytest.mark.parametrize("number", [0, 9_999_999, 100_000_000_000, 1_767_225_600_000])
def test_other_numbers_are_milliseconds(number: int) -> None:
    assert time_of(by_time(str(number)), A) == number


def test_a_topic_has_its_own_time_and_a_partition_one_before_its_topics() -> None:
    times = by_time(f'{{"a": "1970-01-01T00:00:01+00:00", "{A}-partition-2": 5, "{B}": "9"}}')
    assert [time_of(times, topic) for topic in (f"{A}-partition-0", f"{A}-partition-2", B)] == [1_000, 5, 9]
    check_named(times, [f"{A}-partition-0", f"{A}-partition-2", B], "startingOffsets")


def test_a_topic_without_a_time_and_a_time_without_its_topic_are_refused() -> None:
    times = by_time('{"a": 5}')
    for ask in (lambda: time_of(times, B), lambda: check_complete(times, [A, B])):
        with pytest.raises(InvalidInput, match=f"the times by topic say nothing of {B}. Give a time for it"):
            ask()
    with pytest.raises(InvalidInput, match=f"startingTime names {A}, which is not read. Read are {B}"):
        check_named(times, [B], "startingOffsets")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "neither a word it knows nor a JSON object such as .*flights.*2026-01-31"),
        ("{}", "neither a word it knows"),
        ('{"a": true}', "neither a word it knows"),
        ('{"a": "noon"}', "startingTime='noon' is not a time"),
        ('{"a": "2026-01-31T12:00:00"}', "is not a time. Write ISO 8601 with a zone"),
        (f'{{"a": 5, "{A}": 6}}', f"startingTime names {A} twice"),
        ('{"a": 5, "a": 6}', "neither a word it knows .*it has a name twice"),
        ('{"a": 253402300800000}', "is after the year 9999"),
        ("1767225600", r"means 1970-01-21T10:53:45\+00:00, when nothing was published. Perhaps .* seconds, or a date"),
        ("20260131", r"startingTime='20260131' means 1970-01-01T05:37:40\+00:00"),
        ('{"a": 1767225600}', "Give milliseconds since 1970, or ISO 8601 with a zone"),
        ("99999999999", "means 1973-03-03T09:46:39"),
    ],
)
def test_a_malformed_time_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        by_time(text)


@pytest.mark.parametrize("option", ["startingOffsets", "endingOffsets"])
def test_what_a_refusal_offers_is_taken(option: str) -> None:
    def parsed(text: str) -> Boundary:
        other = option.replace("Offsets", "Time")
        return parse_boundary({option: text, other: None}, option, other, "latest")

    with pytest.raises(InvalidInput) as refused:
        parsed("{")
    offered = [word for word in ("earliest", "latest") if f'"{word}"' in str(refused.value)]
    assert offered == (["earliest", "latest"] if option == "startingOffsets" else ["latest"])
    for word in (*offered, "8:13"):
        assert parsed(json.dumps({"a": word})).entries


def test_offsets_of_thousands_of_topics_are_read_at_once() -> None:
    """Driver, planner and each task read them. To compare each name with all others took 10 s for so many."""
    offsets = {f"persistent://public/default/{number:06}": "8:13" for number in range(20_000)}
    began = time.process_time()
    given = {"startingOffsets": json.dumps(offsets), "startingTime": None}
    assert parse_boundary(given, "startingOffsets", "startingTime", "latest").named == offsets.keys()
    assert time.process_time() - began < 3
