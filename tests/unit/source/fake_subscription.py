"""A subscription that remembers what was done with it."""

from __future__ import annotations

from eos.pulsar.wire.message_id import EntryId
from tests.unit.source.fake_brokers import at


class FakeSubscription:
    """One that a query has made, if `new`, or found; its deletion, and its first step, end with these errors."""

    def __init__(self, *, new: bool = True, deleted: Exception | None = None, moved: Exception | None = None) -> None:
        self.new, self.deleted, self.moved = new, deleted, moved
        self.done: list[str] = []

    def made(self) -> bool:
        return self.new

    def last_message_id(self) -> tuple[EntryId, EntryId]:
        return at("5:9"), at("5:-1")

    def acknowledge(self, entry: EntryId) -> None:
        self._do(f"acknowledge {entry}", self.moved)

    def delete(self) -> None:
        self._do("delete", self.deleted)

    def close(self) -> None:
        self._do("close", None)

    def _do(self, what: str, error: Exception | None) -> None:
        self.done.append(what)
        if error is not None:
            raise error
