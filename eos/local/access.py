"""Authentication by token, for a local Pulsar: a key and an administrator's token of its own, made once.

The token is a JSON web token signed with HMAC-SHA256 (RFC 7519, RFC 7515), as Pulsar's AuthenticationProviderToken
reads it with a `tokenSecretKey`.
"""

from __future__ import annotations

import base64
import hmac
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from eos.config import Credentials
from eos.local.checks import LocalError, make_folder
from eos.local.settings import Setting

ADMINISTRATOR = "admin"
"""The role of the token."""

_KEY, _TOKEN = "token.key", "token"
FILES = (_KEY, _TOKEN)
_KEY_BYTES = 32


def token_file(home: Path) -> Path:
    """The file with the administrator's token, in an instance's folder."""
    return home / _TOKEN


def credentials(home: Path) -> Credentials:
    """Those of the administrator, where the instance in this folder asks for a token; else none."""
    file = token_file(home)
    return Credentials("token", f"file:{file}") if file.exists() else Credentials()


def require_tokens(home: Path) -> dict[str, Setting]:
    """Make the key and the token in this folder unless they are there; return the broker settings that ask for it."""
    key, token = home / _KEY, token_file(home)
    if not token.exists():
        make_folder(home)
        _write_secret(key, secrets.token_bytes(_KEY_BYTES))
        _write_secret(token, signed({"sub": ADMINISTRATOR}, key.read_bytes()).encode())
    return {
        "authenticationEnabled": True,
        "authorizationEnabled": True,
        "superUserRoles": ADMINISTRATOR,
        "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
        "tokenSecretKey": key.absolute().as_uri(),
        "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
        "brokerClientAuthenticationParameters": token.absolute().as_uri(),
    }


def refuse_half(settings: Mapping[str, Setting]) -> None:
    """Refuse a setting that would shut out every client, `eos local up` included.

    Raises:
        LocalError: authentication is turned on without a token.
    """
    if str(settings.get("authenticationEnabled", False)).lower() == "true":
        raise LocalError(
            "--setting authenticationEnabled=true alone shuts out every client, and `eos local up` could not tell when "
            "Pulsar is up. Use --auth token. It makes a key and an administrator's token, and sets what belongs to them"
        )


def signed(claims: Mapping[str, str | int], key: bytes) -> str:
    """Return a token with these claims, such as "sub", the role, and "exp", the second since 1970 when it expires."""
    parts = ".".join(_text(json.dumps(part).encode()) for part in ({"alg": "HS256"}, claims))
    return f"{parts}.{_text(hmac.digest(key, parts.encode(), 'sha256'))}"


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _write_secret(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
