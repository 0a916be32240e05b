"""The properties of the sink's producers at the brokers: sink, application, query, and those of the user."""

from __future__ import annotations

from collections.abc import Mapping

from eos.config import OAuth2Options, Token
from eos.credentials import parse_oauth2
from eos.errors import InvalidInput
from eos.pulsar.protocol.producer import ProducerIdentity
from eos.version import own_version

_OURS = ("eos.", "spark.")
_LONG = 8  # characters at which a secret is not found in other texts by chance
MAX_BYTES = 4 * 1024
"""Of all names and values together: each open producer's are kept in its broker's memory and are in each answer."""


def introduction(
    name: str, properties: Mapping[str, str] | None, facts: Mapping[str, str | None], *, encrypted: bool
) -> ProducerIdentity:
    """Return who writes.

    Args: the sink's name; the user's own properties; what is known of Spark, None where it has no such thing; whether
    all that it writes is encrypted.
    """
    known = {fact: text for fact, text in facts.items() if text is not None}
    ours = {"eos.sink": name, "eos.version": own_version()}
    return ProducerIdentity(name, {**(properties or {}), **ours, **known}, encrypted)


def check_properties(properties: object, token: Token | None, basic: str | None, oauth2: OAuth2Options | None) -> None:
    """Refuse properties that are not texts, that take a reserved name, that are large, or that hold a secret.

    Args: the option `producer_properties`; the options `token`, `basic` and `oauth2`. Raises InvalidInput.
    """
    if properties is None:
        return
    if not isinstance(properties, Mapping):
        raise InvalidInput(
            f"producer_properties= is {type(properties).__name__}. It must be a dict of texts, such as "
            "{'team': 'flights'}."
        )
    secrets = _secrets(token, basic, oauth2)
    for name, value in properties.items():
        if not isinstance(name, str) or not name or not isinstance(value, str):
            shown = name if isinstance(name, str) else repr(name)
            raise InvalidInput(
                f"producer_properties= has {shown!r} with a value of type {type(value).__name__}. Names and values "
                "must be str, and no name empty."
            )
        if name.startswith(_OURS):
            raise InvalidInput(
                f"producer_properties= has {name!r}, but names that begin with 'eos.' or 'spark.' are the "
                "sink's. Give it another."
            )
        if any(_tells(value, secret) for secret in secrets):
            raise InvalidInput(
                f"producer_properties= has a secret under {name!r}. Each user who may see a topic's stats can read it. "
                "Leave it out."
            )
    size = sum(len(name.encode()) + len(value.encode()) for name, value in properties.items())
    if size > MAX_BYTES:
        raise InvalidInput(
            f"producer_properties= has {size} bytes. It must have at most {MAX_BYTES}, since brokers keep them for "
            "each producer."
        )


def _tells(value: str, secret: str) -> bool:
    return secret in value if len(secret) >= _LONG else secret == value


def _secrets(token: Token | None, basic: str | None, oauth2: OAuth2Options | None) -> list[str]:
    """Return the secrets that the options hold themselves. Raises InvalidInput for a wrong `oauth2`."""
    password = None if basic is None else basic.partition(":")[2]
    of_client = None if oauth2 is None else parse_oauth2(oauth2).client_secret
    return [one for one in (token, password, of_client) if isinstance(one, str) and one and not one.startswith("file:")]
