"""The size that frames of a topic may have, as far as the broker's refusals have shown.

A broker tells its own limit when a connection begins. A topic may have a smaller one, the topic policy
`maxMessageSize`, which only the admin API tells: a frame above it is refused with NotAllowedError. Nothing is ever
sent again inside a transaction, so what a refusal teaches serves the next one.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from eos.pulsar.protocol.topics import whole_topic

_CUT = 8
"""A refused frame teaches an eighth of its size: from 1 MiB to 256 bytes within the five tries of a batch."""


class FrameLimits:
    """The limits that a process has learned: bytes of payload that fill a frame, by topic without partitions."""

    def __init__(self) -> None:
        self._learned: dict[str, int] = {}
        self._guard = threading.Lock()

    @property
    def learned(self) -> dict[str, int]:
        """A copy of all of them, to be learned by another process."""
        with self._guard:
            return dict(self._learned)

    def of(self, topic: str) -> int | None:
        """Return the limit of a topic; None where none was learned."""
        with self._guard:
            return self._learned.get(whole_topic(topic))

    def refused(self, partition: str, size: int) -> None:
        """Learn from a refused frame. Args: the physical topic; the frame's bytes of payload."""
        self.learn({whole_topic(partition): max(1, size // _CUT)})

    def learn(self, limits: Mapping[str, int]) -> None:
        """Learn what another process has; the smaller limit counts."""
        with self._guard:
            for topic, limit in limits.items():
                self._learned[topic] = min(limit, self._learned.get(topic, limit))
