"""A Pulsar whose bookie demands TLS and a certificate of a role: its ledgers, read past the broker."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest

from eos.bookkeeper import Bookies, BookieUnauthorized, BookieUnavailable, BookieUntrusted, LedgerReader, by_map
from eos.bookkeeper.net.zookeeper import ZooKeeperMetadata
from eos.by_name.data_source import PulsarDataSource
from eos.errors import InvalidInput
from eos.history.segments import segments_of
from eos.local import LocalPulsar
from eos.local.settings import Setting
from eos.pulsar.net.admin import Admin
from eos.source.batch import PulsarReader
from tests.certificates import AUTHORITY, make_authority, make_certificate
from tests.conftest import START_S, create_topic
from tests.contract.raw import client

pytestmark = pytest.mark.slow

ROLE = "eos"
ROWS = 50


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("certificates")
    make_authority(home, AUTHORITY)
    make_authority(home, "other")
    make_certificate(home, "bookie", AUTHORITY, "subjectAltName=IP:127.0.0.1")
    make_certificate(home, "job", AUTHORITY, unit=f"0:{ROLE}")
    make_certificate(home, "norole", AUTHORITY)
    return home


@pytest.fixture(scope="module")
def pulsar(certificates: Path) -> Iterator[LocalPulsar]:
    factory, trusted = "org.apache.bookkeeper.tls.TLSContextFactory", f"{certificates}/{AUTHORITY}.pem"
    bookie: dict[str, Setting] = {
        "tlsProvider": "JDK",
        "tlsProviderFactoryClass": factory,
        "tlsKeyStoreType": "PEM",
        "tlsKeyStore": f"{certificates}/bookie.key",
        "tlsCertificatePath": f"{certificates}/bookie.pem",
        "tlsTrustStoreType": "PEM",
        "tlsTrustStore": trusted,
        "tlsClientAuthentication": True,
        "bookieAuthProviderFactoryClass": "org.apache.bookkeeper.tls.BookieAuthZFactory",
        "authorizedRoles": ROLE,
    }
    broker: dict[str, Setting] = {
        "bookkeeperTLSProviderFactoryClass": factory,
        "bookkeeperTLSClientAuthentication": True,
        "bookkeeperTLSKeyFileType": "PEM",
        "bookkeeperTLSKeyFilePath": f"{certificates}/job.key",
        "bookkeeperTLSCertificateFilePath": f"{certificates}/job.pem",
        "bookkeeperTLSTrustCertTypes": "PEM",
        "bookkeeperTLSTrustCertsFilePath": trusted,
    }
    with LocalPulsar(settings=bookie | broker, start_timeout_s=START_S) as started:
        yield started


@pytest.fixture(scope="module")
def topic(pulsar: LocalPulsar) -> str:
    """A topic of ROWS messages in one ledger that is written to."""
    name = create_topic(pulsar.admin_url, "tls")
    with client(pulsar.service_url) as ours, ours.producer(name) as producer:
        ours.subscription(name, "keeps", initial="earliest").close()
        for number in range(ROWS):
            producer.send_record(b"row %d" % number, None)
    return name


@pytest.fixture(scope="module")
def port(pulsar: LocalPulsar) -> int:
    """Where the bookie listens, on 127.0.0.1: its id, "bk0test", is not an address."""
    with ZooKeeperMetadata(pulsar.zookeeper) as zookeeper:
        return zookeeper.address("bk0test")[1]


def rows_of(pulsar: LocalPulsar, topic: str, **options: str) -> list[pa.RecordBatch]:
    """Return a table of the topic, as its tasks read it."""
    given = {"service.url": pulsar.service_url, "admin.url": pulsar.admin_url, "topic": topic}
    source = PulsarDataSource(given | options)
    reader = cast(PulsarReader, source.reader(source.schema()))
    return [batch for task in reader.partitions() for batch in reader.read(task)]


def read(pulsar: LocalPulsar, topic: str, address: str, tls: ssl.SSLContext | None) -> int:
    """Read the topic's ledger from its bookie; return how many entries there were."""
    with Admin(pulsar.admin_url) as admin:
        (segment,) = segments_of(admin, topic).segments
    assert segment.metadata is not None
    with Bookies(by_map({"bk0test": address}), tls=tls) as bookies:
        return sum(map(len, LedgerReader(bookies, segment.metadata, patience_s=0).read(0, segment.last)))


def test_a_bookie_lets_in_who_comes_with_tls_and_a_certificate_of_its_role(
    pulsar: LocalPulsar, topic: str, port: int, certificates: Path
) -> None:
    def tls(name: str, authority: str = AUTHORITY) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=certificates / f"{authority}.pem")
        context.load_cert_chain(certificates / f"{name}.pem", certificates / f"{name}.key")
        return context

    address = f"127.0.0.1:{port}"
    assert read(pulsar, topic, address, tls("job")) == ROWS
    without = ssl.create_default_context(cafile=certificates / f"{AUTHORITY}.pem")
    with pytest.raises(BookieUnauthorized, match=r"bk0test refuses this client .*does not let this client read ledger"):
        read(pulsar, topic, address, None)
    for where, context, said in (
        (address, tls("job", "other"), "certificate verify failed"),
        (f"localhost:{port}", tls("job"), "Hostname mismatch"),
    ):
        with pytest.raises(BookieUntrusted, match=f"bk0test is not trusted by this client .*{said}"):
            read(pulsar, topic, where, context)
    for context in (without, tls("norole")):
        # The bookie says why and closes the connection. A client that still writes may miss what it said.
        with pytest.raises((BookieUnauthorized, BookieUnavailable), match=r"bk0test (refuses|could not be asked)"):
            read(pulsar, topic, address, context)


def test_a_table_comes_from_such_a_bookie_and_from_the_broker_without_the_right_certificate(
    pulsar: LocalPulsar, topic: str, port: int, certificates: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bookies = {
        "read.from": "bookies",
        "bookie.addresses": f"bk0test=127.0.0.1:{port}",
        "bookie.tls": "true",
        "bookie.tls_trust_certs": f"{certificates}/{AUTHORITY}.pem",
        "bookie.tls_certificate": f"{certificates}/job.pem",
        "bookie.tls_key": f"{certificates}/job.key",
    }
    by_broker = rows_of(pulsar, topic)
    assert sum(batch.num_rows for batch in by_broker) == ROWS
    with caplog.at_level(logging.WARNING, "eos.source"):
        assert rows_of(pulsar, topic, **bookies) == by_broker
        assert not caplog.messages
        no_role = {
            "bookie.tls_certificate": f"{certificates}/norole.pem",
            "bookie.tls_key": f"{certificates}/norole.key",
        }
        elsewhere = {"bookie.addresses": f"bk0test=localhost:{port}"}
        for wrong in (no_role, elsewhere):
            caplog.clear()
            assert rows_of(pulsar, topic, **bookies | wrong) == by_broker
            assert "is read through its brokers" in "".join(caplog.messages)
        caplog.clear()
        assert rows_of(pulsar, topic, **bookies | elsewhere, **{"bookie.tls_verify_hostname": "false"}) == by_broker
        assert not caplog.messages
    with pytest.raises(InvalidInput, match=r"there is no file /nowhere\.pem"):
        rows_of(pulsar, topic, **bookies | {"bookie.tls_trust_certs": "/nowhere.pem"})
