"""Python's view of a tree of names through the jar: files, ledgers, and why it sees nothing."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import google_crc32c
import pytest

from eos.local import checks, jars
from statestore import BkAddress, InvalidInput, NotFound, Unavailable
from statestore.bk import tree
from statestore.hadoop.file_systems import Hadoop
from tests.child_process import ChildProcess
from tests.integration.statestore.conftest import OwnTree, raw_zookeeper

ODD = ("100%", "a b", "ü漢", "\u0085", "\uf000", "😀", "new\nline", "tab\t", "..x", "~")


def test_files_and_their_ledgers(own_tree: OwnTree) -> None:
    """In a tree of its own: a pack that all tests share is closed at any write, once it is old enough."""
    root, options = own_tree
    bk = f"{root}folder"
    hadoop, address = Hadoop.of(options=options), BkAddress.parse(bk, options)
    files = {f"d/{name}": name.encode() * 3 for name in ODD} | {"empty": b"", "large": bytes(range(256)) * 5_000}
    for path, data in files.items():
        hadoop.write(f"{bk}/{path}", data)
    found = {path.removeprefix(address.path + "/"): record for path, record in tree.files(hadoop, address).items()}
    assert found.keys() == files.keys()
    for path, record in found.items():
        assert record.length == len(files[path])
        assert record.crc32c == google_crc32c.value(files[path])
        assert (record.ledger == tree.NO_LEDGER) == (record.length == 0)
    assert list(tree.files(hadoop, address.at("large")).values()) == [found["large"]]
    assert sorted(status.name for status in hadoop.list(f"{bk}/d")) == sorted(ODD)
    wanted = {found["large"].ledger, found["d/~"].ledger}
    ledgers = tree.ledgers(hadoop, address, wanted)
    assert ledgers.keys() == wanted
    assert tree.ledgers(hadoop, address).keys() >= wanted
    assert tree.ledgers(hadoop, address, []) == {}
    large, packed = ledgers[found["large"].ledger], ledgers[found["d/~"].ledger]
    assert (large.references, large.sealed, packed.sealed) == ((found["large"].write,), True, False)
    assert large.stored is not None
    assert (large.stored.closed, large.stored.length, len(large.stored.bookies)) == (True, 1_280_000, 1)
    assert found["d/~"].write in packed.references
    with pytest.raises(NotFound, match="nothing does not exist"):
        tree.files(hadoop, address.at("nothing"))


def test_who_only_looks_begins_no_tree(own_tree: OwnTree, zookeeper: str) -> None:
    uri, options = own_tree
    hadoop = Hadoop.of(options=options, make_root=False, own_jvm=True)
    for look in (hadoop.status, hadoop.list, hadoop.read):
        with pytest.raises(InvalidInput, match=r"no files of bk:// under .*fs.bk.root is another"):
            look(uri)
    with raw_zookeeper(hadoop, zookeeper) as client:
        assert client.exists(options["fs.bk.root"], False) is None
    Hadoop.of(options=options, own_jvm=True).write(f"{uri}x", b"1")
    assert hadoop.read(f"{uri}x") == b"1"


@pytest.mark.parametrize(
    ("at", "advice"),
    [("localhost:1", "is it running, is it that port"), ("nobody.invalid:1", "no address is known here for nobody")],
)
def test_where_no_zookeeper_can_be_is_told_soon(at: str, advice: str) -> None:
    """Far within the patience for a ZooKeeper that is slow, which is set to more than the test may take."""
    hadoop = Hadoop.of(options={"fs.bk.patience.ms": "3600000"}, own_jvm=True)
    with pytest.raises(Unavailable, match=f"No ZooKeeper answers at {at}: {advice}"):
        hadoop.status(f"bk://{at}/x")


def test_names_may_be_for_one_user_only(zookeeper: str) -> None:
    name = f"t{uuid.uuid4().hex[:10]}"
    options: dict[str, object] = {
        f"fs.bk.{name}.metadata-service-uri": f"zk://{zookeeper}/ledgers",
        "fs.bk.root": f"/{name}",
        "fs.bk.zookeeper-auth": "digest:spark:secret",
    }
    Hadoop.of(None, options).write(f"bk://{name}/q/x", b"1")
    assert tree.files(Hadoop.of(None, options), BkAddress.parse(f"bk://{name}/q", options)).keys() == {"/q/x"}
    del options["fs.bk.zookeeper-auth"]
    with pytest.raises(InvalidInput, match=r"ZooKeeper refuses access .*digest:user:password"):
        Hadoop.of(None, options).list(f"bk://{name}/q")


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
    prefix = "fs.bk.zookeeper."
    options: dict[str, object] = {
        f"{prefix}client.secure": "true",
        f"{prefix}clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        f"{prefix}ssl.keyStore.location": both,
        f"{prefix}ssl.trustStore.location": certificate,
    }
    with ChildProcess([*line, str(tmp_path / "zoo.cfg")], tmp_path / "zookeeper.log") as server:
        server.until(lambda: not checks.can_bind(port))
        yield f"localhost:{port}", options


def test_zookeeper_is_spoken_to_over_tls(tls: tuple[str, dict[str, object]]) -> None:
    """Nothing but a ZooKeeper is there: what answers says that the tree is missing."""
    at, options = tls
    with pytest.raises(InvalidInput, match="no files of bk:// under /eos-bk"):
        Hadoop.of(options=options, make_root=False, own_jvm=True).status(f"bk://{at}/q")
    trusting_others = {**options, "fs.bk.zookeeper.ssl.trustStore.location": ""}
    for wrong, said in ((trusting_others, "its certificate is not trusted"), ({}, "it speaks TLS there")):
        with pytest.raises(InvalidInput, match=said):
            Hadoop.of(options=wrong, make_root=False, own_jvm=True).status(f"bk://{at}/q")
