"""Certificates of a local Pulsar: made once, readable where they are needed, and nobody can sign more."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest

from eos.config import Tls
from eos.local import LocalError, Ports, checks
from eos.local.certificates import FILES, authority_file, require_tls, trust
from tests.certificates import openssl

pytestmark = pytest.mark.jvm
PORTS = Ports(1, 2, 3, 4)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("made")
    require_tls(home, checks.java(), PORTS)
    return home


def test_the_brokers_certificate_is_the_authoritys_and_for_this_host(made: Path, tmp_path: Path) -> None:
    password = (made / "broker.p12.password").read_text()
    chain = openssl("pkcs12", "-in", str(made / "broker.p12"), "-nokeys", "-clcerts", "-passin", f"pass:{password}")
    (tmp_path / "broker.pem").write_text(chain)
    for name in ("-verify_hostname", "localhost"), ("-verify_ip", "127.0.0.1"):
        # Strict, as Python is from 3.13 on.
        openssl("verify", "-x509_strict", *name, "-CAfile", str(authority_file(made)), str(tmp_path / "broker.pem"))
    with pytest.raises(subprocess.CalledProcessError):
        openssl("verify", "-verify_hostname", "h", "-CAfile", str(authority_file(made)), str(tmp_path / "broker.pem"))


def test_no_key_is_readable_by_others_and_the_authoritys_is_gone(made: Path) -> None:
    assert {path.name for path in made.iterdir()} == set(FILES)
    assert [stat.S_IMODE((made / name).stat().st_mode) for name in FILES[1:]] == [0o600, 0o600]
    password = (made / "broker.p12.password").read_text()
    keys = openssl("pkcs12", "-in", str(made / "broker.p12"), "-nocerts", "-nodes", "-passin", f"pass:{password}")
    assert keys.count("BEGIN PRIVATE KEY") == 1
    assert "friendlyName: broker" in keys


def test_they_are_made_once_and_no_port_is_left_without_tls(made: Path) -> None:
    before = authority_file(made).read_bytes()
    settings = require_tls(made, Path("/no/java"), PORTS)
    assert authority_file(made).read_bytes() == before
    assert [settings[f"{port}{tls}"] for port in ("brokerServicePort", "webServicePort") for tls in ("", "Tls")] == [
        *("", 1),
        *("", 2),
    ]


def test_an_instance_without_them_is_trusted_as_the_system_does(made: Path, tmp_path: Path) -> None:
    assert trust(tmp_path) == Tls()
    assert trust(made) == Tls(str(made / "authority.pem"))


def test_a_java_without_keytool_is_named(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match=r"No keytool beside .*/java. It makes the certificates for --tls"):
        require_tls(tmp_path, tmp_path / "java", PORTS)
    assert not authority_file(tmp_path).exists()
