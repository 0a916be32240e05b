"""TLS: trust, host names, client certificates, and bytes both ways at once."""

from __future__ import annotations

import ssl
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from eos.config import Cluster, Credentials, Tls
from eos.errors import BadCertificates, ConnectionLost, InvalidInput, NetworkError, Unreachable
from eos.pulsar.net.client import Client, InFlight
from eos.pulsar.net.transport import tls_context
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.batch import Chunk
from tests.unit.pulsar.net.fake_broker import FakeBroker


@dataclass(frozen=True)
class Certificates:
    certificate: str
    key: str


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """A certificate for 127.0.0.1 that signs itself."""
    folder = tmp_path_factory.mktemp("tls")
    made = Certificates(str(folder / "cert.pem"), str(folder / "key.pem"))
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=broker"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", made.key, "-out", made.certificate]
    subprocess.run(command, check=True, capture_output=True)
    return made


def server(certificates: Certificates, *, asks_for_certificate: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.certificate, certificates.key)
    if asks_for_certificate:
        context.load_verify_locations(certificates.certificate)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def test_everything_works_over_tls(certificates: Certificates) -> None:
    chunk = Chunk(messages=1, payload=b"x" * 200_000, uncompressed_size=200_000, rows_bytes=200_000, compression="none")
    with FakeBroker(server(certificates)) as broker:
        with broker.client(tls=Tls(trust_certs=certificates.certificate)) as client:
            budget = InFlight(1_000_000)
            producers = [client.producer(topic, budget=budget) for topic in "abc"]

            def send(index: int) -> None:
                for _ in range(20):
                    producers[index].send(chunk, None)

            senders = [threading.Thread(target=send, args=[index]) for index in range(3)]
            for sender in senders:
                sender.start()
            for sender in senders:
                sender.join()
            for producer in producers:
                producer.close()
        frames = [frame for frame in broker.received if frame.command.type == Type.SEND]
        assert len(frames) == 60
        assert all(frame.entries[0].packed == chunk.payload for frame in frames)
        assert len(broker.sessions) == 1


def test_an_unknown_authority_is_refused(certificates: Certificates) -> None:
    with (
        FakeBroker(server(certificates)) as broker,
        broker.client() as client,
        pytest.raises(Unreachable, match=r"no TLS connection to pulsar\+ssl://.*CERTIFICATE_VERIFY_FAILED"),
    ):
        client.partitions("t")


def test_another_host_name_is_refused_unless_told_otherwise(certificates: Certificates) -> None:
    with FakeBroker(server(certificates)) as broker:
        url = broker.url.replace("127.0.0.1", "localhost")
        for verify in (True, False):
            tls = Tls(trust_certs=certificates.certificate, verify_hostname=verify)
            with Client(Cluster(url, tls=tls, connect_timeout_s=30)) as client:
                if verify:
                    with pytest.raises(Unreachable, match="localhost"):
                        client.partitions("t")
                else:
                    assert client.partitions("t") == 0


def test_a_client_certificate_is_shown(certificates: Certificates) -> None:
    with FakeBroker(server(certificates, asks_for_certificate=True)) as broker:
        tls = Tls(certificates.certificate, certificate=certificates.certificate, key=certificates.key)
        with broker.client(tls=tls, credentials=Credentials("tls")) as client:
            assert client.partitions("t") == 0
        (connect,) = broker.commands(Type.CONNECT)
        assert connect.connect.auth_method_name == "tls"


def test_tls_authentication_needs_a_certificate(certificates: Certificates) -> None:
    with FakeBroker(server(certificates)) as broker:
        tls = Tls(trust_certs=certificates.certificate)
        with (
            broker.client(tls=tls, credentials=Credentials("tls")) as client,
            pytest.raises(InvalidInput, match="certificate="),
        ):
            client.partitions("t")


@pytest.mark.parametrize("option", ["trust_certs", "certificate", "key"])
@pytest.mark.parametrize("text", [None, "no certificate"])
def test_a_pem_file_that_cannot_be_read_is_named_before_anything_is_dialled(
    tmp_path: Path, certificates: Certificates, option: str, text: str | None
) -> None:
    path = tmp_path / "wrong.pem"
    if text is not None:
        path.write_text(text)
    given = {"trust_certs": None, "certificate": certificates.certificate, "key": certificates.key, option: str(path)}
    with (
        FakeBroker(server(certificates)) as broker,
        broker.client(tls=Tls(**given)) as client,  # type: ignore[arg-type]
    ):
        words = f"there is no file {path}" if text is None else rf" in PEM .*{path}.*: "
        with pytest.raises(InvalidInput, match=rf"can't read the .*{words}") as told:
            client.partitions("t")
        assert broker.sessions == []
    assert isinstance(told.value, NetworkError), "while a commit is under way it says nothing of the batch"


def test_a_pem_file_that_is_replaced_by_a_worse_one_is_named_once_for_all_hosts(certificates: Certificates) -> None:
    cluster = Cluster("pulsar+ssl://127.0.0.1:1,127.0.0.1:2", tls=Tls(trust_certs="/nowhere/ca.pem"))
    with Client(cluster) as client, pytest.raises(BadCertificates, match=r"^can't read the trusted certificates"):
        client.partitions("t")


def test_a_plain_port_behind_a_tls_url() -> None:
    with FakeBroker() as broker:
        cluster = Cluster(broker.url.replace("pulsar://", "pulsar+ssl://"), connect_timeout_s=30)
        with Client(cluster) as client, pytest.raises(Unreachable, match=r"no TLS connection.* Its plain port takes"):
            client.partitions("t")


def test_a_tls_port_behind_a_plain_url(certificates: Certificates) -> None:
    with FakeBroker(server(certificates)) as broker:
        plain = Cluster(broker.url.replace("pulsar+ssl://", "pulsar://"), connect_timeout_s=30)
        with Client(plain) as client, pytest.raises(ConnectionLost, match=r"pulsar\+ssl://"):
            client.partitions("t")


def test_a_key_that_needs_a_password_is_told_so_and_nobody_is_asked(certificates: Certificates, tmp_path: Path) -> None:
    encrypted = str(tmp_path / "encrypted.pem")
    command = ["openssl", "pkey", "-in", certificates.key, "-aes256", "-passout", "pass:s3cret", "-out", encrypted]
    subprocess.run(command, check=True, capture_output=True)
    with pytest.raises(BadCertificates, match=rf"the key {encrypted} is encrypted by a password.*openssl pkey -in KEY"):
        tls_context(Tls(certificate=certificates.certificate, key=encrypted), Credentials("tls"))
