"""A broker that demands TLS and to know who asks: by tokens, which may expire, by passwords, or by certificates."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from eos.local import LocalPulsar
from eos.local.access import credentials, require_tokens, signed
from tests.certificates import make_authority, make_certificate, make_tls, openssl
from tests.conftest import START_S
from tests.waiting import PATIENCE_S

ROLE, PASSWORD = "job", "pa55word-of-the-job"
LIFE_S = 8
"""Seconds that a token lives which is to expire soon; a process that stands still for longer comes too late."""
PROVIDER = "org.apache.pulsar.broker.authentication.AuthenticationProvider"


def token_of(home: Path, role: str = ROLE, life_s: int | None = None) -> str:
    """Return a token that the broker of this folder takes, for so many seconds; None: for ever."""
    claims: dict[str, str | int] = {"sub": role, "jti": uuid.uuid4().hex}  # no two are alike
    if life_s is not None:
        claims["exp"] = int(time.time()) + life_s
    return signed(claims, (home / "token.key").read_bytes())


@dataclass(frozen=True)
class Secured:
    """A broker, and the folder with its certificates and keys."""

    broker: LocalPulsar
    home: Path
    service_url: str
    admin_url: str

    def file(self, name: str) -> str:
        return str(self.home / name)

    def options(self, kind: str) -> dict[str, Any]:
        """The options of the sink and the source that show the role `job`."""
        shown = {
            "token": {"token": token_of(self.home)},
            "password": {"basic": f"{ROLE}:{PASSWORD}"},
            "certificate": {"tls_certificate": self.file("job.pem"), "tls_key": self.file("job.key")},
            "wrong token": {"token": signed({"sub": ROLE}, b"another key" * 3)},
            "wrong password": {"basic": f"{ROLE}:wrong"},
            "a stranger's certificate": {
                "tls_certificate": self.file("stranger.pem"),
                "tls_key": self.file("stranger.key"),
            },
            "nothing": {},
        }
        return {"tls_trust_certs": self.file("authority.pem"), **shown[kind]}

    def ask(self, method: str, path: str, body: object = None) -> None:
        """Ask the admin API as the administrator."""
        url = f"{self.broker.admin_url}/admin/v2/{path}"
        bearer = {"Authorization": f"Bearer {(self.home / 'token').read_text()}"}
        httpx.request(
            method, url, headers=bearer, json=body, timeout=PATIENCE_S, follow_redirects=True
        ).raise_for_status()


@dataclass(frozen=True)
class ShortLived:
    """A function that returns tokens that expire soon, and notes each with the process that asked."""

    home: Path
    notes: Path

    def __call__(self) -> str:
        token = token_of(self.home, life_s=LIFE_S)
        with self.notes.open("a") as notes:
            notes.write(f"{os.getpid()} {token}\n")
        return token

    def asked(self) -> list[tuple[int, str]]:
        """Each process that asked, with the token that it got."""
        return [(int(pid), token) for pid, token in map(str.split, self.notes.read_text().splitlines())]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    home = tmp_path_factory.mktemp("secured")
    tls = make_tls(home)
    make_authority(home, "other")
    make_certificate(home, ROLE, "authority")
    make_certificate(home, "stranger", "other")
    (home / "users").write_text(f"{ROLE}:{openssl('passwd', '-apr1', PASSWORD)}")
    settings = {
        **require_tokens(home),
        **tls.settings,
        "authenticationProviders": ",".join(f"{PROVIDER}{kind}" for kind in ("Token", "Basic", "Tls")),
        "basicAuthConf": str(home / "users"),
        # At each look the answer to the challenge of the look before must be there: a busy machine takes its time.
        "authenticationRefreshCheckSeconds": 3,
    }
    broker = LocalPulsar(settings=settings, coordinators=1, credentials=credentials(home), start_timeout_s=START_S)
    broker.start()
    made = Secured(broker, home, tls.service_url, tls.admin_url)
    made.ask("POST", f"namespaces/public/default/permissions/{ROLE}", ["produce", "consume"])
    made.ask("POST", f"namespaces/pulsar/system/permissions/{ROLE}", ["consume"])
    yield made
    broker.stop()
