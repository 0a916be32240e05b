"""`eos sink adopt`: what it finds out about a topic that the official client writes to, and what it says it can't."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulsar as official
import pytest
from pulsar.schema import AvroSchema, Integer, Record

from eos.errors import DamagedLog, InvalidInput
from eos.pulsar.net.admin import Admin
from tests.conftest import MakeTopic
from tests.integration.sparkless import Sink, eos, truncate
from tests.unit.inspect.test_checkpoints import checkpoint


class Delay(Record):  # type: ignore[misc]
    delay = Integer()


HOUR_MS = 3_600_000


def now_ms() -> int:
    return int(time.time() * 1000)


@pytest.fixture
def topic(make_topic: MakeTopic) -> str:
    return make_topic("adopt", partitions=4)


@pytest.fixture
def writer(theirs: official.Client, topic: str) -> official.Producer:
    """The old sink: it places keys by the hash of C++ and Python."""
    return theirs.create_producer(topic, schema=AvroSchema(Delay))


def adopted(pulsar: Any, folder: Path, topic: str, name: str | None = None, **how: Any) -> tuple[int, dict[str, Any]]:
    words = ("sink", "adopt", str(folder), "--topic", topic, "--sink", name or topic.rpartition("/")[2], "--json")
    answer = eos(pulsar, *words, **how)
    assert answer.stdout, answer.output
    found = json.loads(answer.stdout)
    return answer.exit_code, found | {"findings": {one["about"]: one for one in found["findings"]}}


def test_what_follows_from_the_topic_is_found(
    pulsar: Any, topic: str, writer: official.Producer, tmp_path: Path
) -> None:
    for number in range(30):
        writer.send(Delay(delay=number), partition_key=f"k{number}")
    folder = checkpoint(tmp_path / "c", 4, 4)
    code, found = adopted(pulsar, folder, topic)
    producers = found["findings"]["producers"]
    assert (code, producers["verdict"]) == (1, "take care")
    assert writer.producer_name() in producers["said"]
    writer.close()
    code, found = adopted(pulsar, folder, topic)
    assert (code, found["query_id"], found["next_batch"]) == (0, "query", 5)
    assert {one["verdict"] for one in found["findings"].values()} == {"good"}
    assert found["options"] == {
        "name": topic.rpartition("/")[2],
        "topic": topic,
        "value_format": "avro",
        "key_hash": "boost",
    }
    assert "30 keys of the last messages" in found["findings"]["keys"]["said"]


def test_keys_that_no_hash_places_are_told(pulsar: Any, topic: str, theirs: official.Client, tmp_path: Path) -> None:
    alone = theirs.create_producer(topic, message_routing_mode=official.PartitionsRoutingMode.CustomPartition,
                                   message_router=lambda message, topic: 0)  # fmt: skip
    for number in range(10):
        alone.send(b"x", partition_key=f"k{number}")
    alone.close()
    code, found = adopted(pulsar, checkpoint(tmp_path / "c", 0, 0), topic)
    assert (code, found["findings"]["keys"]["verdict"]) == (1, "take care")
    assert "key_hash" not in found["options"]


def test_a_batch_that_was_begun_is_in_doubt_if_something_came_since(
    pulsar: Any, topic: str, writer: official.Producer, tmp_path: Path
) -> None:
    writer.send(Delay(delay=1), partition_key="k")
    writer.send(Delay(delay=2), partition_key="l")
    writer.close()
    code, found = adopted(pulsar, checkpoint(tmp_path / "before", 7, 6, now_ms() - HOUR_MS), topic)
    last = found["findings"]["last batch"]
    assert (code, last["verdict"], found["next_batch"]) == (3, "can't be known", 7)
    assert "2 messages were published since" in last["said"]
    code, found = adopted(pulsar, checkpoint(tmp_path / "after", 7, 6, now_ms() + HOUR_MS), topic)
    assert (code, found["findings"]["last batch"]["verdict"], found["next_batch"]) == (0, "good", 7)
    assert "none of it was written" in found["findings"]["last batch"]["said"]
    code, found = adopted(pulsar, checkpoint(tmp_path / "old", 7, 6, None), topic)
    assert (code, found["findings"]["last batch"]["verdict"]) == (3, "can't be known")


def make_again(pulsar: Any, topic: str) -> None:
    with Admin(pulsar.admin_url) as admin:
        admin.delete_partitioned(topic)
        admin.create(topic, 4)


@pytest.mark.parametrize("delete", [truncate, make_again])
def test_rows_that_are_deleted_are_not_told_as_never_written(
    pulsar: Any, topic: str, writer: official.Producer, tmp_path: Path, delete: Callable[[Any, str], None]
) -> None:
    for number in range(8):
        writer.send(Delay(delay=number), partition_key=f"k{number}")
    writer.close()
    delete(pulsar, topic)
    code, found = adopted(pulsar, checkpoint(tmp_path / "c", 7, 6, now_ms() - HOUR_MS), topic)
    last, keys = (found["findings"][about] for about in ("last batch", "keys"))
    assert (code, last["verdict"], keys["verdict"]) == (3, "can't be known", "can't be known")
    assert "The topic stores nothing that was published since, but may have deleted it" in last["said"]
    assert f"{topic}-partition-0 stores no message, and its list of ledgers changed at" in last["said"]


def test_without_the_admin_api_nobody_knows_who_writes(pulsar: Any, topic: str, tmp_path: Path) -> None:
    code, found = adopted(pulsar, checkpoint(tmp_path / "c", -1, -1), topic, admin=False)
    assert (code, found["findings"]["producers"]["verdict"], found["next_batch"]) == (3, "can't be known", 0)
    told = eos(pulsar, "sink", "adopt", str(tmp_path / "c"), "--topic", topic, "--sink", "n").output
    assert f"goes on at batch 0 with foreachBatch(eos.sink('{pulsar.service_url}', name='n', topic='{topic}'))" in told


def test_a_name_that_another_query_has_is_refused(pulsar: Any, make_topic: MakeTopic, tmp_path: Path) -> None:
    sink = Sink(pulsar, make_topic)
    sink.write(0)
    sink.client.close()
    folder = str(checkpoint(tmp_path / "c", 0, 0))
    answer = eos(pulsar, "sink", "adopt", folder, "--topic", sink.topic, "--sink", sink.name)
    assert answer.exit_code == 0  # the checkpoint's query is called as the sink's
    (tmp_path / "c" / "metadata").write_text('{"id":"other"}')
    answer = eos(pulsar, "sink", "adopt", folder, "--topic", sink.topic, "--sink", sink.name)
    assert "belongs to query query, and this checkpoint to query other. Choose another name" in str(answer.exception)
    (tmp_path / "c" / "eos-sink.json").write_text('{"name": "mine", "control_topic": "t", "last_number": 1}')
    answer = eos(pulsar, "sink", "adopt", folder, "--topic", sink.topic, "--sink", "mine")
    assert 'belongs to the sink "mine" already' in str(answer.exception)


def test_a_name_is_refused_that_no_sink_can_have_or_whose_log_can_not_be_read(
    pulsar: Any, topic: str, theirs: official.Client, tmp_path: Path
) -> None:
    folder = str(checkpoint(tmp_path / "c", 0, 0))
    answer = eos(pulsar, "sink", "adopt", folder, "--topic", topic, "--sink", "a/b")
    assert isinstance(answer.exception, InvalidInput)
    assert '"a/b" cannot name a sink' in str(answer.exception)
    name = topic.rpartition("/")[2]
    log = theirs.create_producer(f"persistent://public/default/__eos-{name}")
    log.send(b"no record")
    log.close()
    answer = eos(pulsar, "sink", "adopt", folder, "--topic", topic, "--sink", name)
    assert isinstance(answer.exception, DamagedLog)
