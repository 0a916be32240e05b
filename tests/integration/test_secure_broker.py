"""Rows go out and come in on a broker that demands TLS and to know who asks, and what a user reads where it fails.

One broker takes tokens, passwords and client certificates; the role `job` has the rights of docs/how-to/rights.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pulsar as official
import pytest
from pyspark.sql import SparkSession

import eos
from eos.errors import NetworkError
from eos.local import LocalPulsar
from eos.local.access import credentials, require_tokens, signed
from eos.pulsar.net.admin import Admin
from eos.source.options import parse_options
from tests.certificates import make_authority, make_certificate, make_tls, openssl
from tests.conftest import START_S
from tests.integration.source.queries import Query
from tests.waiting import PATIENCE_S

ROLE, PASSWORD = "job", "right"
PROVIDER = "org.apache.pulsar.broker.authentication.AuthenticationProvider"


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
            "token": {"token": signed(ROLE, (self.home / "token.key").read_bytes())},
            "password": {"basic": f"{ROLE}:{PASSWORD}"},
            "certificate": {"tls_certificate": self.file("job.pem"), "tls_key": self.file("job.key")},
            "wrong token": {"token": signed(ROLE, b"another key" * 3)},
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
    }
    broker = LocalPulsar(settings=settings, coordinators=1, credentials=credentials(home), start_timeout_s=START_S)
    broker.start()
    made = Secured(broker, home, tls.service_url, tls.admin_url)
    made.ask("POST", f"namespaces/public/default/permissions/{ROLE}", ["produce", "consume"])
    made.ask("POST", f"namespaces/pulsar/system/permissions/{ROLE}", ["consume"])
    yield made
    broker.stop()


def official_client(secured: Secured, kind: str) -> official.Client:
    options = secured.options(kind)
    shown = {
        "token": lambda: official.AuthenticationToken(options["token"]),
        "password": lambda: official.AuthenticationBasic(ROLE, PASSWORD),
        "certificate": lambda: official.AuthenticationTLS(options["tls_certificate"], options["tls_key"]),
    }[kind]()
    return official.Client(
        secured.service_url,
        authentication=shown,
        tls_trust_certs_file_path=options["tls_trust_certs"],
        tls_validate_hostname=True,
    )


@pytest.mark.parametrize("kind", ["token", "password", "certificate"])
def test_rows_go_out_and_come_in(spark: SparkSession, secured: Secured, kind: str) -> None:
    topic = f"persistent://public/default/{kind}"
    secured.ask("PUT", f"persistent/public/default/{kind}")
    options = secured.options(kind)
    rows = [f"row {number}" for number in range(50)]
    sink = eos.sink(secured.service_url, topic=topic, name=kind, small_batch_rows=0, **options)
    for batch, some in enumerate((rows[:40], rows[40:])):
        with sink.batch(batch, eos.Identity("query", "run", f"offsets of batch {batch}")) as txn:
            txn.write(spark.createDataFrame([(row,) for row in some], "value string"))

    given = {"service.url": secured.service_url, "topic": topic, "subscription": "job", "startingOffsets": "earliest"}
    query = Query(parse_options(given | options, "stream"))
    assert sorted(query.behind(query.plan.first())) == sorted(rows)
    query.brokers.close()

    client = official_client(secured, kind)
    consumer = client.subscribe(topic, "reader", initial_position=official.InitialPosition.Earliest)
    read = [consumer.receive(timeout_millis=int(PATIENCE_S * 1000)).data().decode() for _ in rows]
    assert sorted(read) == sorted(rows)
    client.close()


DENIED = {
    "wrong token": ("Check the options token or basic", "401"),
    "wrong password": ("Check the options token or basic", "401"),
    "a stranger's certificate": ("refused the TLS connection.*tls_certificate, tls_key", "refused the TLS connection"),
    "nothing": ("Check the options token or basic", "401"),
}


@pytest.mark.parametrize("kind", DENIED)
def test_whom_the_broker_does_not_know_is_told_what_to_check(secured: Secured, kind: str) -> None:
    given = {"service.url": secured.service_url, "topic": "t", "subscription": "job"} | secured.options(kind)
    options = parse_options(given, "stream")
    by_broker, by_admin = DENIED[kind]
    brokers = Query(options).brokers
    with pytest.raises(NetworkError, match=by_broker) as told:
        list(brokers.topics(all_named=True))
    secret = given.get("token") or given.get("basic")
    assert secret is None or secret not in str(told.value)
    with (
        Admin(secured.admin_url, options.cluster.credentials, options.cluster.tls) as admin,
        pytest.raises(NetworkError, match=by_admin),
    ):
        admin.topics("public/default")


def test_a_broker_that_is_not_trusted_is_not_spoken_to(secured: Secured) -> None:
    other = secured.options("token") | {"tls_trust_certs": secured.file("other.pem")}
    given = {"service.url": secured.service_url, "topic": "t", "subscription": "job"}
    options = parse_options(given | other, "stream")
    with pytest.raises(NetworkError, match=r"CERTIFICATE_VERIFY_FAILED.*tls_trust_certs"):
        list(Query(options).brokers.topics(all_named=True))
    with (
        Admin(secured.admin_url, options.cluster.credentials, options.cluster.tls) as admin,
        pytest.raises(NetworkError, match=r"CERTIFICATE_VERIFY_FAILED.*tls_trust_certs"),
    ):
        admin.topics("public/default")
    by_number = secured.service_url.replace("localhost", "127.0.0.1")
    unnamed = given | secured.options("token") | {"service.url": by_number}
    with pytest.raises(NetworkError, match=r"127\.0\.0\.1.*host name in the broker's certificate"):
        list(Query(parse_options(unnamed, "stream")).brokers.topics(all_named=True))
    secured.ask("PUT", "persistent/public/default/by-number")
    unchecked = unnamed | {"tls_verify_hostname": "false", "topic": "by-number"}
    found = Query(parse_options(unchecked, "stream")).brokers.topics(all_named=True)
    assert list(found) == ["persistent://public/default/by-number"]
