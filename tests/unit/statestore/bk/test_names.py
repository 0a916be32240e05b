from __future__ import annotations

from typing import Any

import pytest

from statestore.bk import zookeeper
from statestore.bk.address import Address
from statestore.bk.names import Directory, FileRecord, LedgerRecord, Names
from statestore.bk.zookeeper import MULTI_BYTES, Operation, Refused, split
from statestore.errors import InvalidInput, NotFound
from tests.unit.statestore.bk.fake_zookeeper import FakeZooKeeper


def file(write: str, ledger: int = 1, **changed: int) -> FileRecord:
    numbers = {"first": 0, "last": 0, "entry_size": 1024, "length": 5, "crc32c": 9, "mtime_ms": 77, **changed}
    return FileRecord(write, 0, ledger, **numbers)


@pytest.fixture
def names() -> Names:
    fake = FakeZooKeeper()
    fake.make("/eos-bk/n", "/eos-bk/L/empty", "/eos-bk/w", "/eos-bk/del", "/eos-bk/sp")
    fake.tree["/eos-bk/n"] = (b"", 1)
    fake.tree["/eos-bk/L/1"] = (b"open proc-1 0 -1", 0)
    return Names(fake, "/eos-bk")


def put(names: Names, path: str, record: FileRecord) -> None:
    names.zookeeper.write(names.create_file(path, record), lambda: names.has_reference(record))


def test_what_was_made_is_found_listed_and_walked(names: Names) -> None:
    names.make_directories("/q/state/0")
    put(names, "/q/state/0/1.delta", file("w-1"))
    put(names, "/q/100%", file("w-2", ledger=-1, last=-1, length=0))
    assert names.find("/q") == Directory(1_000)
    assert names.find("/q/100%") == file("w-2", ledger=-1, last=-1, length=0)
    assert names.find("/nothing") is None
    assert names.list("/q") == {"100%": names.find("/q/100%"), "state": Directory(1_000)}
    assert dict(names.walk("/q")) == {
        "/q/100%": names.find("/q/100%"),
        "/q/state/0/1.delta": names.find("/q/state/0/1.delta"),
    }
    assert list(names.walk("/q/100%")) == [("/q/100%", names.find("/q/100%"))]
    assert list(names.list("/")) == ["q"]


def test_what_is_not_there_is_said(names: Names) -> None:
    with pytest.raises(NotFound, match="/q does not exist"):
        names.list("/q")
    with pytest.raises(NotFound, match="/q does not exist"):
        list(names.walk("/q"))


def test_a_file_in_the_way_of_a_directory_is_named(names: Names) -> None:
    put(names, "/q", file("w-1"))
    with pytest.raises(InvalidInput, match="/q is a file"):
        names.make_directories("/q/state")


def test_nothing_is_put_into_a_file(names: Names) -> None:
    put(names, "/q", file("w-1"))
    with pytest.raises(Refused, match="BadVersionError"):
        names.zookeeper.write([names.check_directory("/q"), *names.create_file("/q/x", file("w-2"))], lambda: False)
    assert names.find("/q/x") is None


def test_ledgers_show_owner_and_references(names: Names) -> None:
    put(names, "/a", file("w-1"))
    put(names, "/empty", file("w-2", ledger=-1))
    assert list(names.ledgers()) == [LedgerRecord(1, "proc-1", False, 0, ("w-1",))]
    assert names.references(1) == {"w-1": "/a"}
    names.zookeeper.write(names.remove_file("/a", file("w-1")), lambda: not names.has_reference(file("w-1")))
    assert list(names.ledgers()) == [LedgerRecord(1, "proc-1", False, 0, ())]


def test_a_file_renamed_meanwhile_is_not_removed(names: Names) -> None:
    put(names, "/a", file("w-1"))
    reference = names.reference(file("w-1"))
    names.zookeeper.write([Operation("set", reference, b"1 /b", 0)], lambda: names.references(1) == {"w-1": "/b"})
    with pytest.raises(Refused, match="BadVersionError"):
        names.zookeeper.write(names.remove_file("/a", file("w-1")), lambda: False)


def test_a_tree_is_removed_whole_and_its_references_with_it(names: Names) -> None:
    names.make_directories("/q/state/0")
    put(names, "/q/state/0/1.delta", file("w-1"))
    put(names, "/q/empty", file("w-2", ledger=-1))
    put(names, "/other", file("w-3"))
    names.remove_tree("/q")
    names.remove_tree("/nothing")
    assert list(names.walk("/")) == [("/other", file("w-3"))]
    assert names.find("/q") is None
    assert names.references(1) == {"w-3": "/other"}


def test_a_free_ledger_can_not_be_referred_to(names: Names) -> None:
    with pytest.raises(Refused) as refused:
        put(names, "/a", file("w-1", ledger=8))
    assert (refused.value.position, refused.value.why) == (1, "NoNodeError")
    assert names.find("/a") is None


def test_multis_stay_below_what_a_server_takes_and_groups_stay_whole() -> None:
    groups = [[Operation("create", f"/{n}", bytes(1000)), Operation("set", f"/{n}")] for n in range(1500)]
    multis = list(split(groups))
    assert [operation for multi in multis for operation in multi] == [part for group in groups for part in group]
    assert len(multis) > 2
    assert all(len(multi) % 2 == 0 for multi in multis)
    assert all(sum(len(part.data) for part in multi) < MULTI_BYTES for multi in multis)


class Client:
    """Stands for kazoo's client; remembers what it was made with."""

    made: dict[str, Any]

    def __init__(self, **arguments: Any) -> None:
        Client.made = arguments

    def start(self, timeout: float) -> None: ...


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> type[Client]:
    monkeypatch.setattr(zookeeper, "KazooClient", Client)
    return Client


def connect(**options: str) -> None:
    given = {"fs.bk." + name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
    zookeeper.ZooKeeper.connect(Address.parse("bk://zk1:2181/q", given))


def test_without_options_a_session_is_open_to_all(client: type[Client]) -> None:
    connect(session__timeout__ms="9000")
    assert client.made["hosts"] == "zk1:2181"
    assert client.made["timeout"] == 9
    assert not {"use_ssl", "auth_data", "default_acl"} & client.made.keys()


def test_credentials_are_sent_and_what_is_made_is_for_them_only(client: type[Client]) -> None:
    connect(zookeeper_auth="digest:spark:a:b")
    assert client.made["auth_data"] == [("digest", "spark:a:b")]
    assert [acl.id.scheme for acl in client.made["default_acl"]] == ["auth"]
    with pytest.raises(InvalidInput, match="digest:user:password"):
        connect(zookeeper_auth="spark")


def test_tls_takes_the_options_of_java(client: type[Client]) -> None:
    secure = {
        "zookeeper__client__secure": "true",
        "zookeeper__ssl__keyStore__location": "/own.pem",
        "zookeeper__ssl__keyStore__password": "secret",
        "zookeeper__ssl__trustStore__location": "/ca.pem",
    }
    connect(**secure)
    made = {name: client.made[name] for name in ("use_ssl", "ca", "certfile", "keyfile", "keyfile_password")}
    assert made == {
        "use_ssl": True,
        "ca": "/ca.pem",
        "certfile": "/own.pem",
        "keyfile": "/own.pem",
        "keyfile_password": "secret",
    }
    checks = client.made["check_hostname"]
    assert checks is True
    connect(**secure, zookeeper__ssl__hostnameVerification="false")
    assert client.made["check_hostname"] is False
    with pytest.raises(InvalidInput, match=r"Python reads PEM only.*openssl"):
        connect(**{**secure, "zookeeper__ssl__trustStore__location": "/ca.jks"})
