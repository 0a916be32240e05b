"""Savepoints on a topic of a real broker, with the official client as the independent reader."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pulsar as official
import pytest

from eos.config import Cluster
from eos.errors import InvalidInput as EosInvalidInput
from eos.errors import NotCommitted
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client, Reader
from eos.pulsar.protocol.messages import Message
from eos.pulsar.wire.txn import TxnId
from statestore.errors import Damaged, InvalidInput, NotFound, UnknownVersion
from statestore.savepoints import topic as topics
from statestore.savepoints.stream import FilePart, Manifest
from statestore.savepoints.topic import HOLD
from tests.child_process import ROOT
from tests.conftest import MakeTopic
from tests.contract.hostile_entries import HOSTILE
from tests.contract.official import fresh_consumer
from tests.contract.raw import RawProducer
from tests.integration.statestore.topic_savepoints import FILES, content, folder, what, write
from tests.local_folder import LocalFolder
from tests.reading import messages_of
from tests.topic_commands import MOVES, Move, move_positions
from tests.waiting import until


@pytest.fixture
def cluster(pulsar: Any) -> Cluster:
    return Cluster(pulsar.service_url)


@pytest.fixture
def topic() -> str:
    return f"persistent://public/default/savepoints-{uuid.uuid4().hex[:10]}"


def readable_now(cluster: Cluster, topic: str) -> list[official.Message]:
    """Silence comes before it, which shows only that nothing else is to be expected."""
    found = []
    with fresh_consumer(cluster.service_url, topic) as consumer:
        while True:
            try:
                found.append(consumer.receive(timeout_millis=1500))
            except official.Timeout:
                return found


class Watched(LocalFolder):
    """Looks with the official client, in the middle of the transaction, at what can be read."""

    def read(self, path: str) -> Iterator[bytes]:
        if path == "metadata":  # the last: all data of the others has been sent
            object.__setattr__(self, "seen", readable_now(*self.of))  # type: ignore[attr-defined]
        yield from super().read(path)


def test_a_savepoint_is_there_once_after_the_commit_and_not_before(
    cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    made = folder(tmp_path / "a", {**FILES, "state/0/0/5.zip": os.urandom(3 * 1024 * 1024 + 7)})
    source = Watched(made.root)
    object.__setattr__(source, "of", (cluster, topic))
    told: list[tuple[int, int]] = []
    manifest = topics.write(cluster, topic, what(), source, 120, lambda *done: told.append(done))
    assert source.seen == []  # type: ignore[attr-defined]
    messages = messages_of(cluster.service_url, topic)
    assert [message.properties()["number"] for message in messages] == [str(n) for n in range(manifest.messages)]
    assert {message.properties()["name"] for message in messages} == {"one"}
    assert [message.properties()["kind"] for message in messages] == [*["data"] * 4, "files", "manifest"]
    assert max(len(message.data()) for message in messages) == 1024 * 1024
    assert Manifest.decode(messages[-1].data()) == manifest
    assert told == sorted(told)
    assert told[-1] == (manifest.size, manifest.size)
    assert topics.list_topic(cluster, topic) == [(manifest, "one", "ready", "")]

    target = LocalFolder(tmp_path / "b")
    assert topics.read(cluster, topic, None, target) == manifest
    assert content(tmp_path / "b") == content(made.root)


def test_several_savepoints_live_on_one_topic(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    write(cluster, topic, folder(tmp_path / "a"), "first")
    write(cluster, topic, folder(tmp_path / "b", {"metadata": b"old"}), "second")
    write(cluster, topic, folder(tmp_path / "c", {"metadata": b"new"}), "second")
    assert [(one.name, one.condition) for one in topics.list_topic(cluster, topic)] == [
        *[("first", "ready"), ("second", "ready"), ("second", "ready")],
    ]
    topics.read(cluster, topic, "first", LocalFolder(tmp_path / "first"))
    assert content(tmp_path / "first") == FILES
    topics.read(cluster, topic, "second", LocalFolder(tmp_path / "second"))
    assert content(tmp_path / "second") == {"metadata": b"new"}
    with pytest.raises(InvalidInput, match=r"several savepoints. Name one of first, second"):
        topics.read(cluster, topic, None, LocalFolder(tmp_path / "x"))
    with pytest.raises(NotFound, match=r"no savepoint third on .* There are: first, second"):
        topics.read(cluster, topic, "third", LocalFolder(tmp_path / "x"))
    with pytest.raises(InvalidInput, match="There is something at"):
        topics.read(cluster, topic, "first", LocalFolder(tmp_path / "first"))
    assert not (tmp_path / "x").exists()


def test_a_subscription_keeps_the_messages(cluster: Cluster, topic: str, pulsar: Any, tmp_path: Path) -> None:
    write(cluster, topic, folder(tmp_path / "a"))
    path = topic.replace("://", "/")
    assert HOLD in httpx.get(f"{pulsar.admin_url}/admin/v2/{path}/subscriptions", timeout=30).json()


class Moving(Client):
    """Moves the positions of all subscriptions of a topic once one of its readers has read its first message."""

    admin_url: str
    how: Move

    def reader(self, topic: str, **given: Any) -> Reader:
        reader = super().reader(topic, **given)
        read = reader.read

        def moved(timeout_s: float) -> Message | None:
            message = read(timeout_s)
            reader.read = read  # type: ignore[method-assign]
            move_positions(self.admin_url, topic, self.how)
            return message

        reader.read = moved  # type: ignore[method-assign]
        return reader


def test_a_position_that_is_moved_while_a_savepoint_is_read_leaves_nothing_out(
    cluster: Cluster, topic: str, pulsar: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a message TTL moves it. Else the list lacks savepoints, and a whole one seems to be incomplete."""
    monkeypatch.setattr(topics, "CHUNK", 1000)
    made = folder(tmp_path / "a", {**FILES, "state/0/0/5.zip": os.urandom(60_000)})
    manifest = write(cluster, topic, made)
    write(cluster, topic, made, "two")
    assert manifest.messages > 60, "more than are sent ahead"
    time.sleep(1.1)  # nothing younger than a second expires
    monkeypatch.setattr(topics, "Client", Moving)
    monkeypatch.setattr(Moving, "admin_url", pulsar.admin_url, raising=False)
    for how in MOVES:
        monkeypatch.setattr(Moving, "how", how, raising=False)
        assert [(one.name, one.condition) for one in topics.list_topic(cluster, topic)] == [
            *[("one", "ready"), ("two", "ready")],
        ]
        assert topics.read(cluster, topic, "one", LocalFolder(tmp_path / how)) == manifest
        assert content(tmp_path / how) == content(made.root)


class Failing(LocalFolder):
    """Fails in the middle of the transaction, or gives other bytes than it has listed."""

    def read(self, path: str) -> Iterator[bytes]:
        if path == "metadata":
            raise OSError("the disk is gone")
        yield from super().read(path)


class Growing(LocalFolder):
    def files(self) -> Sequence[tuple[str, int]]:
        return [(path, length + (path == "metadata")) for path, length in super().files()]


def test_what_fails_in_the_middle_leaves_nothing_and_can_be_repeated(
    cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    made = folder(tmp_path / "a", {**FILES, "state/0/0/5.zip": os.urandom(2 * 1024 * 1024)})
    with pytest.raises(OSError, match="the disk is gone"):
        write(cluster, topic, Failing(made.root))
    with pytest.raises(NotCommitted, match="metadata had 12 bytes when it was listed and 11 when it was read"):
        write(cluster, topic, Growing(made.root))
    assert topics.list_topic(cluster, topic) == []
    manifest = write(cluster, topic, made)
    assert topics.list_topic(cluster, topic) == [(manifest, "one", "ready", "")]
    assert len(messages_of(cluster.service_url, topic)) == manifest.messages


def test_a_commit_whose_answer_is_lost_is_looked_up(
    cluster: Cluster, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit is asked for twice: the second answer, TransactionNotFound, says only that it has ended."""
    end = topics._end

    def twice(coordinator: Any, txn: TxnId, commit: bool) -> Any:
        first = end(coordinator, txn, commit)
        return end(coordinator, txn, commit) if commit else first

    monkeypatch.setattr(topics, "_end", twice)
    manifest = write(cluster, topic, folder(tmp_path / "a"))
    assert topics.list_topic(cluster, topic) == [(manifest, "one", "ready", "")]


def test_a_transaction_that_ended_too_early_is_told(
    cluster: Cluster, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = topics._end

    def aborted_by_time(coordinator: Any, txn: TxnId, commit: bool) -> Any:
        if commit:
            with Client(cluster) as other:  # as the coordinator does it after the transaction's time
                other.coordinator(txn.coordinator).end(txn, commit=False)
        return end(coordinator, txn, commit)

    monkeypatch.setattr(topics, "_end", aborted_by_time)
    with pytest.raises(NotCommitted, match="Nothing of it is readable"):
        write(cluster, topic, folder(tmp_path / "a"))
    assert topics.list_topic(cluster, topic) == []


def test_a_writer_killed_in_the_middle_leaves_nothing_that_can_be_read(
    cluster: Cluster, topic: str, tmp_path: Path, pulsar: Any
) -> None:
    made = folder(tmp_path / "a", {**FILES, "state/0/0/5.zip": os.urandom(3 * 1024 * 1024)})
    write(cluster, topic, made, "before")
    code = f"""
import os, signal
from pathlib import Path
from eos.config import Cluster
from statestore.savepoints import topic
from tests.local_folder import LocalFolder

class Dying(LocalFolder):
    def read(self, path):
        if path == "metadata":
            os.kill(os.getpid(), signal.SIGKILL)
        yield from super().read(path)

what = topic.What("killed", "file:///q", 3, "q", 5)
topic.write(Cluster({cluster.service_url!r}), {topic!r}, what, Dying(Path({str(made.root)!r})), timeout_s=600)
"""
    killed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    after = write(cluster, topic, made, "after")
    assert [one.name for one in topics.list_topic(cluster, topic)] == ["before"], "what comes then is hidden"
    with Admin(pulsar.admin_url) as admin, Client(cluster) as other:
        (left,) = (one.txn for one in admin.open_transactions() if topic in one.partitions)
        other.coordinator(left.coordinator).end(left, commit=False)  # as the coordinator does it after its time
    ended = "the dead writer's transaction has ended, and hides nothing any more"
    until(lambda: topics.list_topic(cluster, topic)[-1][0] == after, ended, pause_s=0.1)
    found = topics.list_topic(cluster, topic)
    assert [(one.name, one.lacks) for one in found] == [("before", ""), ("after", "")]
    topics.read(cluster, topic, "after", LocalFolder(tmp_path / "b"))
    assert content(tmp_path / "b") == content(made.root)


@pytest.mark.parametrize(
    ("left_out", "lacks"),
    [
        (0, "of its 6 messages number 0 is missing"),
        (2, "of its 6 messages number 2 is missing"),
        (5, "its manifest, the last of its messages, is missing, and 5 messages came before"),
    ],
)
def test_an_incomplete_copy_is_refused(cluster: Cluster, topic: str, tmp_path: Path, left_out: int, lacks: str) -> None:
    """As geo-replication could bring it: the same messages, without the transaction, one missing, one twice."""
    write(cluster, topic, folder(tmp_path / "a", {**FILES, "state/0/0/5.zip": os.urandom(3 * 1024 * 1024)}))
    messages = messages_of(cluster.service_url, topic)
    copy = f"{topic}-copy"
    with Client(cluster) as client:
        client.ensure_topic(copy)
        with client.producer(copy) as producer:
            for number, message in enumerate(messages):
                for _ in range((number != left_out) + (number == 1)):
                    producer.send_record(message.data(), None, message.properties())
    assert topics.list_topic(cluster, copy)[0][1:] == ("one", "incomplete", lacks)
    with pytest.raises(Damaged, match=f"one on {copy} is incomplete, because {lacks}.*geo-replication"):
        topics.read(cluster, copy, "one", LocalFolder(tmp_path / "b"))
    assert not (tmp_path / "b").exists()


def test_a_whole_copy_with_repeated_messages_is_taken(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    made = folder(tmp_path / "a", {**FILES, "state/0/0/5.zip": os.urandom(3 * 1024 * 1024)})
    write(cluster, topic, made)
    copy = f"{topic}-copy"
    messages = messages_of(cluster.service_url, topic)
    with Client(cluster) as client:
        client.ensure_topic(copy)
        with client.producer(copy) as producer:
            for message in [*messages[:3], *messages[1:], messages[-1]]:
                producer.send_record(message.data(), None, message.properties())
            producer.send_record(b"another writer's", None)
    topics.read(cluster, copy, "one", LocalFolder(tmp_path / "b"))
    assert content(tmp_path / "b") == content(made.root)


DAMAGES: dict[str, tuple[dict[str, str], bytes | None, str]] = {
    "other bytes": ({}, b"other", "damaged"),
    "no bytes": ({}, b"", "damaged"),
    "another kind": ({"kind": "other"}, None, "damaged"),
    "another number": ({"number": "x"}, None, "damaged"),
    "no sum": ({"crc32c": ""}, None, "damaged"),
    "a newer manifest": ({}, b'{"v":2,"id":[]}', "unknown version"),
    "a manifest of other types": ({}, b'{"v":1,"id":[]}', "damaged"),
}


def test_what_cannot_be_read_is_named_and_the_others_are_restored(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    """Each damage to a savepoint of its own, between the messages of one that is whole."""
    write(cluster, topic, folder(tmp_path / "a"), "whole")
    messages = messages_of(cluster.service_url, topic)
    mixed = f"{topic}-mixed"
    with Client(cluster) as client:
        client.ensure_topic(mixed)
        with client.producer(mixed) as producer:
            producer.send_record(messages[0].data(), None, messages[0].properties())
            for name, (properties, data, _) in DAMAGES.items():
                for message in messages:
                    said = {**message.properties(), "eos-savepoint": name, "name": name}
                    last = message is messages[-1]
                    sent = data if last and data is not None else message.data()
                    if last and (data or b"").startswith(b"{"):
                        said["crc32c"] = FilePart("", "", "manifest", 0, sent).properties()["crc32c"]
                    producer.send_record(sent, None, {**said, **(properties if last else {})})
            producer.send_record(b"", None, {"eos-savepoint": "nameless"})
            for message in messages[1:]:
                producer.send_record(message.data(), None, message.properties())
    found = {one.name: one for one in topics.list_topic(cluster, mixed)}
    assert {name: one.condition for name, one in found.items()} == {
        "whole": "ready",
        **{name: condition for name, (_, _, condition) in DAMAGES.items()},
        "nameless": "damaged",
    }
    for name, one in found.items():
        if name == "whole":
            topics.read(cluster, mixed, name, LocalFolder(tmp_path / "restored"))
        else:
            error = UnknownVersion if one.condition == "unknown version" else Damaged
            with pytest.raises(
                error, match=f"Savepoint {name} on {mixed} is (damaged|of an unknown version), because "
            ):
                topics.read(cluster, mixed, name, LocalFolder(tmp_path / "none"))
    assert content(tmp_path / "restored") == FILES
    assert not (tmp_path / "none").exists()


def test_entries_that_nobody_can_read_are_told_and_every_savepoint_is_restored(
    cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    """Each of them ended the listing and the restoring of all savepoints on the topic, with advice to try again."""
    write(cluster, topic, folder(tmp_path / "a"), "before")
    messages = messages_of(cluster.service_url, topic)
    mixed = f"{topic}-mixed"
    with Client(cluster) as client:
        client.ensure_topic(mixed)
    producer = RawProducer(cluster.service_url, mixed)
    for number, (make, _) in enumerate(HOSTILE.values()):
        producer.send_described(*make(2 * number, producer.name))
        producer.event()
        if number < len(messages):
            with Client(cluster) as client, client.producer(mixed) as writer:
                writer.send_record(messages[number].data(), None, messages[number].properties())
    producer.connection.close()
    after = write(cluster, mixed, folder(tmp_path / "b", {"metadata": b"after"}), "after")
    unread = len(HOSTILE) - 1  # a chunk by itself is a message of somebody else's
    listed = topics.list_topic(cluster, mixed)
    assert [(one.name, one.condition) for one in listed[:2]] == [("before", "ready"), ("after", "ready")]
    assert [one.condition for one in listed[2:]] == ["damaged"] * unread
    assert all(f"{one.name} of {mixed} can't be read: " in one.lacks for one in listed[2:])
    for name, files in (("before", FILES), ("after", {"metadata": b"after"})):
        topics.read(cluster, mixed, name, LocalFolder(tmp_path / name))
        assert content(tmp_path / name) == files
    with Client(cluster) as client:
        assert topics._was_committed(client, mixed, after)


def test_a_topic_with_partitions_is_refused(cluster: Cluster, make_topic: MakeTopic, tmp_path: Path) -> None:
    topic = make_topic("rows", partitions=2)
    with pytest.raises(EosInvalidInput, match="must have none"):
        write(cluster, topic, folder(tmp_path / "a"))
    with pytest.raises(InvalidInput, match="has partitions"):
        topics.list_topic(cluster, topic)
