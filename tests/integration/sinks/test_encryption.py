"""The official clients read encrypted rows with their keys, and the other way round. Without keys nobody does."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cryptography  # noqa: F401  without it this is an error and no test to be skipped
import httpx
import pulsar as official
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from typer.testing import CliRunner

import eos
from eos.cli.app import typer_app
from eos.config import Cluster
from eos.local import jars
from eos.pulsar.net.client import Client
from tests.encryption import key_pair
from tests.integration.source.streams import Stream
from tests.integration.source.streams import values as stream_values
from tests.java_peer import JavaPeer
from tests.reading import received


class Halves(NamedTuple):
    """The files of a key."""

    public: Path
    private: Path


Keys = dict[str, Halves]
Pairs = list[tuple[str | None, str]]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    folder = tmp_path_factory.mktemp("keys")
    return {name: Halves(*key_pair().write(folder, name)) for name in ("first", "second", "other")}


@pytest.fixture(scope="module")
def java(pulsar: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaPeer]:
    source = Path(__file__).with_name("EncryptedMessages.java")
    folder = tmp_path_factory.mktemp("java")
    with JavaPeer(source, folder, jars.classpath(), [pulsar.service_url], ["-Xmx300m"]) as peer:
        yield peer


def public(keys: Keys, *names: str) -> dict[str, str]:
    return {name: f"file:{keys[name].public}" for name in names}


def by_java(java: JavaPeer, topic: str, files: dict[str, Path], count: int) -> Pairs:
    """Return what the Java client gets with these private keys: so many messages, and not one more."""
    asked = {"do": "read", "topic": topic, "count": count, "keys": {name: str(file) for name, file in files.items()}}
    return [tuple(one) for one in json.loads(java.order(json.dumps(asked), "done"))]


def by_python(client: official.Client, topic: str, key: Halves | None, count: int) -> Pairs:
    """Return what the official Python client gets with this private key: so many messages, and not one more."""
    reader = None if key is None else official.CryptoKeyReader(str(key.public), str(key.private))
    messages = received(client, topic, official.schema.BytesSchema(), count, crypto_key_reader=reader)
    return [(one.partition_key() or None, one.data().decode()) for one in messages]


def by_source(spark: SparkSession, pulsar: Any, topic: str, **options: str) -> DataFrame:
    given = {"service.url": pulsar.service_url, "topic": topic} | options
    return spark.read.format("pulsar").options(**given).load()


def private(keys: Keys, *names: str) -> str:
    return json.dumps({name: f"file:{keys[name].private}" for name in names})


def pairs_of(df: DataFrame) -> Pairs:
    rows = df.selectExpr("cast(__key as string) k", "cast(value as string) v").collect()
    return sorted(((row.k, row.v) for row in rows), key=str)


def entries_of(pulsar: Any, topic: str) -> list[Any]:
    """Return the entries of a topic as they are stored."""
    with Client(Cluster(pulsar.service_url)) as client, client.entry_reader(topic, None) as reader:
        last, _ = reader.last_message_id()
        found: list[Any] = []
        while not found or found[-1].id < last:
            found += reader.read(1.0)
        return found


def write(pulsar: Any, batch_id: int, *frames: DataFrame, **options: Any) -> None:
    """Write a batch by a sink of its own, as after a restart."""
    sink = eos.sink(pulsar.service_url, **options)
    try:
        with sink.batch(batch_id, eos.Identity("query", "run", f"offsets of batch {batch_id}")) as txn:
            for one in frames:
                txn.write(one)
    finally:
        sink.close()


CASES = [
    (1, ("first",), {}),
    (1, ("first", "second"), {"compression": "zstd"}),
    (200, ("first",), {"compression": "lz4"}),
    (200, ("second", "first"), {"batching": "key-based"}),
    (200, ("first", "second"), {"compression": "auto", "small_batch_rows": 0}),
]


@pytest.mark.parametrize(("count", "names", "options"), CASES, ids=str)
def test_the_official_clients_read_what_a_sink_encrypts(
    spark: SparkSession,
    pulsar: Any,
    make_topic: Any,
    theirs: official.Client,
    java: JavaPeer,
    keys: Keys,
    count: int,
    names: tuple[str, ...],
    options: dict[str, Any],
) -> None:
    topic = make_topic("encrypted")
    name = topic.rpartition("/")[2]
    options = {"name": name, "topic": topic, "encryption_keys": public(keys, *names)} | options
    rows = spark.range(count).selectExpr("'row ' || id value", "if(id % 4 = 0, null, 'k' || (id % 3)) key")
    aborted = (
        rows.selectExpr("'row aborted' value", "key"),
        spark.sql("select '' value, timestamp'1960-01-01' event_time"),
    )
    write(pulsar, 0, rows, **options)
    with pytest.raises(eos.InvalidInput, match="none before 1970"):
        write(pulsar, 1, *aborted, **options)  # the first one is sent, when the second is refused
    write(pulsar, 1, spark.sql("select 'row last' value, 'k' key"), **options)
    wanted = sorted([*((row.key, row.value) for row in rows.collect()), ("k", "row last")], key=str)

    for key in names:
        assert sorted(by_java(java, topic, {key: keys[key].private}, count + 1), key=str) == wanted
        assert sorted(by_python(theirs, topic, keys[key], count + 1), key=str) == wanted
    assert by_java(java, topic, {key: keys["other"].private for key in names}, 0) == []
    assert by_python(theirs, topic, keys["other"], 0) == []
    assert by_python(theirs, topic, None, 0) == []
    assert pairs_of(by_source(spark, pulsar, topic, decryption_keys=private(keys, names[-1]))) == wanted

    entries = entries_of(pulsar, topic)
    assert all([one.key for one in entry.metadata.encryption_keys] == sorted(names) for entry in entries)
    used = [(entry.metadata.encryption_keys[0].value, entry.metadata.encryption_param) for entry in entries]
    assert len(set(used)) == len(used), "no data key meets a nonce twice"
    assert not any(b"row" in bytes(entry.packed) for entry in entries)
    verified = CliRunner().invoke(typer_app, ["sink", "verify", name, "--service-url", pulsar.service_url, "--json"])
    assert (verified.exit_code, json.loads(verified.output)["rows"]) == (0, count + 1), "counting needs no key"


def test_a_row_larger_than_brokers_take_is_encrypted_piece_by_piece(
    spark: SparkSession, pulsar: Any, make_topic: Any, theirs: official.Client, java: JavaPeer, keys: Keys
) -> None:
    topic = make_topic("encrypted")
    options: dict[str, Any] = {
        "name": topic.rpartition("/")[2],
        "topic": topic,
        "encryption_keys": public(keys, "first", "second"),
    }
    write(
        pulsar,
        0,
        spark.range(1).selectExpr("repeat('large row ', 600000 + id) value", "'k' key"),
        chunking=True,
        **options,
    )
    wanted = [("k", "large row " * 600_000)]
    assert len(entries_of(pulsar, topic)) == 2
    assert by_java(java, topic, {"second": keys["second"].private}, 1) == wanted
    assert by_python(theirs, topic, keys["first"], 1) == wanted
    assert pairs_of(by_source(spark, pulsar, topic, decryption_keys=private(keys, "second"))) == wanted
    verified = CliRunner().invoke(
        typer_app, ["sink", "verify", options["name"], "--service-url", pulsar.service_url, "--json"]
    )
    assert (verified.exit_code, json.loads(verified.output)["rows"]) == (0, 1)


WAYS = [
    {"batched": True, "chunked": False, "compression": "ZSTD"},
    {"batched": False, "chunked": False, "compression": "NONE"},
    {"batched": False, "chunked": True, "compression": "NONE"},
    {"batched": False, "chunked": True, "compression": "LZ4"},
]


def test_the_source_reads_what_the_official_clients_encrypt(
    spark: SparkSession,
    pulsar: Any,
    make_topic: Any,
    theirs: official.Client,
    java: JavaPeer,
    keys: Keys,
    tmp_path: Path,
) -> None:
    topic = make_topic("encrypted")
    files = {name: str(keys[name].public) for name in ("first", "second")}
    wanted: Pairs = []
    for way in WAYS:
        values = [f"java {way} " + letter * size for letter, size in zip("abc", (5, 700, 4_000), strict=True)]
        java.order(json.dumps({"do": "write", "topic": topic, "keys": files, "values": values} | way), "done")
        wanted += [(f"key of {len(value)}", value) for value in values]
    for batched in (True, False):
        key = official.CryptoKeyReader(str(keys["first"].public), str(keys["first"].private))
        compression = official.CompressionType.ZLib if batched else official.CompressionType.NONE
        producer = theirs.create_producer(
            topic,
            encryption_key="first",
            crypto_key_reader=key,
            batching_enabled=batched,
            compression_type=compression,
        )
        for number in range(3):
            producer.send_async(f"python {batched} {number}".encode(), None, partition_key="k")
            wanted.append(("k", f"python {batched} {number}"))
        producer.flush()
    plain = theirs.create_producer(topic)
    plain.send(b"in the clear")
    wanted.append((None, "in the clear"))

    given = private(keys, "first", "other")
    assert pairs_of(by_source(spark, pulsar, topic, decryption_keys=given)) == sorted(wanted, key=str)
    stream = Stream(spark, pulsar.service_url, tmp_path / "checkpoint", topic=topic, decryption_keys=given)
    assert sorted(stream_values(stream.run())) == sorted(value for _, value in wanted)


def test_a_reader_without_the_key_is_told_what_is_missing(
    spark: SparkSession, pulsar: Any, make_topic: Any, keys: Keys
) -> None:
    topic = make_topic("encrypted")
    job = topic.rpartition("/")[2]
    rows = spark.sql("select 's3cr3t' value")
    eos.write(rows, pulsar.service_url, job_id=job, topic=topic, encryption_keys=public(keys, "first"))
    where = rf"entry \d+:\d+ of {topic} is encrypted for the key 'first'"
    wrong = json.dumps({"first": f"file:{keys['other'].private}"})
    for given, words in (
        ({}, f"{where}, and no private key was given. Give a matching private key"),
        ({"decryption_keys": private(keys, "other")}, f"{where}; decryption_keys has 'other'"),
        ({"decryption_keys": wrong}, f"{where}; the private key that decryption_keys has for 'first' does not fit"),
    ):
        with pytest.raises(PythonException, match=words) as caught:
            by_source(spark, pulsar, topic, **given).collect()
        assert "InvalidInput" in str(caught.value)
    peek = ["peek", topic, "--service-url", pulsar.service_url]
    refused = CliRunner().invoke(typer_app, peek).exception
    assert isinstance(refused, eos.InvalidInput)
    assert re.match(where, str(refused))
    peeked = CliRunner().invoke(typer_app, [*peek, "--decryption-keys", private(keys, "first"), "--json"])
    assert json.loads(peeked.output)["value"] == "s3cr3t"


def test_a_namespace_that_demands_encryption_takes_encrypted_rows_alone(
    spark: SparkSession, pulsar: Any, theirs: official.Client, keys: Keys
) -> None:
    namespace = f"public/secret-{uuid.uuid4().hex[:8]}"
    with httpx.Client(base_url=f"{pulsar.admin_url}/admin/v2", timeout=30) as admin:
        admin.put(f"/namespaces/{namespace}", json={}).raise_for_status()
        admin.put(f"/persistent/{namespace}/rows").raise_for_status()
        admin.post(f"/namespaces/{namespace}/encryptionRequired", json=True).raise_for_status()
    topic, rows = f"persistent://{namespace}/rows", spark.range(20).selectExpr("'row ' || id value")
    encrypted: dict[str, Any] = {"encryption_keys": public(keys, "first")}
    elsewhere: dict[str, Any] = {"control_namespace": "public/default"}

    given: dict[str, Any] = {"name": namespace.rpartition("/")[2], "topic": topic, "request_timeout_s": 10}
    for options in ({}, encrypted, elsewhere):
        with pytest.raises(eos.InvalidInput, match=r"takes encrypted messages alone .*: control_namespace"):
            write(pulsar, 0, rows, **given, **options)
    given |= encrypted | elsewhere
    write(pulsar, 0, rows, small_batch_rows=0, **given)
    write(pulsar, 1, rows, **given)
    write(pulsar, 2, rows, guarantee="at-least-once", **given)
    assert len(by_python(theirs, topic, keys["first"], 60)) == 60
