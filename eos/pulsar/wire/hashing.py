"""The key hashes of the official clients, over a whole column at once.

All three work on a key's form on the wire (its text, see `keys`), and give a number of 31 bits:

- murmur3: Murmur3_32Hash of pulsar-common, seed 0, over the UTF-8 bytes.
- java: JavaStringHash of the Java client, String.hashCode, over the UTF-16 units.
- boost: BoostHash of the C++ and Python clients, over the UTF-8 bytes. Boost changed its hash of
  strings in 1.81; this is the newer one, which pulsar-client 3.13 has. Clients that were built with an
  older Boost choose other partitions.

A column is hashed in steps: each mixes in the next word of all keys that still have a whole one. That is fast for
many short keys, and slow for a long one, whose steps are many and small: `long_keys` hashes those one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eos.config import KeyHash
from eos.pulsar.wire.keys import flat
from eos.pulsar.wire.long_keys import BOOST_FACTOR, BOOST_STEP, LONG_HASHES, fold

_Bytes = npt.NDArray[Any]
_Places = npt.NDArray[np.int64]
_Hashes = npt.NDArray[Any]
_Hash = Callable[[_Bytes, _Places, _Places], _Hashes]

_SIGN_MASK = 0x7FFFFFFF
_KEYS_AT_ONCE = 32 * 1024  # so that what is computed between two steps stays in a processor's cache
_LAID_OUT_BYTES = 4 * 1024 * 1024  # of keys; laid out, they take four times as much, or eight

LONG_KEY_BYTES = 1024
"""Longer keys are hashed one by one."""


def hash_keys(keys: pa.Array, key_hash: KeyHash) -> npt.NDArray[np.int64]:
    """Return the hash of each key, from 0 to 2**31 - 1; shape (keys,). A null is hashed as an empty key.

    `keys` are binary or large_binary and hold UTF-8.
    """
    data, offsets = flat(keys)
    hashes = np.empty(len(keys), dtype=np.int64)
    for first in range(0, len(keys), _KEYS_AT_ONCE):
        part = offsets[first : first + _KEYS_AT_ONCE + 1]
        hashed = _hash_part(data[part[0] : part[-1]], part - part[0], key_hash)
        hashes[first : first + _KEYS_AT_ONCE] = hashed & hashed.dtype.type(_SIGN_MASK)
    return hashes


def _hash_part(data: _Bytes, offsets: _Places, key_hash: KeyHash) -> _Hashes:
    starts, ends = offsets[:-1], offsets[1:]
    alone = np.flatnonzero(ends - starts > LONG_KEY_BYTES)
    if not alone.size:
        return _HASHES[key_hash](data, starts, ends)
    others = ends.copy()
    others[alone] = starts[alone]  # as empty keys
    hashed = _HASHES[key_hash](data, starts, others)
    for index in alone:
        hashed[index] = LONG_HASHES[key_hash](data[starts[index] : ends[index]])
    return hashed


class _Words:
    """Keys cut into little-endian words; the longest keys first, so that each step is a prefix of the last."""

    def __init__(self, data: npt.NDArray[Any], starts: _Places, ends: _Places, word: str) -> None:
        self.bytes = np.dtype(word).itemsize
        item = data.dtype.itemsize
        padded = np.concatenate((data.view(np.uint8), np.zeros(self.bytes, dtype=np.uint8)))
        self._words: npt.NDArray[Any] = np.ndarray(len(padded) - self.bytes + 1, word, padded, strides=(1,))
        if padded.nbytes <= _LAID_OUT_BYTES:
            # A word at each byte: numpy picks words that are aligned several times faster.
            self._words = np.ascontiguousarray(self._words)
        lengths = (ends - starts) * item
        whole = lengths // self.bytes
        alike = len(whole) == 0 or whole.min() == whole.max()
        self._order: npt.NDArray[Any] | slice = slice(None) if alike else np.argsort(-whole, kind="stable")
        self.lengths = lengths[self._order]
        self._starts = starts[self._order] * item
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


def _murmur3(data: _Bytes, starts: _Places, ends: _Places) -> _Hashes:
    words = _Words(data, starts, ends, "<u4")
    state = np.zeros(len(starts), dtype=np.uint32)
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


def _java(data: _Bytes, starts: _Places, ends: _Places) -> _Hashes:
    """Mix four units a step: h * 31**4 + a * 31**3 + b * 31**2 + c * 31 + d."""
    if data.size and data.max() >= 0x80:
        data, before = _utf16(data)
        starts, ends = before[starts], before[ends]
    words = _Words(data, starts, ends, f"<u{4 * data.itemsize}")
    state = np.zeros(len(starts), dtype=np.uint32)
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


def _utf16(data: _Bytes) -> tuple[npt.NDArray[Any], _Places]:
    """Return the UTF-16 units, and how many of them come before each byte."""
    units = np.frombuffer(data.tobytes().decode().encode("utf-16-le"), dtype=np.uint16)
    # A continuation byte starts no unit; the first byte of a four-byte sequence starts two.
    started = np.where(data & 0xC0 == 0x80, 0, np.where(data >= 0xF0, 2, 1))
    before = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(started, dtype=np.int64)))
    return units, before


def _boost(data: _Bytes, starts: _Places, ends: _Places) -> _Hashes:
    words = _Words(data, starts, ends, "<u8")
    step = np.uint64(BOOST_STEP)
    salt = fold(np.full(len(starts), step), BOOST_FACTOR)
    state = salt ^ words.lengths.astype(np.uint64)
    for rows, word in words.steps():
        salt[rows] += step
        state[rows] ^= fold(word + salt[rows], BOOST_FACTOR)
    salt += step
    state ^= fold(words.tails() + salt, BOOST_FACTOR)
    return words.restore(fold(state + salt, BOOST_FACTOR))


_HASHES: dict[KeyHash, _Hash] = {"murmur3": _murmur3, "java": _java, "boost": _boost}
