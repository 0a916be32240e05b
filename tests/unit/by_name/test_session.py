"""`eos.configure_spark` on a builder that only remembers."""

from __future__ import annotations

import base64
import json
import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

import eos
from eos.by_name import session
from eos.credentials import OAUTH2
from eos.errors import InvalidInput
from statestore.errors import InvalidInput as InvalidOfState
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
    monkeypatch.setattr("pyspark.sql.SparkSession._instantiatedSession", None)
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


STAGING: dict[str, Any] = {
    "service_url": "pulsar://staging:6650",
    "admin_url": "http://staging:8080",
    "options": {"token": "file:/staging.token"},
}


class Session:
    """The one to which `getOrCreate` adds the settings of a builder."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.conf = SimpleNamespace(getAll=settings)
        self._sc = SimpleNamespace(_jsc=object())


def test_two_clusters_have_no_name_of_a_catalog_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each setting of the first call that the second does not replace would count for both."""
    builder = Builder()
    settings = dict(made(builder, **STAGING))
    assert made(builder, **STAGING) == settings, "the same call again is fine"
    with pytest.raises(InvalidInput, match=r"differs in .*pulsar.admin.url, .*pulsar.service.url, .*pulsar.token\. T"):
        made(builder)
    with pytest.raises(InvalidInput, match=r"differs in spark.sql.catalog.pulsar.token\. "):
        made(builder, **STAGING | {"options": {"token": "file:/other"}})
    assert builder._options == settings
    assert made(builder, catalog="pulsar2")["spark.sql.catalog.pulsar2.service.url"] == SERVICE_URL

    monkeypatch.setattr("pyspark.sql.SparkSession._instantiatedSession", Session(settings))
    assert made(Builder(), **STAGING)
    with pytest.raises(InvalidInput, match=r"There is a catalog 'pulsar' already"):
        made(Builder())
    assert made(Builder(), catalog="pulsar3")


def test_a_jvm_that_runs_has_left_no_setting_to_another_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "driver_has_jar", lambda: True)
    left = {f"spark.sql.catalog.pulsar.{name}": "x" for name in ("service.url", "admin.url")}
    monkeypatch.setattr("eos.spark.jar._jvm_settings", lambda: left)
    with pytest.raises(InvalidInput, match=r"differs in spark.sql.catalog.pulsar.admin.url\. "):
        made(Builder())
    assert made(Builder(), admin_url="http://h:8080"), "each setting is replaced"


def test_options_of_the_command_line_go_with_a_call_that_gives_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """`docs/how-to/sql.md` has them for spark-submit. The session has them too, so the same call again is fine."""
    monkeypatch.setattr(session, "driver_has_jar", lambda: True)
    given = {"spark.sql.catalog.pulsar.token": "file:/token"}
    monkeypatch.setattr("eos.spark.jar._jvm_settings", lambda: given)
    settings = dict(made(Builder()))
    monkeypatch.setattr("pyspark.sql.SparkSession._instantiatedSession", Session(given | settings))
    assert made(Builder()) == settings
    with pytest.raises(InvalidInput, match=r"differs in spark.sql.catalog.pulsar.admin.url\. "):
        made(Builder(), admin_url="http://h:8080")  # the session's catalog would not have it


@pytest.mark.parametrize("name", ["service.url", "serviceUrl", "SERVICE_URL", "admin.url", "adminUrl", "admin_url"])
def test_an_option_does_not_replace_a_parameter(name: str) -> None:
    parameter = "service_url" if name.lower().startswith("service") else "admin_url"
    builder = Builder()
    with pytest.raises(InvalidInput, match=rf"has '{name}', which would replace {parameter}="):
        made(builder, admin_url="http://h:8080", options={name: "pulsar://prod:6650"})
    assert builder._options == {}
    same = {"service_url": SERVICE_URL, "admin_url": "http://h:8080"}[parameter]
    assert made(builder, admin_url="http://h:8080", options={name: same}), "it says the same"


# ---- types


def test_options_may_be_numbers_and_booleans_as_those_of_a_reader() -> None:
    settings = made(Builder(), options={"failOnDataLoss": True, "maxMessageBytes": 4, "request_timeout_s": 2.5})
    shown = {name.rpartition("catalog.pulsar.")[2]: value for name, value in settings.items()}
    assert (shown["failOnDataLoss"], shown["maxMessageBytes"], shown["request_timeout_s"]) == ("true", "4", "2.5")


@pytest.mark.parametrize(
    "wrong",
    [
        *({"options": {name: value}} for name in ("token", "guarantee") for value in (None, b"pa55word", ["pa55word"])),
        {"options": {"oauth2": ISSUER | {"client_secret": "pa55word"}}},
        {"options": "token=pa55word"},
        {"options": [("token", "pa55word")]},
        {"options": {5: "x"}},
        *({name: value} for name in ("service_url", "admin_url") for value in (b"pulsar://h:6650", 5, ["x"])),
        {"service_url": None},
        *({"catalog": value} for value in (None, 5, b"x")),
    ],
)
def test_a_wrong_type_is_refused_in_words(wrong: dict[str, Any]) -> None:
    builder = Builder()
    with pytest.raises(InvalidInput) as refused:
        made(builder, **wrong)
    assert "pa55word" not in str(refused.value)
    assert builder._options == {}


@pytest.mark.parametrize("wrong", [None, SparkSession, Session({}), {}, 5])
def test_what_is_not_a_builder_is_refused(wrong: Any) -> None:
    for call in (partial(eos.configure_spark, service_url=SERVICE_URL), statestore_session.configure_spark):
        with pytest.raises(ValueError, match=r"is not a builder of sessions.*Give SparkSession.builder"):
            call(wrong)


@pytest.mark.parametrize("options", ["fs.bk.ensemble=3", [("fs.bk.ensemble", 3)], {5: 3}])
def test_options_of_the_file_system_that_are_not_a_dict_are_refused(options: Any) -> None:
    with pytest.raises(InvalidOfState, match="must be a dict of options by name"):
        statestore_session.configure_spark(Builder(), options=options)


@pytest.mark.parametrize(("spark", "name"), [(None, "pulsar"), (SimpleNamespace(dataSource=object()), None)])
def test_nothing_is_registered_without_a_session_or_a_name(spark: Any, name: Any) -> None:
    with pytest.raises(InvalidInput):
        eos.register(spark, name)


@pytest.mark.parametrize("wrong", [None, [print], "tell", 5])
def test_a_listener_takes_functions(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match=r"which can't be called. Give functions, each by itself"):
        eos.listener(print, wrong)


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
