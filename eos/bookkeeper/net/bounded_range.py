"""A range of a ledger's entries that ends where its bytes would no longer fit in memory. Pure."""

from __future__ import annotations

from collections.abc import Sequence

_FIRST_SINGLES = 16  # entries that are asked for one by one, all at once, before their sizes are seen

Entries = list[tuple[int, bytes]]
"""Numbers and payloads, in order."""


class BoundedRange:
    """Entries of a ledger that are read into memory together, without a gap, as many of them as fit there.

    Attributes:
        following: the entry that is read next.
        end: the first entry that is not wanted.
    """

    def __init__(self, first: int, count: int, most_bytes: int, average: int, beside: int) -> None:
        """Read nothing yet.

        Args:
            first: the first entry.
            count: how many entries are wanted.
            most_bytes: how many bytes fit in the memory.
            average: bytes of an entry that are expected.
            beside: bytes of an entry's size that are not its payload.
        """
        self.end = first + count
        self.following = first
        self._entries: Entries = []
        self._most_bytes, self._expected, self._beside = most_bytes, average, beside
        self._bytes = self._largest = 0

    @property
    def left(self) -> int:
        """How many entries are still wanted."""
        return self.end - self.following

    @property
    def bytes_left(self) -> int:
        """Bytes that still fit."""
        return self._most_bytes - self._bytes

    @property
    def full(self) -> bool:
        """Whether no entry is wanted, or an entry as large as the largest would no longer fit."""
        return not self.left or (bool(self._entries) and self._largest > self.bytes_left)

    @property
    def average(self) -> int:
        """Bytes of an entry, rounded up."""
        return -(-self._bytes // len(self._entries)) if self._entries else self._expected

    @property
    def singles(self) -> int:
        """How many entries to ask for one by one, all at once: few, until their sizes are seen."""
        fit = (
            self.bytes_left * len(self._entries) // self._bytes if self._entries else self.bytes_left // self._expected
        )
        return max(1, min(self.left, fit, max(_FIRST_SINGLES, 3 * len(self._entries))))

    @property
    def rest(self) -> BoundedRange:
        """The entries that are still wanted."""
        return BoundedRange(self.following, self.left, self._most_bytes, self.average, self._beside)

    def take(self) -> Entries:
        """Return the entries that were read, and hold them no longer."""
        taken, self._entries = self._entries, []
        return taken

    def add(self, payloads: Sequence[bytes]) -> None:
        """Take the payloads of the following entries."""
        for payload in payloads:
            size = len(payload) + self._beside
            self._entries.append((self.following, payload))
            self.following += 1
            self._bytes += size
            self._largest = max(self._largest, size)
