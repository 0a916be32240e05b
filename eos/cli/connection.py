"""How the commands of `eos` reach a cluster: their options, and what they come to."""

from __future__ import annotations

from typing import Annotated

import typer

from eos.config import Cluster, Tls
from eos.credentials import credentials_of

ServiceUrl = Annotated[str, typer.Option(help="The brokers: pulsar://host:6650 or pulsar+ssl://host:6651.")]
AdminUrl = Annotated[str, typer.Option(help="The admin API: http://host:8080 or https://host:8443.")]
Namespace = Annotated[str, typer.Option(help="tenant/namespace of the topics.")]
Token = Annotated[
    str | None, typer.Option(envvar="EOS_TOKEN", help='A token for authentication, or "file:PATH" with one.')
]
Basic = Annotated[str | None, typer.Option(envvar="EOS_BASIC", help='"user:password", or "file:PATH" with it.')]
TrustCerts = Annotated[str | None, typer.Option(help="A PEM file of trusted authorities. Default: the system's.")]
Certificate = Annotated[str | None, typer.Option(help="A PEM file of a client certificate.")]
Key = Annotated[str | None, typer.Option(help="Its key, a PEM file.")]


def cluster_of(
    service_url: str,
    token: str | None,
    basic: str | None,
    tls_trust_certs: str | None,
    tls_certificate: str | None,
    tls_key: str | None,
) -> Cluster:
    """Return the cluster that these options name."""
    credentials = credentials_of(token, basic, None, tls_certificate)
    return Cluster(service_url, credentials, Tls(tls_trust_certs, True, tls_certificate, tls_key))
