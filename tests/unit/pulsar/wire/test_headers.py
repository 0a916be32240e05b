"""Where messages are looked for: all of them are found at the first look, or at the second."""

from __future__ import annotations

import struct
from random import Random

import numpy as np
import pytest

from eos.pulsar.wire import headers
from eos.pulsar.wire.fields import joined
from eos.pulsar.wire.headers import find
from eos.pulsar.wire.pulsar_pb2 import SingleMessageMetadata


def message(value: bytes, key: bytes | None = None) -> bytes:
    own = SingleMessageMetadata(payload_size=len(value))
    if key is not None:
        own.partition_key = key
    described = own.SerializeToString()
    return struct.pack(">I", len(described)) + described + value


def starts(batches: list[list[bytes]]) -> list[int] | None:
    """Return where the messages begin, as far as they are found."""
    data, bounds = joined([b"".join(batch) for batch in batches])
    found = find(data, bounds, np.array([len(batch) for batch in batches]), (), ())
    return None if found is None else found.starts.tolist()


def right(batches: list[list[bytes]]) -> list[int]:
    sizes = [len(one) for batch in batches for one in batch]
    return [sum(sizes[:place]) for place in range(len(sizes))]


@pytest.fixture
def first_look_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """In stretches so small that headers lie at and around their ends."""

    def no(*_: object) -> None:
        raise AssertionError("it should have been found at the first look")

    monkeypatch.setattr(headers, "_below_64k", no)
    monkeypatch.setattr(headers, "_STRETCH", 64)


@pytest.mark.usefixtures("first_look_only")
@pytest.mark.parametrize("seed", range(40))
def test_headers_below_256_bytes_are_found_at_any_place(seed: int) -> None:
    """Also the smallest message, of no bytes, at the very end, and values that begin and end with zeros."""
    random = Random(seed)

    def any_message() -> bytes:
        value = bytes(random.choices(b"\0\1x", (3, 1, 3), k=random.choice([0, 1, 2, 3, 50, 61, 200])))
        return message(value, random.choice([None, b"", b"k", b"k" * 100, b"k" * 245]))

    batches = [[any_message() for _ in range(random.randrange(1, 9))] for _ in range(5)]
    for last in (b"", b"\0", b"x\0\0"):
        whole = [*batches, [any_message(), message(last)]]
        assert starts(whole) == right(whole)


@pytest.mark.parametrize("size", [256, 1_000, 60_000])
@pytest.mark.parametrize("place", [0, 1, 7])
def test_larger_ones_are_found_at_the_second_look(size: int, place: int) -> None:
    messages = [message(b"value", b"key")] * 7
    for odd in (b"", b"x"):
        batch = [message(odd), *messages]
        batch.insert(place, message(b"a large one", b"k" * size))
        assert starts([batch]) == right([batch])


def test_where_the_first_is_large_nothing_is_looked_for_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "_below_256", None)
    batch = [message(b"value", b"k" * 300)] * 5
    assert starts([batch]) == right([batch])


def test_no_messages_are_none() -> None:
    assert starts([]) is None
