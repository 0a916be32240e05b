"""Options: names and values are checked before anything is started, and agree with what the jar reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from statestore import InvalidInput
from statestore.hadoop.options import OPTIONS, checked, value

JAR = Path(__file__).parents[4] / "statestore/java/src/main/java/eos/bk"


def test_values_become_text() -> None:
    given = {"fs.bk.ensemble": 3, "fs.bk.bookkeeper.useV2WireProtocol": True, "fs.bk.compact.below": 0.5}
    assert checked(given) == {
        "fs.bk.ensemble": "3",
        "fs.bk.bookkeeper.useV2WireProtocol": "true",
        "fs.bk.compact.below": "0.5",
    }


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("fs.bk.esemble", "Did you mean fs.bk.ensemble?"),
        ("ensemble", "Did you mean fs.bk.ensemble?"),
        ("fs.bk.prod.metadata-service-url", "Did you mean fs.bk.NAME.metadata-service-uri?"),
        ("fs.bk.x", "The options are: ledgers, root"),
        ("fs.bk.pack_bytes", "Did you mean fs.bk.pack.bytes?"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(f"{name} is not an option of bk://. {hint}")):
        checked({name: "1"})


@pytest.mark.parametrize(
    ("name", "wrong", "right"),
    [
        ("ensemble", "three", "3"),
        ("ensemble", "-1", "0"),
        ("window", "0", "1"),
        ("compact.below", "2", "0.3"),
        ("compact.below", "some", "1"),
        ("root", "eos", "/eos"),
        ("root", "/", "/eos/bk"),
        ("digest", "md5", "CRC32C"),
        ("tls", "yes", "all"),
        ("zookeeper-acl", "all", "creator"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(name: str, wrong: str, right: str) -> None:
    with pytest.raises(InvalidInput, match=rf"fs\.bk\.{name} is '{wrong}'; expected: "):
        checked({f"fs.bk.{name}": wrong})
    assert checked({f"fs.bk.{name}": right}) == {f"fs.bk.{name}": right}


@pytest.mark.parametrize("right", ["digest:me:pw", "file:/run/secrets/zk", "kerberos:me", "DIGEST:me:p:w"])
def test_what_is_shown_to_zookeeper_has_a_form(right: str) -> None:
    assert checked({"fs.bk.zookeeper-auth": right}) == {"fs.bk.zookeeper-auth": right}


@pytest.mark.parametrize("wrong", ["pa55word", "digest:pa55word", "file:", ":pa55word"])
def test_a_wrong_one_is_refused_without_its_words(wrong: str) -> None:
    with pytest.raises(InvalidInput, match=r"fs\.bk\.zookeeper-auth is neither digest:user:password nor") as refused:
        checked({"fs.bk.zookeeper-auth": wrong})
    assert "pa55word" not in str(refused.value)


def test_defaults() -> None:
    assert value({}, "root") == "/eos-bk"
    assert value({"fs.bk.root": "/r"}, "root") == "/r"
    checked({f"fs.bk.{name}": option.default for name, option in OPTIONS.items()})


def test_the_jar_reads_the_same_options() -> None:
    source = "".join((JAR / name).read_text() for name in ("Settings.java", "Security.java"))
    read = set(re.findall(r'(?:P \+ |options\.\w+\()"([a-z.-]+)"', source)) - {"zookeeper.", "bookkeeper."}
    assert read - {"make-root"} == set(OPTIONS), "that one is between our tools and the jar"
    least = dict(re.findall(r'options\.number\("([a-z.-]+)", .+?, (\d)\)', source))
    kinds = {
        name: {"count": "0", "size": "1"}[one.kind] for name, one in OPTIONS.items() if one.kind in ("count", "size")
    }
    assert least == kinds, "both take the same numbers"


def test_the_table_in_the_docs_is_this_one() -> None:
    page = (JAR.parents[6] / "docs/how-to/state-on-bookkeeper.md").read_text()
    rows = re.findall(r"^\| `fs\.bk\.([a-z.-]+)` \| (?:`(.*?)`|none) \| (.*?) \|$", page, re.MULTILINE)
    assert rows == [(name, option.default, option.meaning) for name, option in OPTIONS.items()]
