"""How many messages the broker may send ahead, so that about so many bytes wait for the caller."""

from __future__ import annotations

FIRST = 100
"""Permits before any message was seen: a broker reads up to 100 entries at a time (dispatcherMaxReadBatchSize)."""

OVERSHOOT_BYTES = 16 * 1024 * 1024
"""Bytes that may come without a permit: a broker that has one reads 5 MB, or one larger entry."""


class Permits:
    """A budget of bytes, granted in messages. Not thread-safe.

    Attributes:
        held_bytes: bytes that arrived and were not handed out.
        overdrawn: whether something had to be dropped, since far more arrived than was asked for.
    """

    def __init__(self, most: int, max_bytes: int) -> None:
        """Args: messages that may be granted ahead, at most; bytes to hold, about."""
        self._most = most
        self._max_bytes = max_bytes
        self._outstanding = 0
        self._seen_bytes = 0
        self._seen_messages = 0
        self._ceiling = most
        self.held_bytes = 0
        self.overdrawn = False

    @property
    def used_up(self) -> bool:
        """Whether nothing more comes until more is granted."""
        return self.overdrawn or self._outstanding <= 0

    def start(self, *, slowly: bool) -> None:
        """Begin again on a line without permits, and with nothing held.

        Args:
            slowly: begin with a single message, and double at each `release`: an entry that ends every line then takes
                no others with it, each time, that nobody has had yet.
        """
        self._outstanding = 0
        self._ceiling = 1 if slowly else self._most
        self.held_bytes = 0
        self.overdrawn = False

    def spend(self, size: int, messages: int) -> None:
        """Note that an entry arrived. Args: its bytes and its messages. Each message took a permit."""
        self._outstanding -= messages
        self._seen_bytes += size
        self._seen_messages += messages
        if self._seen_bytes > self._max_bytes:  # so that the average follows what comes now
            self._seen_bytes //= 2
            self._seen_messages = max(1, self._seen_messages // 2)

    def hold(self, size: int) -> bool:
        """Make room for an entry of so many bytes; False, and overdrawn, when it must be dropped."""
        if self.held_bytes and self.held_bytes + size > 2 * self._max_bytes + OVERSHOOT_BYTES:
            self.overdrawn = True
        if not self.overdrawn:
            self.held_bytes += size
        return not self.overdrawn

    def release(self) -> None:
        """Note that all that was held was handed out."""
        self.held_bytes = 0
        self._ceiling = min(2 * self._ceiling, self._most)

    def grant(self) -> int:
        """Return the permits to give the broker now, 0 for none; they count as given."""
        target = self._target()
        if self.overdrawn or not target or 2 * self._outstanding > target:
            return 0
        given = target - self._outstanding
        self._outstanding = target
        return given

    def _target(self) -> int:
        if not self._seen_messages:
            return min(FIRST, self._ceiling)
        room = max(0, self._max_bytes - self.held_bytes)
        target = min(room * self._seen_messages // max(1, self._seen_bytes), self._ceiling)
        return target if self.held_bytes else max(1, target)
