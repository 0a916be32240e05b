"""How the commands of `eos` and `statestore` reach a cluster: one set of options for all, and what it comes to.

A command decorated with `connecting` has a parameter `to`, or with `connecting_later` a parameter `by`; on the command
line it has the options in its place.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints
from urllib.parse import urlsplit

import typer

from eos.addresses import is_this_machine
from eos.cli.client_conf import read_client_conf
from eos.cli.layers import Layer, merged, of_environment, variable
from eos.config import Cluster, Tls
from eos.credentials import credentials_of, tls_of
from eos.errors import InvalidInput
from eos.pulsar.net.service_url import refuse_tls_in_vain, refuse_user

if TYPE_CHECKING:
    from eos.pulsar.net.admin import Admin

DEFAULT_SERVICE_URL = "pulsar://localhost:6650"
DEFAULT_ADMIN_URL = "http://localhost:8080"
"""Of the commands that can do nothing without an admin API."""
CLIENT_CONF = "PULSAR_CLIENT_CONF"
"""The variable by which pulsar-admin and pulsar-client find their client.conf, too."""

Namespace = Annotated[str, typer.Option(help="tenant/namespace of the topics.")]
ControlNamespace = Annotated[
    str, typer.Option(help="tenant/namespace of the control topics, a sink's control_namespace or else its topic's.")
]


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """The clients of a command.

    Attributes:
        cluster: the brokers, and who asks them.
        admin_url: of the admin API, where it is named; None: nowhere.
    """

    cluster: Cluster
    admin_url: str | None

    @property
    def needed_admin_url(self) -> str:
        """The admin API, for a command that can do nothing without one.

        Raises InvalidInput where it is not named, and the brokers are others than the default's.
        """
        if self.admin_url is not None:
            return self.admin_url
        service_url = self.cluster.service_url
        if not _is_default(service_url, DEFAULT_SERVICE_URL):
            raise InvalidInput(
                f"The command needs the admin API of {service_url}, and its address is not given. {DEFAULT_ADMIN_URL} "
                f"may belong to another cluster. Nothing was done. Give --admin-url, or {variable('admin_url')}"
            )
        return DEFAULT_ADMIN_URL

    def admin(self) -> AbstractContextManager[Admin | None]:
        """Open the admin API; None where it is not named."""
        return nullcontext() if self.admin_url is None else self.needed_admin()

    def needed_admin(self) -> Admin:
        """Open the admin API, for a command that can do nothing without one. Raises as `needed_admin_url`."""
        from eos.pulsar.net.admin import Admin

        return Admin(self.needed_admin_url, self.cluster.credentials, self.cluster.tls)


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """The options of a connection, before it is known which cluster is reached.

    Attributes:
        by_option: what the command line says.
        by_caller: what the command line and the environment say.
        said: what these and a client.conf say.
    """

    by_option: Layer
    by_caller: Layer
    said: Layer

    def cluster(self, service_url: str) -> Cluster:
        """Return how to reach a cluster. Raises InvalidInput for an option of TLS where no URL asks for TLS."""
        said = self.said
        # A client.conf's TLS settings are also for Pulsar's own commands, which ignore them where no URL asks for TLS.
        refuse_tls_in_vain(_tls(self.by_caller), service_url, said.admin_url)
        credentials = credentials_of(said.token, said.basic, said.oauth2, said.tls_certificate)
        return Cluster(service_url, credentials, _tls(said), subscription_prefix=said.subscription_prefix)

    def reached(self) -> ConnectionOptions:
        """Return what a command reaches that takes its cluster from here.

        Raises InvalidInput where only the admin API is named, and it is another one than the default's.
        """
        service_url, admin_url = self.said.service_url, self.said.admin_url
        if admin_url is not None:
            refuse_user(admin_url)
        if service_url is None and admin_url is not None and not _is_default(admin_url, DEFAULT_ADMIN_URL):
            raise InvalidInput(
                f"The admin API is {admin_url}, and the address of its brokers is not given. {DEFAULT_SERVICE_URL} may "
                f"belong to another cluster. Nothing was done. Give --service-url, or {variable('service_url')}"
            )
        return ConnectionOptions(self.cluster(service_url or DEFAULT_SERVICE_URL), admin_url)


def _is_default(url: str, default: str) -> bool:
    """Whether a URL is this default, by any name of this machine."""
    try:
        parts, wanted = urlsplit(url), urlsplit(default)
        port = wanted.port if parts.port is None and parts.scheme == "pulsar" else parts.port
        return is_this_machine(parts.hostname or "") and (parts.scheme, port) == (wanted.scheme, wanted.port)
    except ValueError:  # such as a port that is not a number
        return False


def _said(name: str, help: str) -> Any:
    return typer.Option(help=f"{help} Or {variable(name)}.", rich_help_panel="Connection", show_default=False)


def connection(
    service_url: Annotated[
        str | None, _said("service_url", f"The brokers, with pulsar+ssl:// for TLS. Default: {DEFAULT_SERVICE_URL}.")
    ] = None,
    admin_url: Annotated[
        str | None, _said("admin_url", "The admin API, http://host:8080 or https://host:8443.")
    ] = None,
    token: Annotated[str | None, _said("token", 'A token for authentication, or "file:PATH" of one.')] = None,
    basic: Annotated[str | None, _said("basic", '"user:password", or "file:PATH" of it.')] = None,
    oauth2: Annotated[
        str | None, _said("oauth2", 'Tokens by OAuth 2.0, as JSON: {"issuer_url": "…", "key_file": "file:PATH"}.')
    ] = None,
    tls_trust_certs: Annotated[
        str | None, _said("tls_trust_certs", "A PEM file of trusted authorities, by default the system's.")
    ] = None,
    tls_verify_hostname: Annotated[
        bool | None, _said("tls_verify_hostname", "Refuse a certificate made for another host, by default.")
    ] = None,
    tls_certificate: Annotated[str | None, _said("tls_certificate", "A PEM file of a client certificate.")] = None,
    tls_key: Annotated[str | None, _said("tls_key", "Its key, a PEM file.")] = None,
    subscription_prefix: Annotated[
        str | None,
        _said("subscription_prefix", "The beginning of subscriptions' names, as in the sink's option."),
    ] = None,
    client_conf: Annotated[
        Path | None,
        typer.Option(
            help=f"A client.conf of Pulsar, for what neither options nor EOS_… say. Or {CLIENT_CONF}.",
            rich_help_panel="Connection",
            show_default=False,
        ),
    ] = None,
) -> ConnectionSettings:
    """Return what the options, the environment and a client.conf come to, the first before the others.

    Raises:
        InvalidInput: one of them is wrong, or two ways to authenticate are given in one place.
    """
    by_option = Layer(
        service_url=service_url,
        admin_url=admin_url,
        token=token,
        basic=basic,
        oauth2=oauth2,
        tls_trust_certs=tls_trust_certs,
        tls_verify_hostname=tls_verify_hostname,
        tls_certificate=tls_certificate,
        tls_key=tls_key,
        subscription_prefix=subscription_prefix,
    )
    empty = next((one.name for one in fields(Layer) if getattr(by_option, one.name) == ""), None)
    if empty is not None:
        raise InvalidInput(f"--{empty.replace('_', '-')} is empty. Give its value, or leave it out for its default")
    named = client_conf or os.environ.get(CLIENT_CONF)
    layers = [by_option, of_environment(os.environ)]
    if named:
        layers.append(read_client_conf(Path(named), credentials=not merged(layers).authenticates))
    said = merged(layers)
    if (said.tls_certificate is None) != (said.tls_key is None):
        raise InvalidInput("tls_certificate and tls_key belong together. Give both in one place, or neither.")
    # Refused here is what is not a way to authenticate.
    _tls(said)
    credentials_of(said.token, said.basic, said.oauth2, said.tls_certificate)
    return ConnectionSettings(by_option, merged(layers[:2]), said)


def _tls(said: Layer) -> Tls:
    return tls_of(said.tls_trust_certs, said.tls_verify_hostname is not False, said.tls_certificate, said.tls_key)


def connecting(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `connection`; it gets the cluster that they come to as its parameter `to`."""
    return _with_options(command, "to", ConnectionSettings.reached)


def connecting_later(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `connection`; it gets them as its parameter `by`, and names the cluster itself."""
    return _with_options(command, "by", lambda settings: settings)


def _with_options(
    command: Callable[..., None], place: str, come_to: Callable[[ConnectionSettings], object]
) -> Callable[..., None]:
    own = [one for one in inspect.signature(command).parameters.values() if one.name != place]
    options = list(inspect.signature(connection).parameters.values())

    @wraps(command)
    def run(**given: Any) -> None:
        settings = connection(**{one.name: given.pop(one.name) for one in options})
        command(**given, **{place: come_to(settings)})

    hints = get_type_hints(command, include_extras=True) | get_type_hints(connection, include_extras=True)
    parameters = [*own, *options]
    told: Any = run  # what typer asks: its releases since 0.15 differ in which of the two
    told.__annotations__ = {one.name: hints[one.name] for one in parameters}
    told.__signature__ = inspect.Signature(
        [one.replace(kind=one.KEYWORD_ONLY, annotation=hints[one.name]) for one in parameters]
    )
    return run
