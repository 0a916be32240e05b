"""Reading a topic of savepoints to its end, from a broker that falls silent on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from eos.config import Cluster
from eos.errors import CommitUnknown
from eos.pulsar.protocol.messages import Message
from eos.pulsar.wire.message_id import EARLIEST, MessageId
from statestore.errors import Unavailable
from statestore.savepoints import topic as topics
from statestore.savepoints.stream import Manifest


class Silent:
    """A client and a reader that gets one message, and then nothing; `ends` are the topic's, each time it is asked."""

    def __init__(self, ends: Sequence[MessageId]) -> None:
        self._ends = list(ends)
        self._there = [Message(MessageId(1, 0), b"another writer's", None, {}, 0, None, None, "a", None)]

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
        return self._there.pop() if self._there else None

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


def test_a_commit_that_can_not_be_looked_up_is_unknown() -> None:
    manifest = Manifest("id", "one", "file:///q", 1, "q", 0, 0, 0, 0, 0, 0)
    client: Any = Silent([MessageId(1, 1), MessageId(1, 1)])
    with pytest.raises(CommitUnknown, match="savepoint one has ended, and it could not be seen"):
        topics._was_committed(client, "t", manifest)
