"""The key hashes of `hashing` over one long key at a time, in a number of Python steps that hardly grows with it.

java and boost are sums over a key's words, each with a factor of its own, so that a whole block of words is one step of
numpy. Murmur3 is not such a sum: a library in C does it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mmh3
import numpy as np
import numpy.typing as npt

from eos.config import KeyHash

_BLOCK = 64 * 1024  # words a step

BOOST_STEP = 0x9E3779B97F4A7C15
BOOST_FACTOR = np.uint64(BOOST_STEP * BOOST_STEP % 2**64)


def fold(numbers: npt.NDArray[np.uint64], factor: np.uint64) -> npt.NDArray[np.uint64]:
    """Return the upper half of the 128-bit products, xor the lower half."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    low, high = numbers & mask, numbers >> half
    factor_low, factor_high = factor & mask, factor >> half
    middle = high * factor_low + (low * factor_low >> half)
    other = low * factor_high + (middle & mask)
    upper = high * factor_high + (middle >> half) + (other >> half)
    folded: npt.NDArray[np.uint64] = upper ^ numbers * factor
    return folded


def _murmur3(key: npt.NDArray[np.uint8]) -> int:
    return mmh3.hash(key.tobytes(), 0, signed=False)


def _java(key: npt.NDArray[np.uint8]) -> int:
    """Return the polynomial in 31 of the UTF-16 units: a block is its own polynomial, after those before it."""
    text = key.tobytes()
    units = np.frombuffer(text.decode().encode("utf-16-le"), dtype="<u2").astype(np.uint32)
    powers = np.cumprod(np.full(min(_BLOCK, len(units)) + 1, 31, dtype=np.uint32), dtype=np.uint32)
    powers = np.concatenate((np.ones(1, dtype=np.uint32), powers))  # 31**0, 31**1, ...
    state = 0
    for first in range(0, len(units), _BLOCK):
        block = units[first : first + _BLOCK]
        value = int((block * powers[: len(block)][::-1]).sum(dtype=np.uint32))
        state = (state * int(powers[len(block)]) + value) % 2**32
    return state


def _boost(key: npt.NDArray[np.uint8]) -> int:
    """Return the xor of the folded words, each with the salt of its place."""
    whole = len(key) // 8
    words = np.zeros(whole + 1, dtype="<u8")  # the last is the tail, padded with zero bytes
    words.view(np.uint8)[: len(key)] = key
    first_salt = fold(np.full(1, BOOST_STEP, dtype=np.uint64), BOOST_FACTOR)  # arrays of one: numpy's scalars warn
    state = first_salt ^ np.uint64(len(key))
    salt = first_salt
    for first in range(0, len(words), _BLOCK):
        block = words[first : first + _BLOCK]
        salts = first_salt + np.uint64(BOOST_STEP) * np.arange(first + 1, first + len(block) + 1, dtype=np.uint64)
        state ^= np.bitwise_xor.reduce(fold(block + salts, BOOST_FACTOR))
        salt = salts[-1:]
    return int(fold(state + salt, BOOST_FACTOR)[0])


LONG_HASHES: dict[KeyHash, Callable[[npt.NDArray[Any]], int]] = {"murmur3": _murmur3, "java": _java, "boost": _boost}
"""{hash: over the UTF-8 bytes of one key; 32 or 64 bits}."""
