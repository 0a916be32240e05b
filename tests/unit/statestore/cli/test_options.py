"""Options that several verbs take."""

from __future__ import annotations

from pathlib import Path

import pytest

from statestore.cli.options import parse_options, settings_of, sink_output
from statestore.errors import InvalidInput


def test_options_are_read_and_checked() -> None:
    assert parse_options(None) == {}
    assert parse_options(["fs.bk.password=a=b"]) == {"fs.bk.password": "a=b"}
    with pytest.raises(InvalidInput, match="NAME=VALUE"):
        parse_options(["fs.bk.root"])
    with pytest.raises(InvalidInput, match=r"Did you mean fs\.bk\.root"):
        parse_options(["fs.bk.rot=/x"])


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
