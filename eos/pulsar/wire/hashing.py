"""The key hashes of the official clients, over a whole column at once.

All three work on a key's form on the wire (its text, see `keys`), and give a number of 31 bits:

- murmur3: Murmur3_32Hash of pulsar-common, seed 0, over the UTF-8 bytes.
- java: JavaStringHash of the Java client, String.hashCode, over the UTF-16 units.
- boost: BoostHash of the C++ and Python clients, over the UTF-8 bytes. Boost changed its hash of
  strings in 1.81; this is the newer one, which pulsar-client 3.13 has. Clients that were built with an
  older Boost choose other partitions.

A column is hashed in steps: each mixes in the next word of all keys that still have a whole one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eos.config import KeyHash
from eos.pulsar.wire.keys import flat

_Bytes = npt.NDArray[Any]
_Offsets = npt.NDArray[np.int64]
_Hashes = npt.NDArray[Any]
_Hash = Callable[[_Bytes, _Offsets], _Hashes]

_SIGN_MASK = 0x7FFFFFFF
_KEYS_AT_ONCE = 32 * 1024  # so that what is computed between two steps stays in a processor's cache
_LAID_OUT_BYTES = 4 * 1024 * 1024  # of keys; laid out, they take four times as much, or eight


def hash_keys(keys: pa.Array, key_hash: KeyHash) -> npt.NDArray[np.int64]:
    """Return the hash of each key, from 0 to 2**31 - 1; shape (keys,). A null is hashed as an empty key.

    `keys` are binary or large_binary and hold UTF-8.
    """
    data, offsets = flat(keys)
    hashes = np.empty(len(keys), dtype=np.int64)
    for first in range(0, len(keys), _KEYS_AT_ONCE):
        part = offsets[first : first + _KEYS_AT_ONCE + 1]
        hashed = _HASHES[key_hash](data[part[0] : part[-1]], part - part[0])
        hashes[first : first + _KEYS_AT_ONCE] = hashed & hashed.dtype.type(_SIGN_MASK)
    return hashes


class _Words:
    """Keys cut into little-endian words; the longest keys first, so that each step is a prefix of the last."""

    def __init__(self, data: npt.NDArray[Any], offsets: _Offsets, word: str) -> None:
        self.bytes = np.dtype(word).itemsize
        item = data.dtype.itemsize
        padded = np.concatenate((data.view(np.uint8), np.zeros(self.bytes, dtype=np.uint8)))
        self._words: npt.NDArray[Any] = np.ndarray(len(padded) - self.bytes + 1, word, padded, strides=(1,))
        if padded.nbytes <= _LAID_OUT_BYTES:
            # A word at each byte: numpy picks words that are aligned several times faster.
            self._words = np.ascontiguousarray(self._words)
        lengths = np.diff(offsets) * item
        whole = lengths // self.bytes
        alike = len(whole) == 0 or whole.min() == whole.max()
        self._order: npt.NDArray[Any] | slice = slice(None) if alike else np.argsort(-whole, kind="stable")
        self.lengths = lengths[self._order]
        self._starts = offsets[:-1][self._order] * item
        self._whole = whole[self._order]

    def steps(self) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
        """Yield, for each step, the keys that have a whole word there, and those words."""
        falling = -self._whole
        for step in range(int(self._whole[0]) if len(self._whole) else 0):
            rows = slice(0, int(np.searchsorted(falling, -step, side="left")))
            yield rows, self._words[self._starts[rows] + step * self.bytes]

    def tails(self) -> npt.NDArray[Any]:
        """Return what is left of each key, padded with zero bytes to a word."""
        words: npt.NDArray[Any] = self._words[self._starts + self._whole * self.bytes]
        left = ((self.lengths - self._whole * self.bytes) * 8).astype(words.dtype)
        words &= (words.dtype.type(1) << left) - words.dtype.type(1)
        return words

    def restore(self, hashes: _Hashes) -> _Hashes:
        """Bring the hashes back into the order of the keys."""
        restored = np.empty_like(hashes)
        restored[self._order] = hashes
        return restored


def _murmur3(data: _Bytes, offsets: _Offsets) -> _Hashes:
    words = _Words(data, offsets, "<u4")
    state = np.zeros(len(offsets) - 1, dtype=np.uint32)
    for rows, word in words.steps():
        mixed = _rotate(state[rows] ^ _murmur3_word(word), 13)
        state[rows] = mixed * np.uint32(5) + np.uint32(0xE6546B64)
    state ^= _murmur3_word(words.tails())
    state ^= words.lengths.astype(np.uint32)
    state = (state ^ state >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    state = (state ^ state >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return words.restore(state ^ state >> np.uint32(16))


def _murmur3_word(word: _Hashes) -> _Hashes:
    return _rotate(word * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)


def _rotate(numbers: _Hashes, bits: int) -> _Hashes:
    return numbers << np.uint32(bits) | numbers >> np.uint32(32 - bits)


def _java(data: _Bytes, offsets: _Offsets) -> _Hashes:
    """Mix four units a step: h * 31**4 + a * 31**3 + b * 31**2 + c * 31 + d."""
    if data.size and data.max() >= 0x80:
        data, offsets = _utf16(data, offsets)
    words = _Words(data, offsets, f"<u{4 * data.itemsize}")
    state = np.zeros(len(offsets) - 1, dtype=np.uint32)
    for rows, word in words.steps():
        mixed = state[rows]
        for unit in range(4):
            mixed = mixed * np.uint32(31) + _unit(word, unit)
        state[rows] = mixed
    tails, left = words.tails(), words.lengths % words.bytes // data.itemsize
    for unit in range(3):
        state = np.where(left > unit, state * np.uint32(31) + _unit(tails, unit), state)
    return words.restore(state)


def _unit(words: _Hashes, place: int) -> npt.NDArray[np.uint32]:
    bits = words.itemsize * 8 // 4
    kind = words.dtype.type
    units: npt.NDArray[np.uint32] = (words >> kind(bits * place) & kind(2**bits - 1)).astype(np.uint32)
    return units


def _utf16(data: _Bytes, offsets: _Offsets) -> tuple[npt.NDArray[Any], _Offsets]:
    units = np.frombuffer(data.tobytes().decode().encode("utf-16-le"), dtype=np.uint16)
    # A continuation byte starts no unit; the first byte of a four-byte sequence starts two.
    started = np.where(data & 0xC0 == 0x80, 0, np.where(data >= 0xF0, 2, 1))
    before = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(started, dtype=np.int64)))
    return units, before[offsets]


_BOOST_STEP = 0x9E3779B97F4A7C15
_BOOST_FACTOR = np.uint64(_BOOST_STEP * _BOOST_STEP % 2**64)


def _boost(data: _Bytes, offsets: _Offsets) -> _Hashes:
    words = _Words(data, offsets, "<u8")
    step = np.uint64(_BOOST_STEP)
    salt = _fold(np.full(len(offsets) - 1, step), _BOOST_FACTOR)
    state = salt ^ words.lengths.astype(np.uint64)
    for rows, word in words.steps():
        salt[rows] += step
        state[rows] ^= _fold(word + salt[rows], _BOOST_FACTOR)
    salt += step
    state ^= _fold(words.tails() + salt, _BOOST_FACTOR)
    return words.restore(_fold(state + salt, _BOOST_FACTOR))


def _fold(numbers: _Hashes, factor: np.uint64) -> _Hashes:
    """Return the upper half of the 128-bit products, xor the lower half."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    low, high = numbers & mask, numbers >> half
    factor_low, factor_high = factor & mask, factor >> half
    middle = high * factor_low + (low * factor_low >> half)
    other = low * factor_high + (middle & mask)
    upper = high * factor_high + (middle >> half) + (other >> half)
    folded: _Hashes = upper ^ numbers * factor
    return folded


_HASHES: dict[KeyHash, _Hash] = {"murmur3": _murmur3, "java": _java, "boost": _boost}
