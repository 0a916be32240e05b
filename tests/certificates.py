"""Certificates for tests and benchmarks, and a local Pulsar's settings that use them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from eos.local.checks import pick_ports

AUTHORITY = "authority"


@dataclass(frozen=True)
class BrokerTls:
    """How a broker of `localhost` speaks TLS beside its plain ports.

    Attributes:
        settings: of the broker.
        service_url, admin_url: of the ports with TLS.
        trust_certs: the certificate of the authority that signed the broker's, a PEM file.
    """

    settings: Mapping[str, str | int]
    service_url: str
    admin_url: str
    trust_certs: str


def make_tls(home: Path) -> BrokerTls:
    """Make an authority and a broker's certificate in a folder, and choose free ports."""
    make_authority(home, AUTHORITY)
    make_certificate(home, "broker", AUTHORITY, "subjectAltName=DNS:localhost")
    broker, web = pick_ports(2)
    trusted = str(home / f"{AUTHORITY}.pem")
    settings: dict[str, str | int] = {
        "brokerServicePortTls": broker,
        "webServicePortTls": web,
        "tlsCertificateFilePath": str(home / "broker.pem"),
        "tlsKeyFilePath": str(home / "broker.key"),
        "tlsTrustCertsFilePath": trusted,
    }
    return BrokerTls(settings, f"pulsar+ssl://localhost:{broker}", f"https://localhost:{web}", trusted)


def openssl(*arguments: str) -> str:
    """Return what it prints."""
    return subprocess.run(["openssl", *arguments], check=True, capture_output=True, text=True).stdout


def make_authority(home: Path, name: str) -> None:
    """Make NAME.pem and NAME.key of an authority of certificates."""
    openssl(
        *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"),
        *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),  # Python from 3.13 on trusts no authority without
        *("-keyout", str(home / f"{name}.key"), "-out", str(home / f"{name}.pem")),
    )


def make_certificate(
    home: Path, name: str, authority: str, extension: str = "basicConstraints=CA:FALSE", unit: str = ""
) -> None:
    """Make NAME.pem and NAME.key, signed by an authority in the same folder.

    Args: extension: of X.509 v3; unit: the OU of the subject.
    """
    request, asked = home / f"{name}.csr", home / f"{name}.ext"
    asked.write_text(extension)
    openssl(
        *("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}" + (f"/OU={unit}" if unit else "")),
        *("-keyout", str(home / f"{name}.key"), "-out", str(request)),
    )
    openssl(
        *("x509", "-req", "-in", str(request), "-CA", str(home / f"{authority}.pem"), "-CAcreateserial"),
        *("-CAkey", str(home / f"{authority}.key"), "-extfile", str(asked), "-days", "2"),
        *("-out", str(home / f"{name}.pem")),
    )
