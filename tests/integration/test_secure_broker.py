"""Rows go out and come in on a broker that demands TLS and to know who asks, and what a user reads where it fails.

One broker takes tokens, passwords and client certificates; the role `job` has the rights of docs/how-to/rights.md.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pulsar as official
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from typer.testing import CliRunner

import eos
from eos.cli.app import typer_app
from eos.commit.control_topic import control_topic
from eos.errors import NetworkError
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.wire.entry import Entry
from eos.source.options import parse_options
from statestore.cli.app import typer_app as statestore_app
from tests.integration.source.queries import Query
from tests.issuer import CLIENT_ID, CLIENT_SECRET, Issuer, issuing
from tests.leaks import Left, debug_logs, event_log
from tests.planner import again_while_late
from tests.secured import LIFE_S, PASSWORD, ROLE, Secured, ShortLived, token_of
from tests.secured import secured as secured
from tests.waiting import PATIENCE_S, until, until_batch


def official_client(secured: Secured, kind: str) -> official.Client:
    options = secured.options(kind)
    shown = {
        "token": lambda: official.AuthenticationToken(options["token"]),
        "password": lambda: official.AuthenticationBasic(ROLE, PASSWORD),
        "certificate": lambda: official.AuthenticationTLS(options["tls_certificate"], options["tls_key"]),
    }[kind]()
    return official.Client(
        secured.service_url,
        authentication=shown,
        tls_trust_certs_file_path=options["tls_trust_certs"],
        tls_validate_hostname=True,
    )


@pytest.mark.parametrize("kind", ["token", "password", "certificate"])
def test_rows_go_out_and_come_in(spark: SparkSession, secured: Secured, kind: str) -> None:
    topic = f"persistent://public/default/{kind}"
    secured.ask("PUT", f"persistent/public/default/{kind}")
    options = secured.options(kind)
    rows = [f"row {number}" for number in range(50)]
    sink = eos.sink(secured.service_url, topic=topic, name=kind, small_batch_rows=0, **options)
    for batch, some in enumerate((rows[:40], rows[40:])):
        with sink.batch(batch, eos.Identity("query", "run", f"offsets of batch {batch}")) as txn:
            txn.write(spark.createDataFrame([(row,) for row in some], "value string"))

    given = {"service.url": secured.service_url, "topic": topic, "subscription": "job", "startingOffsets": "earliest"}
    query = Query(parse_options(given | options, "stream"))
    assert sorted(query.behind(query.plan.first())) == sorted(rows)
    query.brokers.close()

    assert sorted(official_rows(secured, kind, topic, len(rows))) == sorted(rows)


def test_a_token_that_expires_in_mid_run_is_renewed_on_the_same_connection(
    spark: SparkSession, secured: Secured, tmp_path: Path
) -> None:
    topic = "persistent://public/default/renewed"
    secured.ask("PUT", "persistent/public/default/renewed")
    tokens = ShortLived(secured.home, tmp_path / "asked")
    trust = secured.options("nothing")
    sink = eos.sink(secured.service_url, topic=topic, name="renewed", small_batch_rows=0, token=tokens, **trust)
    batches = batches_over_a_renewal(
        spark, sink, lambda: len({token for pid, token in tokens.asked() if pid == os.getpid()})
    )
    assert {pid for pid, _ in tokens.asked()} > {os.getpid()}, "tasks ask for tokens of their own"
    found = official_rows(secured, "token", topic, 10 * batches)
    assert sorted(found) == sorted(f"{batch}:{row}" for batch in range(batches) for row in range(10))


def batches_over_a_renewal(spark: SparkSession, sink: eos.Sink, asked: Callable[[], int], of_each: bool = True) -> int:
    """Write batches until each connection has outlived its token; return how many.

    The broker ends a connection whose answer is not there at its next look: then this process stood still, and the
    next renewal shows it. `asked` tells how many tokens were asked for, of each connection or of all together.
    """
    pool = Client.shared(sink._context.cluster)._pool
    write_batch(spark, sink, 0)
    for batch in range(1, 4):
        connections, before = dict(pool._connections), asked()
        wanted = before + (len(connections) if of_each else 1)
        until(partial(lambda wanted: asked() >= wanted, wanted))
        write_batch(spark, sink, batch)
        if pool._connections == connections and all(one.alive for one in connections.values()):
            return batch + 1
    raise AssertionError("no token was renewed on the same connection")


def write_batch(spark: SparkSession, sink: eos.Sink, batch: int) -> None:
    rows = [(f"{batch}:{row}",) for row in range(10)]
    with sink.batch(batch, eos.Identity("query", "run", f"offsets of batch {batch}")) as txn:
        txn.write(spark.createDataFrame(rows, "value string"))


def official_rows(secured: Secured, kind: str, topic: str, count: int) -> list[str]:
    client = official_client(secured, kind)
    consumer = client.subscribe(topic, "reader", initial_position=official.InitialPosition.Earliest)
    rows = [consumer.receive(timeout_millis=int(PATIENCE_S * 1000)).data().decode() for _ in range(count)]
    client.close()
    return rows


def test_an_issuers_tokens_are_renewed_in_mid_run_too(spark: SparkSession, secured: Secured, tmp_path: Path) -> None:
    topic = "persistent://public/default/issued"
    secured.ask("PUT", "persistent/public/default/issued")
    trust = secured.options("nothing")
    with issuing(lambda: token_of(secured.home, life_s=LIFE_S)) as issuer:
        issuer.lives_s = 3600  # a lie: what the broker says of a token counts
        sink = eos.sink(
            secured.service_url, topic=topic, name="issued", small_batch_rows=0, oauth2=issuer.options(), **trust
        )
        batches = batches_over_a_renewal(spark, sink, lambda: len(issuer.forms), of_each=False)

        key = tmp_path / "key.json"
        key.write_text(json.dumps({"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}))
        by_file = json.dumps({"issuerUrl": issuer.url, "privateKey": f"file://{key}"})
        given = {"service.url": secured.service_url, "topic": topic, "subscription": "job", "oauth2": by_file}
        query = Query(parse_options(given | {"startingOffsets": "earliest"} | trust, "stream"))
        assert len(query.behind(query.plan.first())) == 10 * batches
        query.brokers.close()
        with Admin(secured.admin_url, query.brokers._options.cluster.credentials, sink._context.cluster.tls) as admin:
            assert admin.ledgers(topic)

        wrong = issuer.options(client_secret="wr0ng")
        with pytest.raises(eos.InvalidInput, match=r"token answered 401 invalid_client.*Check client_id") as told:
            eos.sink(secured.service_url, topic=topic, name="wrong", oauth2=wrong, **trust)
        assert "wr0ng" not in str(told.value)


def test_commands_connect_by_a_client_conf_the_environment_and_options(
    secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secured.ask("PUT", "persistent/public/default/commands")
    conf = tmp_path / "client.conf"
    conf.write_text(
        f"brokerServiceUrl={secured.service_url}\nwebServiceUrl={secured.admin_url}\n"
        f"tlsTrustCertsFilePath={secured.file('authority.pem')}\ntlsEnableHostnameVerification=true\n"
        "authPlugin=org.apache.pulsar.client.impl.auth.AuthenticationToken\n"
        f"authParams=file://{secured.file('token')}\n"
    )
    monkeypatch.setenv("PULSAR_CLIENT_CONF", str(conf))
    for words in (["topics"], ["sink", "list"], ["doctor", "--readers"], ["peek", "commands"]):
        done = CliRunner().invoke(typer_app, words)
        assert done.exit_code == 0, f"{words}: {done.exception}"
    assert "commands" in CliRunner().invoke(typer_app, ["topics"]).stdout
    monkeypatch.setenv("EOS_TOKEN", "wrong")
    assert "AuthenticationError" in str(CliRunner().invoke(typer_app, ["topics"]).exception)
    with issuing(lambda: token_of(secured.home)) as issuer:
        done = CliRunner().invoke(typer_app, ["topics", "--oauth2", json.dumps(issuer.options())])
        assert done.exit_code == 0, done.exception


def test_the_commands_of_statestore_connect_as_those_of_eos(
    secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Savepoints on a topic are listed by OAuth 2.0, mTLS, a password and a client.conf; nobody else gets in."""
    topic = "persistent/public/default/statestore-commands"
    secured.ask("PUT", topic)
    words = ["savepoint", "list", f"{secured.service_url}/{topic.removeprefix('persistent/')}"]

    def listed(*more: str) -> BaseException | None:
        return CliRunner().invoke(statestore_app, [*words, *more]).exception

    monkeypatch.setenv("EOS_TLS_TRUST_CERTS", secured.file("authority.pem"))
    assert "Authentication" in str(listed())
    for kind in ("password", "certificate"):
        shown = {name: value for name, value in secured.options(kind).items() if name != "tls_trust_certs"}
        flags = [word for name, value in shown.items() for word in (f"--{name.replace('_', '-')}", value)]
        assert listed(*flags) is None, kind
    with issuing(lambda: token_of(secured.home)) as issuer:
        assert listed("--oauth2", json.dumps(issuer.options())) is None
    conf = tmp_path / "client.conf"
    conf.write_text(f"authPlugin=token\nauthParams=file://{secured.file('token')}\n")
    assert listed("--client-conf", str(conf)) is None
    monkeypatch.setenv("EOS_TOKEN", "wrong")
    assert "Authentication" in str(listed("--client-conf", str(conf)))


def test_what_a_role_may_not_ask_is_told_apart_from_what_is_well(
    secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The role of a job has no rights of a superuser: the broker's settings are not its business."""
    monkeypatch.setenv("EOS_SERVICE_URL", secured.service_url)
    monkeypatch.setenv("EOS_ADMIN_URL", secured.admin_url)
    monkeypatch.setenv("EOS_TLS_TRUST_CERTS", secured.file("authority.pem"))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)

    def looked(token: str) -> tuple[int, dict[str, str]]:
        monkeypatch.setenv("EOS_TOKEN", token)
        done = CliRunner().invoke(typer_app, ["doctor", "--json", "--namespace", "public/default"])
        assert done.stdout, done.exception
        return done.exit_code, {one["about"]: one["verdict"] for one in json.loads(done.stdout)["checks"]}

    code, told = looked(f"file:{secured.file('token')}")
    assert (code, set(told.values())) == (0, {"good"}), told
    code, told = looked(token_of(secured.home))
    assert (code, set(told.values())) == (3, {"good", "can't be known"}), told
    assert {about for about, verdict in told.items() if verdict != "good"} >= {"recovery of topics", "coordinators"}


CANARY = "canary.of.secrets"


def refused(driver: int, token: str) -> str:
    """A vault that gives a token to one process only, and is talkative to others."""
    if os.getpid() != driver:
        raise PermissionError(f"no: {token} is another's")
    return token


def test_no_secret_is_left_behind(
    spark: SparkSession, secured: Secured, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source, sunk = (f"persistent://public/default/{name}" for name in ("left-in", "left-out"))
    for topic in (source, sunk):
        secured.ask("PUT", topic.replace("://", "/"))
    left = Left()
    spark.sparkContext.setJobDescription(CANARY)
    with debug_logs(caplog), event_log(spark, tmp_path), issuing(lambda: token_of(secured.home)) as issuer:
        secrets = [
            *refusals(spark, secured, sunk, issuer, left),
            *copying(spark, secured, source, sunk, tmp_path, left),
        ]
        given = {"service.url": secured.service_url, "topic": source, "oauth2": json.dumps(issuer.options())}
        table = spark.read.format("pulsar").options(**given | secured.options("nothing")).load()
        assert again_while_late(table.count) == 20
        logging.getLogger("eos.sink").debug("%s", CANARY)
        views(spark, {"token": secrets[0], "basic": f"{ROLE}:{PASSWORD}", "oauth2": json.dumps(issuer.options())})
    spark.sparkContext.setJobDescription("")
    left.add("the plan", f"{table._jdf.queryExecution().toString()} {CANARY}")
    left.add("logs", caplog.text)
    left.add("environment", f"{spark.sparkContext.getConf().getAll()} {dict(spark.conf.getAll)}")
    left.add_folder("the checkpoint", tmp_path / "checkpoint")
    left.add_folder("the event log", next(tmp_path.glob("*leaks*")))

    planted = {"logs", "the checkpoint", "the event log", "the control records", "repr", "the plan"}
    assert left.holding(CANARY) >= planted
    secrets += [CLIENT_SECRET, PASSWORD]
    for place in list(left.places)[:8]:
        print("TEXT", place, left.places[place].decode().splitlines()[-1])
    assert {secret: places for secret in secrets if (places := left.holding(secret))} == {}


def views(spark: SparkSession, shown: dict[str, str]) -> None:
    """Give credentials in SQL, with the setting of docs/how-to/authentication.md by which Spark hides a password."""
    spark.conf.set("spark.sql.redaction.options.regex", "(?i)url|basic")
    for option, secret in shown.items():
        spark.sql(f"create or replace temporary view shown using pulsar options ('topic' 't', '{option}' '{secret}')")
    spark.conf.unset("spark.sql.redaction.options.regex")
    spark.catalog.dropTempView("shown")


def refusals(spark: SparkSession, secured: Secured, topic: str, issuer: Issuer, left: Left) -> list[str]:
    """Note the errors of credentials that are of no use, at the start, in mid-run and in tasks; return the secrets."""
    trust = secured.options("nothing")
    wrong, read = secured.options("wrong token")["token"], token_of(secured.home)
    expired = token_of(secured.home, life_s=-9)
    at_start: dict[str, tuple[dict[str, Any], str]] = {
        "a wrong token": ({"token": wrong}, "AuthenticationError"),
        "an expired token": ({"token": expired}, "the token expired at"),
        "a function": ({"token": partial(refused, 0, read)}, "refused gave no token. It raised PermissionError"),
        "a wrong password": ({"basic": f"{ROLE}:{PASSWORD}-wrong"}, "AuthenticationError"),
        "a wrong client secret": ({"oauth2": issuer.options(client_secret=f"{CLIENT_SECRET}-wrong")}, "invalid_client"),
        "a missing right": ({"token": token_of(secured.home, "nobody")}, "pulsar/system --actions consume"),
    }
    for one, (shown, words) in at_start.items():
        with pytest.raises(eos.InvalidInput, match=words) as told:
            eos.sink(secured.service_url, name="denied", topic=topic, **shown, **trust)
        left.add(one, told.value)

    common = {"topic": topic, "attempts": 1, **trust}
    for life_s in (LIFE_S, 4 * LIFE_S, 16 * LIFE_S):
        short = token_of(secured.home, life_s=life_s)
        try:
            sink = eos.sink(secured.service_url, name="left-short", token=short, **common)
            write_batch(spark, sink, 0)
            break
        except eos.InvalidInput as error:  # on a busy machine it may expire before the first batch
            if "the token expired at" not in str(error):
                raise
    connections = list(sink._context.client._pool._connections.values())
    until(lambda: not any(connection.alive for connection in connections), patience_s=2 * PATIENCE_S)
    with pytest.raises(eos.InvalidInput, match=r"AuthenticationError.*the token expired at") as in_mid_run:
        write_batch(spark, sink, 1)
    left.add("expired in mid-run", in_mid_run.value)

    sink = eos.sink(
        secured.service_url, name="left-tasks", token=partial(refused, os.getpid(), read), small_batch_rows=0, **common
    )
    with pytest.raises(eos.NotCommitted, match=r"refused gave no token. It raised PermissionError") as in_task:
        write_batch(spark, sink, 0)
    left.add("in a task", in_task.value)
    return [wrong, expired, short, read]


def copying(spark: SparkSession, secured: Secured, source: str, topic: str, folder: Path, left: Left) -> list[str]:
    """Copy a topic by a query whose sink's token is renewed in mid-run, and note what it leaves; give the secrets."""
    trust, tokens, read = secured.options("nothing"), ShortLived(secured.home, folder / "asked"), token_of(secured.home)
    common = {"small_batch_rows": 0, **trust}
    sink = eos.sink(secured.service_url, topic=topic, name=CANARY, principal=CANARY, token=tokens, **common)
    write_batch(spark, eos.sink(secured.service_url, topic=source, name="left-first", token=read, **common), 0)
    given = {"service.url": secured.service_url, "topic": source, "subscription": "left", "token": read, **trust}
    stream = spark.readStream.format("pulsar").options(**given, startingOffsets="earliest").load()
    writer = stream.select("value").writeStream.foreachBatch(sink)

    def start() -> StreamingQuery:
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        until_batch(query, 0)
        return query

    query = again_while_late(start)
    before = len(tokens.asked())
    until(lambda: os.getpid() in {pid for pid, _ in tokens.asked()[before:]})
    write_batch(spark, eos.sink(secured.service_url, topic=source, name="left-second", token=read, **common), 0)
    until_batch(query, 1)
    left.add("what the query tells", f"{query.recentProgress} {query.status} {query._jsq.explainInternal(True)}")
    query.stop()
    left.add("repr", f"{sink!r} {sink._context.options!r} {sink._context.cluster!r} {sink.metrics!r}")
    with sink._context.client.entry_reader(control_topic(CANARY, topic), None) as reader:
        last, _ = reader.last_message_id()
        entries: list[Entry] = []
        while last is not None and (not entries or entries[-1].id < last):
            entries += reader.read(PATIENCE_S)
    for entry in entries:
        left.add("the control records", str(entry.metadata).encode() + bytes(entry.payload))
    return [read, *{token for _, token in tokens.asked()}]


DENIED = {
    "wrong token": ("Check the options token, basic or oauth2", "401"),
    "wrong password": ("Check the options token, basic or oauth2", "401"),
    "a stranger's certificate": ("refused the TLS connection.*tls_certificate, tls_key", "refused the TLS connection"),
    "nothing": ("Check the options token, basic or oauth2", "401"),
}


@pytest.mark.parametrize("kind", DENIED)
def test_whom_the_broker_does_not_know_is_told_what_to_check(secured: Secured, kind: str) -> None:
    given = {"service.url": secured.service_url, "topic": "t", "subscription": "job"} | secured.options(kind)
    options = parse_options(given, "stream")
    by_broker, by_admin = DENIED[kind]
    brokers = Query(options).brokers
    with pytest.raises(NetworkError, match=by_broker) as told:
        list(brokers.topics(all_named=True))
    secret = given.get("token") or given.get("basic")
    assert secret is None or secret not in str(told.value)
    with (
        Admin(secured.admin_url, options.cluster.credentials, options.cluster.tls) as admin,
        pytest.raises(NetworkError, match=by_admin),
    ):
        admin.topics("public/default")


def test_a_broker_that_is_not_trusted_is_not_spoken_to(secured: Secured) -> None:
    other = secured.options("token") | {"tls_trust_certs": secured.file("other.pem")}
    given = {"service.url": secured.service_url, "topic": "t", "subscription": "job"}
    options = parse_options(given | other, "stream")
    with pytest.raises(NetworkError, match=r"CERTIFICATE_VERIFY_FAILED.*tls_trust_certs"):
        list(Query(options).brokers.topics(all_named=True))
    with (
        Admin(secured.admin_url, options.cluster.credentials, options.cluster.tls) as admin,
        pytest.raises(NetworkError, match=r"CERTIFICATE_VERIFY_FAILED.*tls_trust_certs"),
    ):
        admin.topics("public/default")
    by_number = secured.service_url.replace("localhost", "127.0.0.1")
    unnamed = given | secured.options("token") | {"service.url": by_number}
    with pytest.raises(NetworkError, match=r"127\.0\.0\.1.*host name in the broker's certificate"):
        list(Query(parse_options(unnamed, "stream")).brokers.topics(all_named=True))
    secured.ask("PUT", "persistent/public/default/by-number")
    unchecked = unnamed | {"tls_verify_hostname": "false", "topic": "by-number"}
    found = Query(parse_options(unchecked, "stream")).brokers.topics(all_named=True)
    assert list(found) == ["persistent://public/default/by-number"]
