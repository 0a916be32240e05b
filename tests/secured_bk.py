"""A ZooKeeper that speaks TLS, a bookie that demands it and a role, and a user of both with a secret in a file."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from eos.local import checks, jars
from eos.local.jvm import QUICK_START, Jvm, prepare
from eos.local.member import Member
from eos.local.parts import ClusterPart, ClusterPorts, Plan
from eos.local.settings import properties
from tests.certificates import make_authority, make_certificate
from tests.conftest import START_S

USER, SECRET = "job", "pa55word-of-zookeeper"
ROLE = "eos"


@dataclass(frozen=True)
class SecuredBk:
    """Where they are, and the folders with certificates and keys, and with what the servers write."""

    home: Path
    servers: Path
    port: int

    def pem(self, name: str) -> str:
        return str(self.home / f"{name}-both.pem")

    @property
    def options(self) -> dict[str, str]:
        """The options of bk:// that the user of the tree takes."""
        return {
            "fs.bk.tls": "all",
            "fs.bk.tls.trust-certs": str(self.home / "authority.pem"),
            "fs.bk.tls.certificate": self.pem("job"),
            "fs.bk.zookeeper-auth": f"file:{self.home / 'zookeeper-auth'}",
        }


@pytest.fixture(scope="module")
def secured_bk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBk]:
    home, servers = tmp_path_factory.mktemp("certificates"), tmp_path_factory.mktemp("servers")
    make_authority(home, "authority")
    make_authority(home, "other")
    make_certificate(home, "zookeeper", "authority", "subjectAltName=DNS:localhost")
    make_certificate(home, "bookie", "authority", "subjectAltName=IP:127.0.0.1")
    make_certificate(home, "job", "authority", unit=f"0:{ROLE}")
    make_certificate(home, "ops", "authority", unit=f"0:{ROLE}")
    make_certificate(home, "norole", "authority")
    for name in ("zookeeper", "bookie", "job", "ops", "norole"):
        (home / f"{name}-both.pem").write_text((home / f"{name}.pem").read_text() + (home / f"{name}.key").read_text())
    (home / "zookeeper-auth").write_text(f"digest:{USER}:{SECRET}\n")

    (port,) = checks.pick_ports(1)
    ports = ClusterPorts.free()
    zookeeper, bookie, *_ = Plan(ports, {}, "128m", autorecovery=False, coordinators=0).parts(servers)
    made = SecuredBk(home, servers, port)
    with ExitStack() as running:
        for part, more in ((zookeeper, _zookeeper(made)), (bookie, _bookie(made))):
            if part is bookie:
                make_znodes(servers, bookie)
            told = replace(part, configuration=part.configuration + properties(more))
            member = Member(told, servers / part.name, servers / part.name, ports.zookeeper, START_S)
            member.home.mkdir(exist_ok=True)
            running.callback(member.kill)
            member.launch(checks.java(), jars.classpath())
            member.wait_until_ready()
        yield made


def make_znodes(servers: Path, bookie: ClusterPart) -> None:
    """Make BookKeeper's own znodes, as its `initnewcluster` does."""
    prepare(servers)
    (servers / "new.conf").write_text(bookie.configuration)
    machine = Jvm(checks.java(), jars.classpath(), "64m", "64m", QUICK_START)
    shell = ("org.apache.bookkeeper.bookie.BookieShell", ["-conf", str(servers / "new.conf"), "initnewcluster"])
    done = subprocess.run(machine.command(servers, *shell), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]


def _zookeeper(made: SecuredBk) -> dict[str, str | int]:
    return {
        "secureClientPort": made.port,
        "secureClientPortAddress": "127.0.0.1",
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": made.pem("zookeeper"),
        "ssl.trustStore.location": f"{made.home}/authority.pem",
        "ssl.clientAuth": "want",
    }


def _bookie(made: SecuredBk) -> dict[str, str | int | bool]:
    return {
        "tlsProvider": "JDK",
        "tlsProviderFactoryClass": "org.apache.bookkeeper.tls.TLSContextFactory",
        "tlsKeyStoreType": "PEM",
        "tlsKeyStore": f"{made.home}/bookie.key",
        "tlsCertificatePath": f"{made.home}/bookie.pem",
        "tlsTrustStoreType": "PEM",
        "tlsTrustStore": f"{made.home}/authority.pem",
        "tlsClientAuthentication": True,
        "bookieAuthProviderFactoryClass": "org.apache.bookkeeper.tls.BookieAuthZFactory",
        "authorizedRoles": ROLE,
    }
