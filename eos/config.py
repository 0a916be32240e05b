"""Settings that travel from the driver to the executors: plain, frozen, picklable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

KeyHash = Literal["murmur3", "java", "boost"]
Batching = Literal["default", "key-based"]
Compression = Literal["none", "lz4", "zlib", "zstd", "snappy"]
CompressionOption = Literal["none", "auto", "lz4", "zlib", "zstd", "snappy"]
"""With "auto" each batch of messages decides by a sample of its own whether it is compressed."""

BATCHINGS: tuple[Batching, ...] = ("default", "key-based")
KEY_HASHES: tuple[KeyHash, ...] = ("murmur3", "java", "boost")
COMPRESSIONS: tuple[Compression, ...] = ("none", "lz4", "zlib", "zstd", "snappy")
COMPRESSION_OPTIONS: tuple[CompressionOption, ...] = ("none", "auto", "lz4", "zlib", "zstd", "snappy")


@dataclass(frozen=True, slots=True)
class Tls:
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
class Credentials:
    """An authentication method and where its data comes from.

    Attributes:
        method: Pulsar's name of it: "none", "token", "basic" or "tls".
        data: the secret itself, or "file:PATH" to read it anew at each connection.
    """

    method: Literal["none", "token", "basic", "tls"] = "none"
    data: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Cluster:
    """One Pulsar cluster and how to reach it.

    Attributes:
        service_url: "pulsar://host:port" or "pulsar+ssl://host:port"; several hosts
            may be given, separated by commas.
        request_timeout_s: seconds to wait for any single answer. Default 30.
        connect_timeout_s: seconds to wait for a TCP connection. Default 10.
        listener_name: the advertised listener to ask for, or None.
    """

    service_url: str
    credentials: Credentials = Credentials()
    tls: Tls = Tls()
    request_timeout_s: float = 30.0
    connect_timeout_s: float = 10.0
    listener_name: str | None = None
