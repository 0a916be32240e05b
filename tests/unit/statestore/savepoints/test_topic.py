"""Reading a topic of savepoints to its end, from a broker that falls silent on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from eos.config import Cluster
from eos.errors import BadCredentials, CommitUnknown, ConnectionLost, DamagedEntry, NetworkError
from eos.pulsar.protocol.messages import Message
from eos.pulsar.wire.message_id import EARLIEST, MessageId
from statestore.errors import NotFound, Unavailable
from statestore.savepoints import topic as topics
from statestore.savepoints.stream import FilePart, Kind, Manifest


def message(entry: int, data: bytes, properties: dict[str, str]) -> Message:
    return Message(MessageId(1, entry), data, None, properties, 0, None, None, "a", None)


class Silent:
    """A client and a reader that gets what is there, and then nothing; `ends` are the topic's, as it is asked."""

    def __init__(self, ends: Sequence[MessageId], there: Sequence[Message | DamagedEntry] | None = None) -> None:
        self._ends = list(ends)
        self._there = [message(0, b"another writer's", {})] if there is None else list(there)

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def partitions(self, topic: str) -> int:
        return 0

    def reader(self, topic: str, **_: Any) -> Silent:
        return self

    def last_message_id(self) -> MessageId:
        return self._ends.pop(0)

    def read(self, timeout_s: float) -> Message | None:
        one = self._there.pop(0) if self._there else None
        if isinstance(one, DamagedEntry):
            raise one
        return one

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("later", "behind"),
    [
        (MessageId(1, 1), "the last message is in 1:1"),
        (MessageId(1, 0), "the rest is deleted"),
        (EARLIEST, "the rest is deleted"),
    ],
)
def test_silence_before_the_end_is_no_end(monkeypatch: pytest.MonkeyPatch, later: MessageId, behind: str) -> None:
    """A commit without an answer would be taken for one that failed, and a list would lack savepoints."""
    monkeypatch.setattr(topics, "Client", lambda cluster: Silent([MessageId(1, 1), later]))
    with pytest.raises(Unavailable, match=f"for 30 s after entry 1:0, and {behind}"):
        topics.list_topic(Cluster("pulsar://nowhere"), "t")


class Away(Silent):
    """A client whose broker is away from one of its calls on."""

    def __init__(self, since: str, error: NetworkError | None = None) -> None:
        super().__init__([MessageId(1, 1)])
        self._since, self._error = since, error or ConnectionLost("the broker is away")

    def _asked(self, call: str) -> None:
        if call == self._since:
            raise self._error

    def partitions(self, topic: str) -> int:
        self._asked("partitions")
        return super().partitions(topic)

    def reader(self, topic: str, **_: Any) -> Silent:
        self._asked("reader")
        return self

    def last_message_id(self) -> MessageId:
        self._asked("last_message_id")
        return super().last_message_id()

    def read(self, timeout_s: float) -> Message | None:
        self._asked("read")
        return super().read(timeout_s)


REFUSED = BadCredentials("the token is expired")
CALLS = ("partitions", "reader", "last_message_id", "read")


@pytest.mark.parametrize("since", CALLS)
def test_a_broker_that_is_away_is_told_as_such(since: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "Client", lambda cluster: Away(since))
    with pytest.raises(Unavailable, match=r"^t could not be read to its end\. the broker is away$"):
        topics.find(Cluster("pulsar://nowhere"), "t", "one")


def test_a_refusal_is_not_told_as_a_broker_that_may_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "Client", lambda cluster: Away("reader", REFUSED))
    with pytest.raises(BadCredentials, match=r"^the token is expired$"):
        topics.find(Cluster("pulsar://nowhere"), "t", "one")


@pytest.mark.parametrize(
    "client",
    [Silent([MessageId(1, 1), MessageId(1, 1)]), *map(Away, CALLS), Away("reader", REFUSED)],
    ids=["silent", *CALLS, "refused"],
)
def test_a_commit_that_can_not_be_looked_up_is_unknown(client: Any) -> None:
    manifest = Manifest("id", "one", "file:///q", 1, "q", 0, 0, 0, 0, 0, 0)
    with pytest.raises(CommitUnknown, match="savepoint one has ended, and it is unknown"):
        topics._was_committed(client, "t", manifest)


def test_a_savepoint_that_is_not_there_may_have_been_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "Client", lambda cluster: Silent([EARLIEST]))
    with pytest.raises(NotFound, match=r"There are: none\. A message TTL.*may have deleted savepoints"):
        topics.find(Cluster("pulsar://nowhere"), "t", "one")


def savepoint(name: str) -> list[tuple[bytes, dict[str, str]]]:
    """Return the three messages of a savepoint of one empty file."""
    manifest = Manifest(name, name, "file:///q", 1, "q", 0, 0, 0, 0, 1, 1)
    parts: list[tuple[Kind, bytes]] = [("data", b"x"), ("files", b"y"), ("manifest", manifest.encode())]
    made = [FilePart(name, name, kind, number, data) for number, (kind, data) in enumerate(parts)]
    return [(part.data, part.properties()) for part in made]


@pytest.mark.parametrize(
    ("damaged", "listed"),
    [
        ((), ["first: ready", "second: ready"]),
        ((0,), ["first: damaged", "second: ready"]),
        ((1,), ["first: damaged", "second: ready"]),
        ((2,), ["first: damaged", "second: ready"]),
        ((3,), ["first: ready", "second: damaged"]),
        ((5,), ["first: ready", "second: damaged"]),
        ((0, 1, 2), ["second: ready", *(f"entry 1:{entry}: damaged" for entry in range(3))]),
        ((6,), ["first: ready", "second: ready", "entry 1:6: damaged"]),
    ],
)
def test_a_damaged_entry_is_held_against_its_savepoint_and_no_other(
    monkeypatch: pytest.MonkeyPatch, damaged: tuple[int, ...], listed: list[str]
) -> None:
    """One that is damaged in the bookies' files came as silence of the broker, for all savepoints and for good."""
    there: list[Message | DamagedEntry] = [
        DamagedEntry(f"entry 1:{entry} of t can't be read: checksum", 1, entry)
        if entry in damaged
        else message(entry, *sent)
        for entry, sent in enumerate([*savepoint("first"), *savepoint("second"), (b"another writer's", {})])
    ]
    monkeypatch.setattr(topics, "Client", lambda cluster: Silent([MessageId(1, 6)], there))
    found = topics.list_topic(Cluster("pulsar://nowhere"), "t")
    assert [f"{one.name}: {one.condition}" for one in found] == listed
    for one in found:
        assert ("can't be read: checksum" in one.lacks) == (one.condition == "damaged")
