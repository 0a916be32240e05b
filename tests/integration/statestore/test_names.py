"""Names as the jar writes them, read by Python, and the other way round; answers that were lost."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import google_crc32c
import pytest
from kazoo.exceptions import ConnectionLoss
from kazoo.security import make_digest_acl

from eos.local import checks, jars
from statestore import Address, InvalidInput, NotFound, Unavailable
from statestore.bk.names import Directory, FileRecord, Names
from statestore.bk.zookeeper import Operation, Refused, ZooKeeper, split
from statestore.hadoop.file_systems import Hadoop

ODD = ("100%", "a b", "ü漢", "\u0085", "\uf000", "😀", "new\nline", "tab\t", "..x", "~")


@pytest.fixture
def hadoop() -> Hadoop:
    return Hadoop.of()


@pytest.fixture
def names(bk: str) -> Iterator[Names]:
    with Names.connect(Address.parse(bk)) as connected:
        yield connected


def test_python_reads_what_the_jar_writes(bk: str, hadoop: Hadoop) -> None:
    files = {f"d/{name}": name.encode() * 3 for name in ODD} | {"empty": b"", "large": bytes(range(256)) * 5_000}
    for path, data in files.items():
        hadoop.write(f"{bk}/{path}", data)
    address = Address.parse(bk)
    with Names.connect(address) as names:
        found = {path.removeprefix(address.path + "/"): record for path, record in names.walk(address.path)}
        assert found.keys() == files.keys()
        for path, record in found.items():
            assert record.length == len(files[path])
            assert record.crc32c == google_crc32c.value(files[path])
            assert (record.ledger == -1) == (record.length == 0)
            assert names.has_reference(record)
        assert isinstance(names.find(f"{address.path}/d"), Directory)
        assert names.list(address.path).keys() == {"d", "empty", "large"}
        ledgers = {ledger.id: ledger for ledger in names.ledgers()}
        large = ledgers[found["large"].ledger]
        assert large.references == (found["large"].write,)
        assert large.sealed
        packed = ledgers[found["d/~"].ledger]
        assert not packed.sealed
        assert names.writers()[packed.owner], "its writer lives"
        assert names.references(packed.id)[found["d/~"].write] == f"{address.path}/d/~"
        assert uuid.UUID(names.identity)
        assert found["large"].encode() == names.zookeeper.node(names.name(f"{address.path}/large")).data  # type: ignore[union-attr]


def test_the_jar_reads_what_python_writes(bk: str, hadoop: Hadoop) -> None:
    """Names that Python made for bytes that are there are files to Hadoop: listed, opened, renamed, deleted."""
    address = Address.parse(bk)
    hadoop.write(f"{bk}/original", b"the bytes")
    with Names.connect(address) as names:
        record = names.find(f"{address.path}/original")
        assert isinstance(record, FileRecord)
        copies = [f"{address.path}/copies/{name}" for name in ODD]
        names.make_directories(f"{address.path}/copies")
        for number, path in enumerate(copies):
            copy = FileRecord(f"{uuid.uuid4().hex[:16]}-{number}", 0, *_place(record))
            names.zookeeper.write(names.create_file(path, copy), lambda copy=copy: names.has_reference(copy))  # type: ignore[misc]
        assert [status.name for status in hadoop.list(f"{bk}/copies")] == sorted(ODD)
        assert {hadoop.read(f"{bk}/copies/{status.name}") for status in hadoop.list(f"{bk}/copies")} == {b"the bytes"}
        hadoop.rename(f"{bk}/copies/~", f"{bk}/copies/renamed")
        hadoop.delete(bk, recursive=True)
        assert names.find(address.path) is None
        assert record.write not in names.references(record.ledger)


def _place(record: FileRecord) -> tuple[int, ...]:
    return (
        *(record.ledger, record.first, record.last, record.entry_size),
        *(record.length, record.crc32c, record.mtime_ms),
    )


def test_a_listing_beyond_a_mebibyte_is_read(names: Names) -> None:
    """Java's client refuses answers over 1 MiB unless it is told otherwise."""
    top = f"/{uuid.uuid4().hex}"
    names.make_directories(top)
    record = FileRecord("w-1", 0, -1, 0, -1, 1024, 0, 0, 1)
    children = [names.name(f"{top}/{number:05}-{'x' * 110}") for number in range(10_000)]
    for kind, data in (("create", record.encode()), ("delete", b"")):
        for multi in split([Operation(kind, child, data)] for child in children):  # type: ignore[arg-type]
            trace = names.zookeeper.there if kind == "create" else names.zookeeper.gone
            names.zookeeper.write(multi, trace(multi[-1].path))
        found = names.list(top)
        assert len(found) == (10_000 if kind == "create" else 0)
        assert set(found.values()) <= {record}
    names.remove_tree(top)
    assert names.find(top) is None


def test_an_address_without_files_is_told(zookeeper: str) -> None:
    with pytest.raises(NotFound, match=r"no files of bk:// under /nothing-here"):
        Names.connect(Address.parse(f"bk://{zookeeper}/x", {"fs.bk.root": "/nothing-here"}))
    with pytest.raises(Unavailable, match="No ZooKeeper answers at localhost:1"):
        Names.connect(Address.parse("bk://localhost:1/x", {"fs.bk.patience.ms": "300"}))


def test_a_write_that_got_no_answer_is_looked_up(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = Lost(names.zookeeper, monkeypatch)
    path = f"{names.root}/test-{uuid.uuid4().hex}"
    there = names.zookeeper.there(path)
    lost.answers(["after"])
    names.zookeeper.write([Operation("create", path)], there)
    assert lost.sent == 1, "carried out, and not sent again"
    lost.answers(["before"])
    names.zookeeper.write([Operation("set", path, b"x", 0)], lambda: _data(names.zookeeper, path) == b"x")
    assert lost.sent == 1, "not carried out, so sent again"
    lost.answers(["before", "after"])
    names.zookeeper.write([Operation("delete", path, version=1)], names.zookeeper.gone(path))
    assert lost.sent == 1
    lost.answers([])
    with pytest.raises(Refused, match="NoNodeError") as refused:
        names.zookeeper.write([Operation("check", names.root), Operation("delete", path)], lambda: False)
    assert (refused.value.position, refused.value.why) == (1, "NoNodeError")


def test_a_write_without_any_answer_says_that_nothing_is_known(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = Lost(names.zookeeper, monkeypatch)
    monkeypatch.setattr(names.zookeeper, "_patience_s", 0.5)
    monkeypatch.setattr(names.zookeeper, "sync", _never)
    lost.answers(["before"])
    with pytest.raises(Unavailable, match="not known whether it happened"):
        names.zookeeper.write([Operation("create", f"{names.root}/x")], lambda: False)


def _never() -> None:
    raise Unavailable("gone")


def _data(zookeeper: ZooKeeper, path: str) -> bytes:
    node = zookeeper.node(path)
    return b"" if node is None else node.data


class Lost:
    """Loses the answers of multis, before or after they are carried out. Attributes: sent: those that went out."""

    def __init__(self, zookeeper: ZooKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent = 0
        self._moments: list[str] = []
        client: Any = zookeeper._client
        transaction = client.transaction

        def lossy() -> Any:
            request = transaction()
            commit_async = request.commit_async

            def commit() -> Any:
                moment = self._moments.pop(0) if self._moments else ""
                if moment == "before":
                    raise ConnectionLoss
                self.sent += 1
                answer = commit_async()
                if moment == "after":
                    answer.get()
                    raise ConnectionLoss
                return answer

            request.commit_async = commit
            return request

        monkeypatch.setattr(client, "transaction", lossy)

    def answers(self, moments: list[str]) -> None:
        self.sent, self._moments = 0, moments


def test_names_may_be_for_one_user_only(zookeeper: str) -> None:
    name = f"t{uuid.uuid4().hex[:10]}"
    options: dict[str, object] = {
        f"fs.bk.{name}.metadata-service-uri": f"zk://{zookeeper}/ledgers",
        "fs.bk.root": f"/{name}",
        "fs.bk.zookeeper-auth": "digest:spark:secret",
    }
    Hadoop.of(None, options).write(f"bk://{name}/q/x", b"1")
    with Names.connect(Address.parse(f"bk://{name}/q", options)) as names:
        names.make_directories("/q/by-python")
        acl = names.zookeeper._client.get_acls(names.name("/q/by-python"))[0]
        assert acl == [make_digest_acl("spark", "secret", all=True)]
        assert names.list("/q").keys() == {"x", "by-python"}
    del options["fs.bk.zookeeper-auth"]
    with pytest.raises(InvalidInput, match="ZooKeeper refuses access"):
        Names.connect(Address.parse(f"bk://{name}/q", options))


@pytest.fixture
def tls(tmp_path: Path) -> Iterator[tuple[str, dict[str, object]]]:
    """host:port of a ZooKeeper that takes only TLS with a client's certificate, and the options for it."""
    key, certificate, both = tmp_path / "key.pem", tmp_path / "cert.pem", tmp_path / "both.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    make += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(make, check=True, capture_output=True)
    both.write_text(key.read_text() + certificate.read_text())
    (port,) = checks.pick_ports(1)
    (tmp_path / "zoo.cfg").write_text(
        f"dataDir={tmp_path}/data\nsecureClientPort={port}\nadmin.enableServer=false\n"
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
        f"ssl.keyStore.location={both}\nssl.trustStore.location={certificate}\nssl.clientAuth=need\n"
    )
    main = "org.apache.zookeeper.server.ZooKeeperServerMain"
    line = [str(checks.java()), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", jars.classpath(), main]
    server = subprocess.Popen([*line, str(tmp_path / "zoo.cfg")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    prefix = "fs.bk.zookeeper."
    options: dict[str, object] = {
        f"{prefix}client.secure": "true",
        f"{prefix}ssl.keyStore.location": both,
        f"{prefix}ssl.trustStore.location": certificate,
    }
    try:
        yield f"localhost:{port}", options
    finally:
        server.kill()
        server.wait()


def test_zookeeper_is_spoken_to_over_tls(tls: tuple[str, dict[str, object]]) -> None:
    at, options = tls
    with ZooKeeper.connect(Address.parse(f"bk://{at}/q", options)) as session:
        session.write([Operation("create", "/x", b"1")], session.there("/x"))
        assert _data(session, "/x") == b"1"
    trusting_others = {**options, "fs.bk.zookeeper.ssl.trustStore.location": "", "fs.bk.patience.ms": "1500"}
    with pytest.raises(Unavailable, match="No ZooKeeper answers"):
        ZooKeeper.connect(Address.parse(f"bk://{at}/q", trusting_others))
    with pytest.raises(Unavailable, match="No ZooKeeper answers"):
        ZooKeeper.connect(Address.parse(f"bk://{at}/q", {"fs.bk.patience.ms": "1500"}))
