"""Who we are, as a broker or the admin API wants to hear it."""

from __future__ import annotations

from pathlib import Path

from eos.config import Credentials
from eos.errors import InvalidInput

_FILE = "file:"


def secret(credentials: Credentials) -> str:
    """Return the credentials' data, read anew when it is "file:PATH". Raises InvalidInput."""
    data = credentials.data
    if not data.startswith(_FILE):
        return data
    path = data.removeprefix(_FILE).removeprefix("//")
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise InvalidInput(f"can't read the credentials for '{credentials.method}' authentication: {error}") from error


def auth_data(credentials: Credentials) -> bytes:
    """Return what CONNECT carries: the token, "user:password", or nothing for "none" and "tls"."""
    if credentials.method in ("none", "tls"):
        return b""
    return secret(credentials).encode()
