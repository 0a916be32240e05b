"""The numbers of small messages, up to the longest, and where one does not end."""

from __future__ import annotations

import numpy as np
import pytest

from eos.pulsar.wire.fields import Fields, joined, parse

NUMBER = 1
TAG = bytes([NUMBER << 3])
ANY = np.ones(256, np.bool_)


def varint(number: int) -> bytes:
    groups = [number >> bits & 0x7F for bits in range(0, max(number.bit_length(), 1), 7)]
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def parsed(messages: list[bytes]) -> Fields:
    data, bounds = joined(messages)
    return parse(data, bounds[:-1], bounds[1:], ANY, {NUMBER})


@pytest.mark.parametrize("size", range(1, 11))
def test_numbers_of_up_to_so_many_bytes(size: int) -> None:
    least = [1 << bits for bits in range(0, min(7 * size, 64), 7)]
    numbers = [0, *(number for one in least for number in (one - 1, one)), min(1 << 7 * size, 1 << 64) - 1]
    found = parsed([TAG + varint(number) for number in numbers])
    assert found.valid.all()
    assert found.of(NUMBER).number.view(np.uint64).tolist() == numbers


def test_bits_beyond_the_64th_are_dropped_as_protobuf_drops_them() -> None:
    found = parsed([TAG + b"\xff" * 9 + b"\x7f", TAG + b"\1"])
    assert found.valid.all()
    assert found.of(NUMBER).number.tolist() == [-1, 1]


@pytest.mark.parametrize("endless", [b"\x80" * 10 + TAG + b"\1", b"\xff" * 11, b"\x80" * 9, b"\xff", b""])
def test_a_number_that_does_not_end_makes_its_message_invalid_and_no_other(endless: bytes) -> None:
    """Also that of the last message, behind which nothing follows."""
    assert parsed([TAG + b"\1", TAG + endless]).valid.tolist() == [True, False]
    assert parsed([TAG + endless, TAG + b"\1"]).valid.tolist() == [False, True]
