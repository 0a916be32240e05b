"""Key pairs for end-to-end encryption. A test that imports this is skipped where the extra `encryption` is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

_asymmetric = "cryptography.hazmat.primitives.asymmetric"
rsa, ec = (pytest.importorskip(f"{_asymmetric}.{name}") for name in ("rsa", "ec"))
pem = pytest.importorskip("cryptography.hazmat.primitives.serialization")


class KeyPair(NamedTuple):
    """Both halves of a key as PEM text."""

    public: str
    private: str

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """Write both halves down; return where, the public one first."""
        public, private = folder / f"{name}.public.pem", folder / f"{name}.pem"
        public.write_text(self.public)
        private.write_text(self.private)
        return public, private


def key_pair(bits: int = 2048) -> KeyPair:
    """Return a fresh key of RSA."""
    return _pair(rsa.generate_private_key(65537, bits))


def curve_pair() -> KeyPair:
    """Return a fresh key of an elliptic curve."""
    return _pair(ec.generate_private_key(ec.SECP256R1()))


def locked(pair: KeyPair) -> str:
    """Return the private half, locked by a passphrase."""
    key = pem.load_pem_private_key(pair.private.encode(), None)
    lock = pem.BestAvailableEncryption(b"passphrase")
    return str(key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, lock).decode())


def _pair(key: Any) -> KeyPair:
    public = key.public_key().public_bytes(pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo)
    private = key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())
    return KeyPair(public.decode(), private.decode())
