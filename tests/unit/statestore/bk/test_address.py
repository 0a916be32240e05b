"""Addresses: what is read from them, and what is refused with which advice."""

from __future__ import annotations

import pytest

from statestore import BkAddress, InvalidInput
from statestore.bk.address import is_bk


def test_one_zookeeper() -> None:
    address = BkAddress.parse("bk://zk.example:2181/flights/by-hour/")
    assert (address.servers, address.ledgers, address.root) == ("zk.example:2181", "/ledgers", "/eos-bk")
    assert address.path == "/flights/by-hour"
    assert address.uri == str(address) == "bk://zk.example:2181/flights/by-hour"


def test_a_named_ensemble() -> None:
    options = {"fs.bk.prod.metadata-service-uri": "zk+null://a:2181;b:2182/pulsar/ledgers", "fs.bk.root": "/jobs"}
    address = BkAddress.parse("bk://prod/flights", options)
    assert (address.servers, address.ledgers, address.root) == ("a:2181,b:2182", "/pulsar/ledgers", "/jobs")
    assert address.uri == "bk://prod/flights"


@pytest.mark.parametrize(("uri", "path"), [("bk://h:1", "/"), ("bk://h:1/", "/"), ("bk://h:1//a//b/../c", "/a/c")])
def test_paths_are_made_normal(uri: str, path: str) -> None:
    assert BkAddress.parse(uri).path == path


def test_options_of_the_ledgers_path_hold_for_one_zookeeper_only() -> None:
    assert BkAddress.parse("bk://h:1/", {"fs.bk.ledgers": "/mine/ledgers"}).ledgers == "/mine/ledgers"


def test_another_path_in_the_same_tree() -> None:
    address = BkAddress.parse("bk://h:1/a", {"fs.bk.root": "/r"})
    assert address.at("b/c").uri == "bk://h:1/a/b/c"
    assert address.at("/b").uri == "bk://h:1/b"
    assert address.at("b").root == "/r"


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("/plain/path", "expected bk://host:port/path"),
        ("bk:/half", "expected bk://host:port/path"),
        ("hdfs://h:1/p", "expected bk://host:port/path"),
        ("bk://a:1,b:2/p", "fs.bk.NAME.metadata-service-uri"),
        ("bk://my_name/p", "letters, digits and hyphens"),
        ("bk:///p", "no host"),
        ("bk://prod/p", "fs.bk.prod.metadata-service-uri is not set"),
    ],
)
def test_what_is_no_address_is_refused(uri: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        BkAddress.parse(uri)


@pytest.mark.parametrize("service", ["zk1:2181/ledgers", "zk://zk1:2181", "etcd//x/y"])
def test_a_service_uri_of_another_form_is_refused(service: str) -> None:
    with pytest.raises(InvalidInput, match="not of the form zk://"):
        BkAddress.parse("bk://prod/p", {"fs.bk.prod.metadata-service-uri": service})


def test_schemes() -> None:
    assert is_bk("bk:/x")
    assert not is_bk("file:///x")
