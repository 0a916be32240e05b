"""Settings that travel from the driver to the executors: plain, frozen, picklable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from eos.pickling import PickledByName

KeyHash = Literal["murmur3", "java", "boost"]
Batching = Literal["default", "key-based", "none"]
Compression = Literal["none", "lz4", "zlib", "zstd", "snappy"]
CompressionOption = Literal["none", "auto", "lz4", "zlib", "zstd", "snappy"]
"""With "auto" each batch of messages decides by a sample of its own whether it is compressed."""

Token = str | Callable[[], str]
"""A token, "file:PATH" of a file with one, or a function that returns one."""

EncryptionKeys = tuple[tuple[str, str], ...]
"""Public keys: the name and the PEM text of each."""

KeyFiles = tuple[tuple[str, str], ...]
"""Private keys: the name of each, and the path of its PEM file."""

OAuth2Options = str | Mapping[str, str]
"""The options of OAuth 2.0 by name, or the JSON object of them."""

MOST_S = 1e9
"""The longest time an option takes, 31 years: no clock's wait takes far more, and on the wire it wraps around."""

FILE = "file:"
"""Begins an option that names a file in place of a secret."""

BATCHINGS: tuple[Batching, ...] = ("default", "key-based", "none")
KEY_HASHES: tuple[KeyHash, ...] = ("murmur3", "java", "boost")
COMPRESSIONS: tuple[Compression, ...] = ("none", "lz4", "zlib", "zstd", "snappy")
COMPRESSION_OPTIONS: tuple[CompressionOption, ...] = ("none", "auto", "lz4", "zlib", "zstd", "snappy")


@dataclass(frozen=True, slots=True)
class Tls(PickledByName):
    """How to trust a broker and to show who we are.

    Attributes:
        trust_certs: a PEM file of trusted authorities; None: the system's.
        verify_hostname: refuse a certificate for another host name. Default True.
        certificate, key: PEM files of a client certificate, for TLS authentication.
    """

    trust_certs: str | None = None
    verify_hostname: bool = True
    certificate: str | None = None
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Provider(PickledByName):
    """A caller's function that returns a token, as it travels to tasks.

    Attributes:
        name: of the function, for messages: nothing of what is bound to it.
        pickled: the function, by cloudpickle; with what it holds, which may be secret.
    """

    name: str
    pickled: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class OAuth2(PickledByName):
    """How a client gets tokens by its own credentials (OAuth 2.0, RFC 6749, 4.4).

    Attributes:
        issuer_url: of the authorization server, without /.well-known/openid-configuration.
        client_id, client_secret: of the client; empty with a key file.
        key_file: a JSON file with both, read at each request for a token; None: they are given.
        audience, scope: sent along where given.
        trust_certs: a PEM file of authorities that the issuer's certificate is trusted by; None: the system's.
    """

    issuer_url: str
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    key_file: str | None = field(default=None, repr=False)
    audience: str | None = None
    scope: str | None = None
    trust_certs: str | None = None


@dataclass(frozen=True, slots=True)
class Credentials(PickledByName):
    """An authentication method and where its data comes from.

    Attributes:
        method: Pulsar's name of it: "none", "token", "basic" or "tls".
        data: the secret itself; or where it comes from, anew at each connection: "file:PATH", a function,
            or the issuer of OAuth 2.0, which is asked when the token at hand gets old.
    """

    method: Literal["none", "token", "basic", "tls"] = "none"
    data: str | Provider | OAuth2 = field(default="", repr=False)

    @property
    def renewable(self) -> bool:
        """Whether asking again may give another secret."""
        return not isinstance(self.data, str) or self.data.startswith(FILE)


@dataclass(frozen=True, slots=True)
class Cluster(PickledByName):
    """One Pulsar cluster and how to reach it.

    Attributes:
        service_url: "pulsar://host:port" or "pulsar+ssl://host:port"; several hosts
            may be given, separated by commas.
        request_timeout_s: seconds to wait for any single answer. Default 30.
        connect_timeout_s: seconds to wait for a TCP connection. Default 10.
        listener_name: the advertised listener to ask for, or None.
        subscription_prefix: what the names of subscriptions that this library makes begin with, and a "-". Default:
            nothing. A namespace with subscription-auth-mode Prefix takes only names that begin with the role.
    """

    service_url: str
    credentials: Credentials = Credentials()
    tls: Tls = Tls()
    request_timeout_s: float = 30.0
    connect_timeout_s: float = 10.0
    listener_name: str | None = None
    subscription_prefix: str | None = None

    def subscription_name(self, name: str) -> str:
        """Return the name of a subscription that this library makes. Args: its name without the prefix."""
        return prefixed(self.subscription_prefix, name)


def prefixed(prefix: str | None, name: str) -> str:
    """Return a name of a subscription with a prefix before it, if there is one."""
    return f"{prefix}-{name}" if prefix else name


def name_of(function: object) -> str:
    """Return the name of a caller's function, or of a callable's class, for messages and logs.

    It has nothing of what is bound to the function, which may be secret.
    """
    while isinstance(function, partial):
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"
