"""Count what a topic holds, with the official Pulsar client and nothing of `eos`.

A fresh subscription reads every partition from the earliest message until nothing comes
any more. It is the independent reader of the demo and of the tests.
"""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import pulsar

QUIET_MS = 2_000


def read_all(service_url: str, topic: str, quiet_ms: int = QUIET_MS) -> Iterator[pulsar.Message]:
    """Yield every readable message of a topic; end when none has come for `quiet_ms`."""
    client = pulsar.Client(service_url, logger=_quiet_logger())
    try:
        consumer = client.subscribe(
            topic,
            f"count-{uuid.uuid4().hex}",
            initial_position=pulsar.InitialPosition.Earliest,
            receiver_queue_size=10_000,
        )
        while True:
            try:
                message = consumer.receive(timeout_millis=quiet_ms)
            except pulsar.Timeout:
                break
            yield message
        consumer.unsubscribe()
    finally:
        client.close()


@dataclass(frozen=True)
class Account:
    """What was expected in a topic and what was found there.

    Attributes:
        expected, found: numbers of rows; `found` counts every copy.
        lost: expected and not found.
        duplicated: copies beyond the first.
        unexpected: found and never written.
        torn: batches of which a reader sees some rows and misses others.
    """

    expected: int
    found: int
    lost: int
    duplicated: int
    unexpected: int
    torn: int

    def is_exact(self) -> bool:
        """Tell whether every row is there exactly once."""
        return not (self.lost or self.duplicated or self.unexpected or self.torn)


def account(expected: Mapping[Hashable, Hashable], found: Iterable[Hashable]) -> Account:
    """Compare row ids found with those expected; `expected` maps each row id to its batch."""
    copies = Counter(found)
    missing = [row for row in expected if row not in copies]
    missed_in = {expected[row] for row in missing}
    seen_in = {batch for row, batch in expected.items() if row in copies}
    return Account(
        expected=len(expected),
        found=copies.total(),
        lost=len(missing),
        duplicated=sum(count - 1 for count in copies.values()),
        unexpected=sum(1 for row in copies if row not in expected),
        torn=len(missed_in & seen_in),
    )


def rows_of(service_url: str, topic: str, row_id: Callable[[pulsar.Message], Hashable]) -> list[Hashable]:
    """Return the id of every readable row of a topic, copies included."""
    return [row_id(message) for message in read_all(service_url, topic)]


def _quiet_logger() -> logging.Logger:
    logger = logging.getLogger("examples.pulsar_client")
    logger.setLevel(logging.ERROR)
    return logger
