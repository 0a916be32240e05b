"""Options that several verbs take."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import eos
from eos.cli.connection import ConnectionSettings, connection
from eos.cli.layers import Layer, variable
from eos.config import Credentials, Tls
from statestore.cli.app import typer_app
from statestore.cli.options import cluster_of, parse_options, settings_of, sink_output
from statestore.errors import InvalidInput
from statestore.hadoop.file_systems import Hadoop


def test_options_are_read_and_checked() -> None:
    assert parse_options(None) == {}
    assert parse_options(["fs.bk.password=a=b"]) == {"fs.bk.password": "a=b"}
    with pytest.raises(InvalidInput, match="NAME=VALUE"):
        parse_options(["fs.bk.root"])
    with pytest.raises(InvalidInput, match=r"Did you mean fs\.bk\.root"):
        parse_options(["fs.bk.rot=/x"])


def test_options_may_lie_in_a_file_of_sparks_settings(tmp_path: Path) -> None:
    file = tmp_path / "spark-defaults.conf"
    file.write_text(
        "# of the job\nspark.master local[2]\nspark.hadoop.fs.bk.impl eos.bk.BookKeeperFileSystem\n"
        "spark.hadoop.fs.bk.zookeeper-auth file:/run/zk\nfs.bk.root=/r\n"
    )
    assert parse_options([f"@{file}", "fs.bk.root=/s"]) == {"fs.bk.zookeeper-auth": "file:/run/zk", "fs.bk.root": "/s"}
    file.write_text("fs.bk.rot=/x")
    with pytest.raises(InvalidInput, match=r"Did you mean fs\.bk\.root"):
        parse_options([f"@{file}"])
    with pytest.raises(InvalidInput, match=r"--option @/no/file: the file can't be read: .*No such file"):
        parse_options(["@/no/file"])


def test_what_may_be_a_secret_is_not_said() -> None:
    with pytest.raises(InvalidInput, match=r"'fs\.bk\.zookeeper-auth' has no =") as refused:
        parse_options(["fs.bk.zookeeper-auth digest:me:pa55word"])
    assert "pa55word" not in str(refused.value)


def test_settings_of_spark_are_pairs() -> None:
    assert settings_of(None) == {}
    assert settings_of(["a=b", "spark.x=1=2"]) == {"a": "b", "spark.x": "1=2"}
    with pytest.raises(InvalidInput, match="--conf takes NAME=VALUE"):
        settings_of(["spark.x"])


def settings(monkeypatch: pytest.MonkeyPatch, **given: str) -> ConnectionSettings:
    for one in fields(Layer):
        monkeypatch.delenv(variable(one.name), raising=False)
    monkeypatch.delenv("PULSAR_CLIENT_CONF", raising=False)
    return connection(**given)  # type: ignore[arg-type]


def test_the_output_is_where_the_sink_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {"token": "file:/token", "tls_trust_certs": "ca.pem", "tls_certificate": "c.pem", "tls_key": "k.pem"}
    by = settings(monkeypatch, service_url="pulsar+ssl://h:6651/", **shown)
    output = sink_output("s", "a/b", by)
    assert output.topic == "persistent://a/b/__eos-s"
    assert output.cluster.service_url == "pulsar+ssl://h:6651"
    assert output.cluster.credentials.data == "file:/token"
    assert output.cluster.tls == Tls("ca.pem", True, "c.pem", "k.pem")
    with pytest.raises(InvalidInput, match="--sink, the name of the job's sink, must be given"):
        sink_output(None, "a/b", by)
    with pytest.raises(InvalidInput, match="--service-url, the cluster it writes to, must be given"):
        sink_output("s", "a/b", settings(monkeypatch))
    with pytest.raises(eos.InvalidInput, match="is an option of TLS, and pulsar://h:6650 asks for none"):
        sink_output("s", "a/b", settings(monkeypatch, service_url="pulsar://h:6650/", tls_trust_certs="ca.pem"))


def test_a_topics_address_names_the_cluster_whatever_the_options_say(monkeypatch: pytest.MonkeyPatch) -> None:
    by = settings(monkeypatch, service_url="pulsar://other:1", basic="u:p")
    cluster = cluster_of("pulsar://h:6650/a/b/topic", by)
    assert (cluster.service_url, cluster.credentials) == ("pulsar://h:6650", Credentials("basic", "u:p"))


CONNECTING = (("savepoint", "create"), ("savepoint", "list"), ("savepoint", "restore"), ("restore",))
DRILLS = (("drill", "rehearse"), ("drill", "shadow"))


@pytest.mark.parametrize("words", [*CONNECTING, *DRILLS], ids=" ".join)
def test_each_command_that_asks_a_pulsar_takes_the_options_of_eos(words: tuple[str, ...]) -> None:
    found: Any = typer.main.get_command(typer_app)
    for word in words:
        found = found.commands[word]
    panel = {one.name for one in found.params if getattr(one, "rich_help_panel", "") == "Connection"}
    assert panel == set(inspect.signature(connection).parameters)
    assert {"by", "token_file", "trust_certs"}.isdisjoint(one.name for one in found.params)


@pytest.mark.parametrize(
    "command",
    [
        *([verb, "bk://zk:2181/q"] for verb in ("ls", "stat", "cat", "du", "rm", "snapshots", "verify")),
        ["cp", "bk://zk:2181/q", "file:///copy"],
        ["cp", "bk://zk:2181/q", "bk://zk:2181/copy"],
        *([verb, "bk://zk:2181/"] for verb in ("gc", "orphans")),
        *(["savepoint", verb, "one", "bk://zk:2181/q"] for verb in ("create", "delete", "restore")),
        ["savepoint", "list", "bk://zk:2181/"],
        ["savepoint", "every", "bk://zk:2181/q", "--once"],
    ],
    ids=" ".join,
)
def test_no_verb_begins_a_tree_of_names_to_look_into(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of a mistyped fs.bk.root, where nothing is: the jar says so."""

    def of(*_: object, make_root: bool = True, **__: object) -> None:
        raise InvalidInput(f"a root is made: {make_root}")

    monkeypatch.setattr(Hadoop, "of", of)
    assert str(CliRunner().invoke(typer_app, command).exception) == "a root is made: False"
