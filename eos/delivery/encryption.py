"""Encrypts what a process sends, by a data key of its own.

Tasks get the public keys alone. Each process draws its own data key when it first encrypts something, and a new one
after some hours, as the producers of the official Java client do. Readers decrypt a data key once for all that it
encrypts.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from functools import lru_cache

from eos.config import EncryptionKeys
from eos.pulsar.wire.batch import Chunk
from eos.pulsar.wire.encryption import DataKey

LIFETIME_S = 4 * 60 * 60
"""Seconds that a data key is used for: the Java client's (ProducerImpl, 4.2.4)."""


class Encryptor:
    """Encrypts chunks for a set of public keys. Thread-safe: two data keys that are drawn at once do no harm."""

    def __init__(self, keys: EncryptionKeys) -> None:
        """Args: the public keys."""
        self._keys = keys
        self._current = self._draw()

    @property
    def overhead(self) -> int:
        """Bytes by which an encrypted frame is longer."""
        return self._data_key().overhead

    def encrypted(self, chunk: Chunk) -> Chunk:
        """Return the chunk with its payload encrypted, by a nonce that this data key never had before."""
        payload, envelope = self._data_key().encrypt(chunk.payload)
        return replace(chunk, payload=payload, envelope=envelope)

    def _data_key(self) -> DataKey:
        key, process, until = self._current
        # A forked child has its parent's data key, and would count the same nonces.
        if process != os.getpid() or time.monotonic() >= until:
            self._current = self._draw()
            key = self._current[0]
        return key

    def _draw(self) -> tuple[DataKey, int, float]:
        return DataKey(self._keys), os.getpid(), time.monotonic() + LIFETIME_S


@lru_cache(maxsize=64)
def encryptor_of(keys: EncryptionKeys) -> Encryptor:
    """Return this process's encryptor for these public keys."""
    return Encryptor(keys)
