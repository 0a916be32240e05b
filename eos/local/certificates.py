"""TLS for a local Pulsar: an authority and a broker's certificate of its own, made once, by Java's `keytool`.

Each machine that can start Pulsar has `keytool`, so nothing else needs to be installed. It gives out no private key in
PEM: the broker reads its own from a key store. The authority's key is deleted once it has signed: nobody can sign more
with it.
"""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Mapping
from pathlib import Path

from eos.config import Tls
from eos.local.checks import LocalError
from eos.local.settings import Ports, Setting

_AUTHORITY, _STORE, _PASSWORD = "authority.pem", "broker.p12", "broker.p12.password"
FILES = (_AUTHORITY, _STORE, _PASSWORD)
_SIGNER, _BROKER = "authority", "broker"
_DAYS = "3650"
_NAMES = "san=dns:localhost,ip:127.0.0.1"


def authority_file(home: Path) -> Path:
    """The certificate that clients trust, a PEM file in an instance's folder."""
    return home / _AUTHORITY


def trust(home: Path) -> Tls:
    """How clients trust the instance in this folder, where it speaks TLS; else nothing of its own."""
    file = authority_file(home)
    return Tls(str(file)) if file.exists() else Tls()


def require_tls(home: Path, java: Path, ports: Ports) -> dict[str, Setting]:
    """Make the certificates in this folder unless they are there; return the settings of a broker with TLS alone.

    Args: home; java: beside which `keytool` lies; ports: the broker's and the admin API's are for TLS.

    Raises:
        LocalError: there is no `keytool`, or it fails.
    """
    if not authority_file(home).exists():
        _make(home, java)
    store, password = str(home / _STORE), (home / _PASSWORD).read_text()
    stores: Mapping[str, Setting] = {
        "tlsEnabledWithKeyStore": True,
        "tlsKeyStoreType": "PKCS12",
        "tlsKeyStore": store,
        "tlsKeyStorePassword": password,
    }
    return {
        # Empty: nothing listens there. A port without TLS will be used by mistake.
        "brokerServicePort": "",
        "webServicePort": "",
        "brokerServicePortTls": ports.broker,
        "webServicePortTls": ports.http,
        **stores,
        "brokerClientTlsEnabled": True,
        "brokerClientTrustCertsFilePath": str(authority_file(home)),
        "tlsHostnameVerificationEnabled": True,
    }


def _make(home: Path, java: Path) -> None:
    home.mkdir(parents=True, exist_ok=True)
    for name in (_STORE, _PASSWORD):
        (home / name).unlink(missing_ok=True)  # of a start that was cut short
    (home / _PASSWORD).touch(mode=0o600)
    (home / _PASSWORD).write_text(secrets.token_hex(16))
    keys = ("-genkeypair", "-keyalg", "EC", "-groupname", "secp256r1", "-validity", _DAYS)
    signs = ("-ext", "bc:c", "-ext", "ku:c=keyCertSign,cRLSign")  # Python from 3.13 on trusts no authority without
    _keytool(home, java, *keys, "-alias", _SIGNER, "-dname", "CN=authority of a local Pulsar", *signs)
    _keytool(home, java, *keys, "-alias", _BROKER, "-dname", "CN=localhost", "-ext", _NAMES, "-signer", _SIGNER)
    scratch = home / f"{_AUTHORITY}.new"
    _keytool(home, java, "-exportcert", "-rfc", "-alias", _SIGNER, "-file", str(scratch))
    _keytool(home, java, "-delete", "-alias", _SIGNER)
    scratch.chmod(0o644)  # no secret: clients of other users may read it
    scratch.replace(authority_file(home))  # at last: a reader that finds it finds all


def _keytool(home: Path, java: Path, *words: str) -> None:
    store = ("-keystore", str(home / _STORE), "-storetype", "PKCS12", "-storepass:file", str(home / _PASSWORD))
    tool = java.resolve().parent / "keytool"
    try:
        done = subprocess.run(
            [str(tool), *words, *store], capture_output=True, text=True, stdin=subprocess.DEVNULL, umask=0o077
        )
    except FileNotFoundError:
        raise LocalError(f"No keytool beside {java}. It makes the certificates for --tls. Install a JDK") from None
    if done.returncode:
        raise LocalError(f"{tool} {words[0]} failed: {(done.stdout + done.stderr).strip()}")
