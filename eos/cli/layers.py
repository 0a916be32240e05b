"""Where a command's connection is named: options, then the environment, then a client.conf; the first that says counts.

The way to authenticate counts as one: the first place that names a token, a password, an issuer or a client certificate
decides, and the later places are ignored for it. Only a client certificate stays beside a token, since a broker may
demand both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from eos.errors import InvalidInput

WAYS = ("token", "basic", "oauth2")
"""The options that are a way to authenticate, but for a client certificate. A client.conf has them by authPlugin."""
_CERTIFICATE = ("tls_certificate", "tls_key")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """The words of one place about a connection. None: nothing.

    Attributes:
        service_url, admin_url: the brokers, and the admin API.
        token, basic: a secret, or "file:PATH" of one.
        oauth2: a JSON object, as the sink's option.
        tls_trust_certs, tls_certificate, tls_key: paths of PEM files.
        tls_verify_hostname: refuse a certificate that was made for another host.
        subscription_prefix: what the names of the commands' subscriptions begin with.
    """

    service_url: str | None = None
    admin_url: str | None = None
    token: str | None = field(default=None, repr=False)
    basic: str | None = field(default=None, repr=False)
    oauth2: str | None = field(default=None, repr=False)
    tls_trust_certs: str | None = field(default=None, repr=False)
    tls_verify_hostname: bool | None = None
    tls_certificate: str | None = field(default=None, repr=False)
    tls_key: str | None = field(default=None, repr=False)
    subscription_prefix: str | None = None

    @property
    def authenticates(self) -> bool:
        """Whether it names a way to authenticate."""
        return any(getattr(self, name) is not None for name in (*WAYS, *_CERTIFICATE))


def of_environment(environment: Mapping[str, str]) -> Layer:
    """Return what EOS_SERVICE_URL, EOS_TOKEN and the like say; empty ones count as not said. Raises InvalidInput."""
    verify = variable("tls_verify_hostname")
    texts = [one.name for one in fields(Layer) if one.name != "tls_verify_hostname"]
    return Layer(
        tls_verify_hostname=flag(environment.get(verify), verify),
        **{name: environment.get(variable(name)) or None for name in texts},
    )


def variable(name: str) -> str:
    """Return the environment's name of an option: EOS_SERVICE_URL for service_url."""
    return f"EOS_{name.upper()}"


def flag(text: str | None, what: str) -> bool | None:
    """Return what a text says; None for none. Raises InvalidInput for other words than true and false."""
    words = {"": None, "true": True, "false": False}
    word = (text or "").lower()
    if word not in words:
        raise InvalidInput(f"{what} is {text!r}. It must be true or false.")
    return words[word]


def merged(layers: Sequence[Layer]) -> Layer:
    """Return the result of the layers, the first before those after it."""
    deciding = next((one for one in layers if one.authenticates), Layer())
    shown = next((one for one in layers if any(getattr(one, name) is not None for name in _CERTIFICATE)), Layer())
    rest = [one.name for one in fields(Layer) if one.name not in (*WAYS, *_CERTIFICATE)]
    firsts = {name: next((said for one in layers if (said := getattr(one, name)) is not None), None) for name in rest}
    ways = {name: getattr(deciding, name) for name in WAYS}
    return Layer(**ways, **{name: getattr(shown, name) for name in _CERTIFICATE}, **firsts)
