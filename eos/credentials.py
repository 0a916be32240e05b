"""Which credentials a caller's options come to: one rule for the sink, the source and the command line."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from eos.addresses import is_host
from eos.config import FILE, Credentials, OAuth2, OAuth2Options, Provider, Tls
from eos.errors import InvalidInput
from eos.json_reader import read_json
from eos.option_names import did_you_mean

CLIENT_CREDENTIALS = "client_credentials"


class SecretUnreadable(Exception):
    """Says why a file can't be read, and nothing of what it holds."""


def text_of(path: Path) -> str:
    """Return the text of a file that may hold a secret. Raises SecretUnreadable, which knows no other error."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        why = error.strerror or type(error).__name__
    except UnicodeDecodeError:
        why = "it is not UTF-8"
    raise SecretUnreadable(why)


def is_no_path(given: str) -> bool:
    """Whether a text in place of a path may be the secret itself: PEM, JSON, a data: URL, or a text of many lines."""
    text = given.strip()
    if text.startswith(FILE):
        text = text.removeprefix(FILE).lstrip("/ ")
    return text.startswith(("-----BEGIN", "{")) or text[:5].lower() == "data:" or any(one in text for one in "\n\r\0")


def check_path(option: str, given: str | None) -> None:
    """Raise InvalidInput for a secret in place of a path. The message does not show it, as one about a file would."""
    if given is not None and is_no_path(given):
        raise InvalidInput(
            f"{option} must be the path of a file. It is a text such as the content of one, which is not shown here. "
            "Write the text into a file that only the job's user may read, on every machine, and give its path."
        )


def tls_of(
    trust_certs: str | None, verify_hostname: bool, certificate: str | None, key: str | None, prefix: str = ""
) -> Tls:
    """Return how to trust and be trusted. Args: as of `Tls`; what the names of these options begin with.

    Raises:
        InvalidInput: a certificate or a key is given as a text in place of a path, or one of them without the other.
    """
    for option, path in (("tls_trust_certs", trust_certs), ("tls_certificate", certificate), ("tls_key", key)):
        check_path(f"{prefix}{option}", path)
    if (certificate is None) != (key is None):
        raise InvalidInput(f"{prefix}tls_certificate and {prefix}tls_key belong together. Give both or neither.")
    return Tls(trust_certs, verify_hostname, certificate, key)


class OAuth2Option(NamedTuple):
    """An option of OAuth 2.0.

    Attributes:
        others: its names in the authParams of Pulsar's own clients, where they differ.
        meaning: one line of the docs.
    """

    others: tuple[str, ...]
    meaning: str


OAUTH2: Mapping[str, OAuth2Option] = {
    "issuer_url": OAuth2Option(("issuerUrl",), "what stands before `/.well-known/openid-configuration`"),
    "client_id": OAuth2Option(("clientId",), "of the client"),
    "client_secret": OAuth2Option(("clientSecret",), "of the client"),
    "key_file": OAuth2Option(
        ("privateKey", "private_key"),
        "in place of both: `file:PATH` of a JSON file with `client_id` and `client_secret`, on every machine, read at "
        "each request for a token; or `data:application/json;base64,…`",
    ),
    "audience": OAuth2Option((), "sent along, where the issuer wants it"),
    "scope": OAuth2Option((), "sent along, where the issuer wants it"),
    "trust_certs": OAuth2Option(("trustCertsFilePath",), "a PEM file of authorities, for the issuer's certificate"),
    "type": OAuth2Option((), "`client_credentials`, the one that there is"),
}

_DATA = "data:application/json;base64,"


def credentials_of(
    token: str | Provider | None, basic: str | None, oauth2: OAuth2Options | None, tls_certificate: str | None
) -> Credentials:
    """Return what these options come to; None: not given. A certificate counts where nothing else is given.

    Raises:
        InvalidInput: two of token, basic and oauth2 are given, oauth2 is wrong, or a secret stands in place of a path.
    """
    given = [name for name, one in (("token", token), ("basic", basic), ("oauth2", oauth2)) if one is not None]
    if len(given) > 1:
        raise InvalidInput(f"{' and '.join(given)} are {len(given)} ways to authenticate. Give one of them.")
    for name, text in (("token", token), ("basic", basic)):
        if isinstance(text, str) and text.startswith(FILE):
            check_path(name, text)
    if token is not None:
        return Credentials("token", token)
    if basic is not None:
        return Credentials("basic", basic)
    if oauth2 is not None:
        return Credentials("token", parse_oauth2(oauth2))
    return Credentials("tls") if tls_certificate is not None else Credentials()


def parse_oauth2(given: OAuth2Options) -> OAuth2:
    """Return the options of OAuth 2.0. Names of Pulsar's own clients count too; errors show no values but the issuer's.

    Args:
        given: the options, or the JSON object of them.

    Raises:
        InvalidInput: no object of texts; an unknown option, one given twice, missing or in vain.
    """
    options = _named(_object("oauth2", given))
    flow = options.pop("type", CLIENT_CREDENTIALS)
    if flow != CLIENT_CREDENTIALS:
        raise InvalidInput(f"oauth2 has the unknown type {flow!r}. The only type is {CLIENT_CREDENTIALS}.")
    if not _is_issuer(options.get("issuer_url", "")):
        raise InvalidInput(
            'oauth2 needs issuer_url, such as "https://issuer.example.com/". The address before '
            "/.well-known/openid-configuration, without a user."
        )
    key_file = options.pop("key_file", None)
    own = options.keys() & {"client_id", "client_secret"}
    if (key_file is None and len(own) < 2) or (key_file is not None and own):
        raise InvalidInput(
            'oauth2 needs client_id and client_secret, or in place of both key_file="file:PATH" of a JSON file that '
            "has them."
        )
    if key_file is not None and key_file.startswith("data:"):
        options |= _held(key_file)
    elif key_file is not None:
        check_path("oauth2: key_file", key_file)
        options["key_file"] = key_file.removeprefix(FILE).removeprefix("//")
    check_path("oauth2: trust_certs", options.get("trust_certs"))
    return OAuth2(**options)


def _is_issuer(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:  # such as a bracket without its other, and a port that is not a number
        return False
    return parts.scheme in ("http", "https") and is_host(parts.hostname or "") and parts.username is None


def key_of(text: str, source: str) -> tuple[str, str]:
    """Return id and secret of a client from the JSON of a key file. Args: the text; where from. Raises InvalidInput."""
    found = _object(source, text)
    client_id, client_secret = found.get("client_id", ""), found.get("client_secret", "")
    if not client_id or not client_secret:
        raise InvalidInput(f"{source} lacks client_id or client_secret.")
    return client_id, client_secret


def _held(key_file: str) -> dict[str, str]:
    try:
        text = base64.b64decode(key_file.removeprefix(_DATA), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        text = ""  # said without the error, whose words may show the secret
    client_id, client_secret = key_of(text, f'oauth2: key_file="{_DATA}…"')
    return {"client_id": client_id, "client_secret": client_secret}


def _object(source: str, given: OAuth2Options) -> dict[str, str]:
    """Return an object of texts; those that are empty or null count as not given."""
    found: object = given
    if isinstance(given, str):
        try:
            found = read_json(given)
        except ValueError:
            found = None  # said without the error, which holds the whole text
    if not isinstance(found, Mapping) or not all(isinstance(one, str | None) for one in found.values()):
        raise InvalidInput(f"{source} is not a JSON object of texts, such as issuer_url, client_id and client_secret.")
    return {str(name): one for name, one in found.items() if one}


def _named(given: Mapping[str, str]) -> dict[str, str]:
    ours = {other: name for name, option in OAUTH2.items() for other in (name, *option.others)}
    options: dict[str, str] = {}
    for name, value in given.items():
        if name not in ours:
            raise InvalidInput(
                f"oauth2 has no option {name!r}.{did_you_mean(name, ours)} It takes {', '.join(OAUTH2)}."
            )
        if ours[name] in options:
            raise InvalidInput(f"oauth2 has {ours[name]} twice, once as {name!r}. Give it once.")
        options[ours[name]] = value
    return options
