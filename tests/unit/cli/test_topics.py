"""What `eos local topic` and `eos local read` print, with the Pulsar faked."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner, Result

from eos.cli import app as cli
from eos.config import Cluster, Credentials
from eos.errors import InvalidInput
from eos.inspect.rows import TopicRow, TopicRows
from eos.local import LocalError, instances, topics
from eos.local.topics import LocalTopic
from eos.pulsar.wire.message_id import MessageId

PLACE = LocalTopic("pulsar://localhost:1", "http://localhost:2", Credentials())
FULL = "persistent://public/default/flights"


def row(partition: int | None, key: bytes | None, data: bytes | None) -> TopicRow:
    return TopicRow(partition, MessageId(1, 2), key, data, 5, 7, {"a": "b"})


@pytest.fixture(autouse=True)
def running(monkeypatch: pytest.MonkeyPatch) -> None:
    def stored(rows: TopicRows) -> Iterator[TopicRow]:
        assert (rows._topic, rows._options.cluster) == (FULL, Cluster(PLACE.service_url, PLACE.credentials))
        yield from [row(0, b"k", b"one"), row(0, None, "zwei \u00fc".encode()), row(1, b"\xff", None)]

    monkeypatch.setattr(instances, "place", lambda name: PLACE)
    monkeypatch.setattr(TopicRows, "stored", stored)


def eos(*words: str) -> Result:
    return CliRunner().invoke(cli.typer_app, ["local", *words])


def test_rows_are_lines_of_key_tab_value() -> None:
    assert eos("read", "flights").stdout == "k\tone\n\tzwei \u00fc\n\\xff\tnull\n"
    assert f"3 rows of {FULL}." in eos("read", "flights").output
    assert eos("read", FULL, "--limit", "1").stdout == "k\tone\n"


def test_rows_are_objects_for_programs() -> None:
    first, *_, last = map(json.loads, eos("read", "public/default/flights", "--json").stdout.splitlines())
    assert first == {"partition": 0, "key": "k", "value": "one", "event_time_ms": 7, "properties": {"a": "b"}}
    assert (last["partition"], last["value"]) == (1, None)


def test_a_topic_is_made_or_found(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    def create(place: LocalTopic, topic: str, partitions: int) -> bool:
        asked.append((topic, partitions))
        return len(asked) == 1

    monkeypatch.setattr(topics, "create", create)
    assert f"{FULL} is made" in eos("topic", "flights", "--partitions", "2").output
    assert f"{FULL} is there already" in eos("topic", "flights").output
    assert asked == [(FULL, 2), (FULL, 0)]


def test_names_that_are_no_topics_are_refused_before_anything_is_asked() -> None:
    assert isinstance(eos("topic", "a/b").exception, InvalidInput)
    assert isinstance(eos("read", "flights-partition-1").exception, InvalidInput)


def test_an_instance_that_does_not_run_is_named_with_the_way_to_start_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("EOS_CACHE", str(tmp_path))
    error = eos("read", "flights", "--name", "trial").exception
    assert isinstance(error, LocalError)
    assert str(error) == "No Pulsar called trial is up. Start one with: eos local up --name trial"
