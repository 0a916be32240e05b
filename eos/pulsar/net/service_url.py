"""Where a cluster is reached."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Final

from eos.addresses import is_host, port_number
from eos.config import Tls
from eos.errors import InvalidInput

_PORTS = {"pulsar": 6650, "pulsar+ssl": 6651}
_NEVER_IN_A_NAME: Final = re.compile(r"[\s:;/?#\[\]]")
"""Without this check 2001:db8::5 would be the host 2001:db8: and its port 5, and "a:6650;b" a host to look up."""


@dataclass(frozen=True, slots=True)
class Address:
    """One broker or proxy. Prints as its URL."""

    host: str
    port: int
    tls: bool = False

    @property
    def authority(self) -> str:
        """ "host:port", with an IPv6 host in brackets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{'pulsar+ssl' if self.tls else 'pulsar'}://{self.authority}"


def addresses(service_url: str) -> list[Address]:
    """Take a service URL apart: "pulsar://a:6650,b:6650". The port defaults to 6650, with TLS to 6651.

    Raises InvalidInput.
    """
    refuse_user(service_url)
    scheme, separator, rest = service_url.partition("://")
    if not separator or scheme not in _PORTS:
        raise InvalidInput(
            f'the service URL "{service_url}" must begin with pulsar:// or pulsar+ssl:// '
            "(the address of the admin API, http://, is another one)"
        )
    return [_address(part, scheme, service_url) for part in rest.rstrip("/").split(",")]


def refuse_user(url: str) -> None:
    """Refuse a URL that names a user. Raises InvalidInput, which does not show the URL, as other errors and logs do."""
    if "@" in url:
        raise InvalidInput(
            "the URL of a broker or of its admin API takes no user and no password. They would be shown by errors and "
            "logs. Leave out what stands before the @, and show who you are by the option basic, token or oauth2"
        )


def refuse_tls_in_vain(tls: Tls, service_url: str, admin_url: str | None) -> None:
    """Refuse a TLS option where neither URL asks for TLS, and a user in the service URL, which is shown.

    Raises InvalidInput, which names the option.
    """
    refuse_user(service_url)
    given = {
        "tls_trust_certs": tls.trust_certs is not None,
        "tls_certificate": tls.certificate is not None,
        "tls_key": tls.key is not None,
        "tls_verify_hostname": not tls.verify_hostname,
    }
    first = next((option for option, said in given.items() if said), None)
    if first and not service_url.startswith("pulsar+ssl://") and not (admin_url or "").startswith("https://"):
        raise InvalidInput(
            f"{first}= is an option of TLS, and {service_url} asks for none. It would be ignored. Use "
            "pulsar+ssl:// and the broker's TLS port (6651 as a rule), or leave the option out."
        )


def _address(text: str, scheme: str, whole: str) -> Address:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(_PORTS[scheme])
    number = port_number(port)
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    if number is None or not (_is_ipv6(host) if bracketed else is_host(host) and not _NEVER_IN_A_NAME.search(host)):
        raise InvalidInput(
            f'"{text}" in the service URL "{whole}" is not host:port. Put commas between several hosts, and an IPv6 '
            "address in brackets"
        )
    return Address(host, number, tls=scheme == "pulsar+ssl")


def _is_ipv6(host: str) -> bool:
    try:
        IPv6Address(host)
    except ValueError:
        return False
    return True
