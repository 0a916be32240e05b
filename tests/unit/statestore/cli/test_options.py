"""Options that several verbs take."""

from __future__ import annotations

from pathlib import Path

import pytest

import eos
from statestore.cli.options import parse_options, settings_of, sink_output
from statestore.errors import InvalidInput


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


def test_the_output_is_where_the_sink_writes(tmp_path: Path) -> None:
    output = sink_output("s", "pulsar+ssl://h:6651/", "a/b", tmp_path / "token", tmp_path / "ca.pem")
    assert output.topic == "persistent://a/b/__eos-s"
    assert output.cluster.service_url == "pulsar+ssl://h:6651"
    assert output.cluster.credentials.data == f"file:{tmp_path / 'token'}"
    assert output.cluster.tls.trust_certs == str(tmp_path / "ca.pem")
    with pytest.raises(eos.InvalidInput, match="is an option of TLS, and pulsar://h:6650 asks for none"):
        sink_output("s", "pulsar://h:6650/", "a/b", None, tmp_path / "ca.pem")
