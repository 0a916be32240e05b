from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pulsar
import pytest

from statestore.drills.chaos import plain_writer
from statestore.drills.judge.copies import key_of, value_of


class FakeProducer:
    """Gives receipts for all but some rows, at the flush."""

    def __init__(self, *refused: int, error: bool = False) -> None:
        self.sent: list[tuple[bytes, str]] = []
        self._refused, self._error = refused, error
        self._takers: list[Any] = []

    def send_async(self, value: bytes, take: Any, partition_key: str, event_timestamp: int) -> None:
        assert event_timestamp > 1_700_000_000_000
        self.sent.append((value, partition_key))
        self._takers.append(take)

    def flush(self) -> None:
        for place, take in enumerate(self._takers):
            take(pulsar.Result.Timeout if place in self._refused else pulsar.Result.Ok, SimpleNamespace())
        if self._error:
            raise pulsar.PulsarException("gone")


@pytest.mark.parametrize("error", [False, True])
def test_rows_without_a_receipt_are_in_doubt(error: bool) -> None:
    producer = FakeProducer(3, 4, 9, error=error)
    assert plain_writer._send(producer, 100, 110) == [
        ("committed", 100, 103),
        ("in-doubt", 103, 105),
        ("committed", 105, 109),
        ("in-doubt", 109, 110),
    ]
    keys = [key_of("plain", number) for number in range(100, 110)]
    assert producer.sent == [(value_of(key, number), key) for key, number in zip(keys, range(100, 110), strict=True)]
