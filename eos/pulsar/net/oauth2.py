"""Tokens of OAuth 2.0, asked for by client credentials (RFC 6749, 4.4) where OpenID discovery says, as Pulsar's own
clients do. A process keeps a token for nine tenths of its life, as the Java client does (its expiryAdjustment).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote_plus

import httpx

from eos.config import Credentials, OAuth2, Tls
from eos.credentials import CLIENT_CREDENTIALS, SecretUnreadable, key_of, text_of
from eos.errors import BadCredentials, InvalidInput, NoCredentials
from eos.pulsar.net.http import by_proxy, http_client
from eos.pulsar.net.transport import tls_context

_OF_ITS_LIFE = 0.9
_DISCOVERY = "/.well-known/openid-configuration"
_LONGEST = 200  # characters of an endpoint's words in a message

ADVICE = {
    "invalid_client": "Check client_id and client_secret, or the key file",
    "invalid_scope": "Check scope",
    "invalid_target": "Check audience",
    "unauthorized_client": "Allow this client the grant client_credentials, at the issuer",
    "unsupported_grant_type": "The issuer knows no client credentials",
}
"""{an error code of RFC 6749, 5.2, or RFC 8707: what helps}."""

_PASSING = ("temporarily_unavailable", "server_error", "slow_down")


class _Held(NamedTuple):
    token: str
    until: float


_kept: dict[OAuth2, _Held] = {}


def kept(given: OAuth2) -> str | None:
    """Return the token that was asked for before, while it is fresh."""
    found = _kept.get(given)
    return found.token if found is not None and time.monotonic() < found.until else None


def forget(given: OAuth2) -> None:
    """Keep this token no longer: it is not accepted."""
    _kept.pop(given, None)


def ask(given: OAuth2, timeout_s: float) -> str:
    """Ask the issuer for a token, and keep it. Args: whose; seconds for any answer.

    Raises:
        NoCredentials: the issuer is out of reach, or says that it can't now; the key file can't be read.
        BadCredentials: it refuses, or what it says is none of OAuth 2.0.
    """
    client_id, client_secret = _client(given)
    form = {"grant_type": CLIENT_CREDENTIALS, "client_id": client_id, "client_secret": client_secret}
    form |= {name: one for name, one in (("audience", given.audience), ("scope", given.scope)) if one is not None}
    discovery = given.issuer_url.rstrip("/") + _DISCOVERY
    with _http(given, timeout_s) as http:
        found = _answer(http, http.build_request("GET", discovery), client_secret)
        endpoint = _endpoint(found.get("token_endpoint"))
        if endpoint is None:
            raise BadCredentials(f"{discovery} names no token_endpoint. Check issuer_url")
        if httpx.URL(given.issuer_url).scheme == "https" and endpoint.scheme != "https":
            raise BadCredentials(
                f"{discovery} names the token_endpoint {endpoint}. The secret would travel in the open"
            )
        asked = time.monotonic()
        told = _answer(http, http.build_request("POST", endpoint, data=form), client_secret)
    token, lives_s = told.get("access_token"), _number(told.get("expires_in"))
    if not isinstance(token, str):
        raise BadCredentials(f"{endpoint} answered without an access_token")
    if lives_s is not None:
        _kept[given] = _Held(token, asked + lives_s * _OF_ITS_LIFE)
    return token


def _endpoint(told: object) -> httpx.URL | None:
    """Return an address that can be asked; None for anything else."""
    try:
        url = httpx.URL(told) if isinstance(told, str) else None
    except httpx.InvalidURL:
        return None
    return url if url is not None and url.scheme in ("http", "https") and url.host else None


def _number(told: object) -> float | None:
    """Return a number, which some issuers write as a text."""
    try:
        return float(told) if isinstance(told, int | float | str) else None
    except (ValueError, OverflowError):
        return None


def _client(given: OAuth2) -> tuple[str, str]:
    if given.key_file is None:
        return given.client_id, given.client_secret
    try:
        return key_of(text_of(Path(given.key_file)), f"the key file {given.key_file}")
    except SecretUnreadable as why:
        raise NoCredentials(f"can't read the key file {given.key_file}: {why}") from None
    except InvalidInput as error:
        raise BadCredentials(str(error)) from None


def _http(given: OAuth2, timeout_s: float) -> httpx.Client:
    try:
        trust = tls_context(Tls(given.trust_certs), Credentials())
        return http_client(given.issuer_url, timeout_s=timeout_s, verify=trust, headers={"Accept": "application/json"})
    except InvalidInput as error:
        raise BadCredentials(f"oauth2: {error}") from error


def _answer(http: httpx.Client, request: httpx.Request, secret: str) -> dict[str, object]:
    """Return the JSON object that comes back. A POST is not sent on to where a redirect leads: it has the secret."""
    url, discovers = request.url, request.method == "GET"
    try:
        answer = http.send(request, follow_redirects=discovers)
    except httpx.HTTPError as error:
        advice = _TRUST if "CERTIFICATE_VERIFY_FAILED" in str(error) else _REACH
        raise NoCredentials(
            f"can't ask {url} for a token: {error or type(error).__name__}. {advice}{by_proxy(str(url))}"
        ) from None
    if url.scheme == "https" and any(one.url.scheme != "https" for one in (*answer.history, answer)):
        # Anybody on the way could have named a token endpoint, which gets the secret.
        raise BadCredentials(
            f"{url} leads on to an address without TLS. Its answer is not trusted with the secret. Check issuer_url"
        )
    try:
        told = answer.json()
    except ValueError:
        told = None
    if answer.is_success and isinstance(told, dict):
        return told
    code, words = _words(told, secret)
    said = f"{url} answered {answer.status_code}{f' {code}' if code else ''}{f': {words}' if words else ''}"
    if answer.is_server_error or answer.status_code == httpx.codes.TOO_MANY_REQUESTS or code in _PASSING:
        raise NoCredentials(said)
    raise BadCredentials(f"{said}. {ADVICE.get(code, 'Check issuer_url' if discovers else _REFUSED)}")


_TRUST = "Check trust_certs of oauth2, and the host name in the issuer's certificate"
_REACH = "Check that the issuer is up, and issuer_url"
_REFUSED = "The issuer gives no token; what it wants may stand in its own log"


def _words(told: object, secret: str) -> tuple[str, str]:
    """Return code and words of a refusal (RFC 6749, 5.2), without the secret, which an issuer may repeat."""
    if not isinstance(told, dict):
        return "", ""
    code, words = (
        str(told.get(name, "")).replace(secret, "…").replace(quote_plus(secret), "…")[:_LONGEST]
        for name in ("error", "error_description")
    )
    return code, words
