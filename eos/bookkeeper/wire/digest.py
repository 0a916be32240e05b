"""An entry as a bookie stores it, and the digest that proves it whole.

    ledger:i64  entry:i64  last add confirmed:i64  length:i64  digest  payload

The digest covers the 32 bytes before it and the payload after it (BookKeeper's DigestManager). Pulsar writes the
ledgers of topics with CRC32C, and compacted ledgers with CRC32.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
import zlib
from enum import Enum

import google_crc32c

_HEAD = struct.Struct(">qqqq")


class Digest(Enum):
    """How the entries of a ledger are protected; the value is the digest's bytes."""

    CRC32C = 4
    CRC32 = 8
    HMAC = 20
    DUMMY = 0


class StoredEntries:
    """Takes the stored entries of one ledger apart."""

    def __init__(self, ledger: int, digest: Digest, password: bytes = b"") -> None:
        """Args: the ledger's id; its kind of digest; its password, which only HMAC needs."""
        self._ledger = ledger
        self._digest = digest
        self._key = hashlib.sha1(b"mac" + password).digest()
        self._skipped = _HEAD.size + digest.value

    @property
    def head_bytes(self) -> int:
        """Bytes of a stored entry before its payload."""
        return self._skipped

    def payload(self, entry: int, stored: bytes) -> bytes | None:
        """Return the payload of a stored entry; None where these bytes are not that entry, undamaged."""
        if len(stored) < self._skipped or _HEAD.unpack_from(stored)[:2] != (self._ledger, entry):
            return None
        payload = stored[self._skipped :]
        right = self._digest_of(stored[: _HEAD.size], payload)
        return payload if stored[_HEAD.size : self._skipped] == right else None

    def stored(self, entry: int, last_confirmed: int, length: int, payload: bytes) -> bytes:
        """Return an entry as a bookie stores it.

        Args: its number; the last entry that was confirmed when it was added; the bytes of the ledger's payloads up to
        and with this one; its payload.
        """
        head = _HEAD.pack(self._ledger, entry, last_confirmed, length)
        return head + self._digest_of(head, payload) + payload

    def _digest_of(self, head: bytes, payload: bytes) -> bytes:
        match self._digest:
            case Digest.CRC32C:
                crc: int = google_crc32c.extend(google_crc32c.value(head), payload)
                return crc.to_bytes(4)
            case Digest.CRC32:
                return zlib.crc32(payload, zlib.crc32(head)).to_bytes(8)
            case Digest.HMAC:
                return hmac.new(self._key, head + payload, hashlib.sha1).digest()
            case Digest.DUMMY:
                return b""
