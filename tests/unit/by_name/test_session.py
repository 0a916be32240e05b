"""`eos.configure_spark` on a builder that only remembers."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

import eos
from eos.by_name import session
from eos.credentials import OAUTH2
from eos.errors import InvalidInput
from statestore.hadoop import session as statestore_session
from tests.unit.statestore.hadoop.test_session import JAR, Builder

SERVICE_URL = "pulsar://localhost:6650"
SECRETS = ("token", "basic", "oauth2", "offload.credentials")
OFFLOADED: dict[str, Any] = {
    "admin_url": "http://localhost:8080",
    "options": {"offload.url": "s3://b", "read.from": "auto"},
}
ISSUER = {"issuer_url": "https://x"}
KEY = base64.b64encode(b'{"client_id": "i", "client_secret": "pa55word"}').decode()
OAUTH2_SHOWN = [
    *(ISSUER | {"client_id": "i", name: "pa55word"} for name in ("client_secret", *OAUTH2["client_secret"].others)),
    *(ISSUER | {name: f"data:application/json;base64,{KEY}"} for name in ("key_file", *OAUTH2["key_file"].others)),
]
"""Each way in which a secret may stand in the option itself."""


@pytest.fixture(autouse=True)
def no_jvm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module in (session, statestore_session):
        monkeypatch.setattr(module, "driver_has_jar", lambda: False)
    monkeypatch.setattr(session, "shipped_jar", lambda: Path(JAR))
    monkeypatch.setattr(statestore_session, "jar_path", lambda: Path(JAR))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)


def made(builder: Builder, **more: Any) -> dict[str, str]:
    found: dict[str, str] = eos.configure_spark(builder, **{"service_url": SERVICE_URL, **more})._options
    return found


def test_all_that_a_session_needs() -> None:
    settings = made(Builder(), admin_url="http://localhost:8080", options={"guarantee": "at-least-once"})
    redaction = settings.pop("spark.redaction.regex")
    assert all(re.search(redaction, f"spark.sql.catalog.pulsar.{word}") for word in SECRETS)
    assert settings == {
        "spark.jars": JAR,
        "spark.driver.extraClassPath": JAR,
        "spark.executor.extraClassPath": JAR,
        "spark.hadoop.fs.bk.impl": "eos.bk.BookKeeperFileSystem",
        "spark.hadoop.fs.AbstractFileSystem.bk.impl": "eos.bk.Bk",
        "spark.sql.catalog.pulsar": "eos.sql.PulsarCatalog",
        "spark.sql.catalog.pulsar.service.url": SERVICE_URL,
        "spark.sql.catalog.pulsar.admin.url": "http://localhost:8080",
        "spark.sql.catalog.pulsar.guarantee": "at-least-once",
    }


def test_it_goes_with_statestore_and_with_itself_in_any_order() -> None:
    one = statestore_session.configure_spark(Builder(), options={"fs.bk.ensemble": 2})
    other = Builder()
    statestore_session.configure_spark(
        eos.configure_spark(other, service_url=SERVICE_URL), options={"fs.bk.ensemble": 2}
    )
    assert made(one) == other._options
    assert made(one, catalog="second")["spark.jars"] == JAR


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"service_url": "http://localhost"}, "pulsar://"),
        ({"catalog": "a.b"}, "is not a name for a catalog"),
        ({"options": {"tokn": "file:/x"}}, "Did you mean 'token'"),
        ({"options": {"on_damaged_entry": "keep"}}, "needs the column __damage, which no table of the SQL catalog has"),
        ({"options": {"maxEntriesPerTrigger": "5"}}, "for a stream read"),
        ({"options": {"token": "pa55word"}}, r"seen in the command line.*token=\"file:PATH\""),
        ({"options": {"basic": "me:pa55word"}}, r"seen in the command line.*basic=\"file:PATH\""),
        *(({"options": {"oauth2": json.dumps(one)}}, "seen in the command line.*key_file") for one in OAUTH2_SHOWN),
        (
            OFFLOADED | {"options": OFFLOADED["options"] | {"offload.credentials": '{"secret_key": "pa55word"}'}},
            r"seen in the command line.*offload\.credentials=\"file:PATH\"",
        ),
    ],
)
def test_what_is_wrong_or_would_be_seen_is_refused(wrong: dict[str, Any], words: str) -> None:
    builder = Builder()
    with pytest.raises(InvalidInput, match=words) as refused:
        made(builder, **wrong)
    assert "pa55word" not in str(refused.value)
    assert KEY not in str(refused.value)
    assert builder._options == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("token", "file:/x"),
        ("basic", "file:/x"),
        ("oauth2", '{"issuer_url": "https://x", "key_file": "file:/x"}'),
        ("offload.credentials", "file:/x"),
    ],
)
def test_a_secret_in_a_file_is_fine(name: str, value: str) -> None:
    others = OFFLOADED if name == "offload.credentials" else {"options": {}}
    settings = made(Builder(), **others | {"options": others["options"] | {name: value}})
    assert settings[f"spark.sql.catalog.pulsar.{name}"] == value


def test_without_the_jar_it_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "shipped_jar", lambda: None)
    with pytest.raises(InvalidInput, match="make jar"):
        made(Builder())
