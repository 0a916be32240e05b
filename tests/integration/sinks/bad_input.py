"""The mistakes of callers, as a table: the input, the error, words that are in it, and how long it may take."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import eos
from eos.errors import BadCertificates

DATA = "cast(id as string) value"

HOURS_S = 10_000.0
"""Far longer than a test may take: a refusal that sits out a time-out would not come."""


@dataclass(frozen=True)
class World:
    """The tools that a row of the table may use.

    Attributes:
        service_url, admin_url: of a running broker.
        topic: one that exists, with two partitions.
        folder: an empty one.
        sinks: those that the row has made.
    """

    spark: SparkSession
    service_url: str
    admin_url: str
    topic: str
    folder: Path
    sinks: list[eos.Sink] = field(default_factory=list)

    @property
    def name(self) -> str:
        """A sink name of the row's own."""
        return self.topic.rsplit("/")[-1]

    def sink(self, **options: Any) -> Any:
        """Make a sink that waits for hours, as the row's caller does; what is given replaces what is right."""
        service_url = options.pop("service_url", self.service_url)
        right: dict[str, Any] = {"topic": self.topic, "name": self.name}
        patient = {"request_timeout_s": HOURS_S, "connect_timeout_s": HOURS_S}
        sink = eos.sink(service_url, **{**right, **patient, **options})
        self.sinks.append(sink)
        return sink

    def rows(self, *columns: str) -> DataFrame:
        """Three rows of these columns."""
        return self.spark.range(3).selectExpr(*(columns or (DATA,)))

    def write(self, df: Any, where: str | None = None, *, batch_id: Any = 0, **options: Any) -> None:
        """Write a DataFrame as one batch of a query that exists in name only."""
        sink = self.sink(**options)
        with sink.batch(batch_id, identity(batch_id)) as txn:
            txn.write(df, where)


def identity(batch_id: int = 0, run: str = "run", query: str = "query") -> eos.Identity:
    """Whose batch it is."""
    return eos.Identity(query, run, f"offsets of {batch_id}")


@dataclass(frozen=True)
class Bad:
    """One row: `give` must raise exactly `error` with all `words` in it, within so many seconds of a busy machine."""

    what: str
    give: Callable[[World], object]
    error: type[eos.EosError]
    words: tuple[str, ...]
    within_s: float = 60.0


def bad(what: str, give: Callable[[World], object], *words: str, error: type[eos.EosError] = eos.InvalidInput) -> Bad:
    """A mistake that is refused as wrong input, unless said otherwise."""
    return Bad(what, give, error, words)


def option(name: str, value: object, *words: str, error: type[eos.EosError] = eos.InvalidInput, **more: Any) -> Bad:
    """An option that is refused when the sink is made."""
    given = {name: value, **more}
    return Bad(f"{name}={value!r}", lambda world: world.sink(**given), error, (name, *words), within_s=20.0)


def columns(what: str, *expressions: str, words: tuple[str, ...], **options: Any) -> Bad:
    """Columns that are refused when the DataFrame is handed over."""
    return Bad(what, lambda world: world.write(world.rows(*expressions), **options), eos.InvalidInput, words)


def topic(given: str, *words: str, error: type[eos.EosError] = eos.InvalidInput) -> Bad:
    """A topic that is refused when the sink is made."""
    return Bad(f"topic={given!r}", lambda world: world.sink(topic=given), error, (given, *words))


def _twice_in_one_batch(world: World) -> None:
    sink = world.sink()
    for _ in range(2):
        with sink.batch(0, identity()) as txn:
            txn.write(world.rows())


def _after_the_block(world: World) -> None:
    with world.sink().batch(0, identity()) as txn:
        txn.write(world.rows())
    txn.write(world.rows())


def _after_a_swallowed_failure(world: World) -> None:
    sink = world.sink(topic=None)
    bad = world.spark.sql("select 'x' value, cast(null as string) topic")
    try:
        with sink.batch(0, identity()) as txn:
            txn.write(bad, None)
            txn.write(world.rows("cast('a' as string) value", "cast('no/such/topic-at-all' as string) topic"))
    except eos.EosError:
        pass
    with sink.batch(1, identity(1)) as txn:
        txn.write(world.rows(), world.topic)


def _nothing_written(world: World) -> None:
    with world.sink().batch(0, identity()):
        pass


def _other_query(world: World) -> None:
    world.write(world.rows())
    with world.sink().batch(1, identity(1, run="other run", query="other query")) as txn:
        txn.write(world.rows())


def _older_batch(world: World) -> None:
    world.write(world.rows(), batch_id=5)
    with world.sink().batch(4, identity(4, run="later run")) as txn:
        txn.write(world.rows())


def _same_batch_other_input(world: World) -> None:
    world.write(world.rows())
    with world.sink().batch(0, eos.Identity("query", "later run", "other offsets")) as txn:
        txn.write(world.rows())


_ADMIN = ("admin URL", "http://")

OPTIONS = (
    bad("no name", lambda w: eos.sink(w.service_url, topic=w.topic), "name=", "control log"),  # type: ignore[call-arg]
    bad("a misspelt option", lambda w: w.sink(compresion="lz4"), "Did you mean 'compression'"),
    bad("another client's option", lambda w: w.sink(service_uri="x"), "Did you mean 'service_url'"),
    option("name", 7, "int", "str"),
    bad("an empty name", lambda w: w.sink(name=""), "cannot name a sink", "letters, digits"),
    option("name", "a/b", "a/b"),
    option("topic", 7, "int"),
    option("value_format", "jsn", "Did you mean 'json'", "raw, json"),
    option("key_hash", "murmur", "Did you mean 'murmur3'"),
    option("compression", "gzip", "none, auto, lz4, zlib, zstd, snappy"),
    option("transaction_timeout_s", 0, "at least 1"),
    option("transaction_timeout_s", -5.0, "at least 1"),
    option("transaction_timeout_s", math.inf, "finite"),
    option("transaction_timeout_s", math.nan, "finite"),
    option("transaction_timeout_s", "600", "str", "float"),
    option("transaction_timeout_s", True, "bool"),
    option("max_in_flight_bytes", 1_000, "at least 1.04858e+06"),
    option("max_in_flight_bytes", 1e9, "float", "int"),
    option("small_batch_rows", -1, "at least 0"),
    option("attempts", 0, "at least 1"),
    option("markers_kept", 0, "at least 1"),
    option("request_timeout_s", 0, "at least 0.1"),
    option("request_timeout_s", math.inf, "finite"),
    option("connect_timeout_s", math.nan, "finite"),
    option("token", 7, "int"),
    option("token", "a", "token and basic", "one of them", basic="u:p"),
    option("tls_certificate", "/no/such.pem", "tls_key", "both or neither"),
    option("observer", 7, "can't be called"),
    bad("a broker as admin_url", lambda w: w.sink(admin_url="pulsar://localhost:6650"), *_ADMIN),
    bad("a host as admin_url", lambda w: w.sink(admin_url="localhost"), *_ADMIN),
)

PLACES = (
    topic("non-persistent://public/default/x", "persistent"),
    topic("a/b/c/d/e", "topic name"),
    topic("with space", "topic name"),
    topic("persistent://public/default/x-partition-0", "one partition"),
    bad(
        "a missing topic",
        lambda w: w.sink(topic=f"{w.topic}-not"),
        "-not",
        "does not exist",
        "create it first",
        error=eos.TopicMissing,
    ),
    bad(
        "a missing tenant",
        lambda w: w.sink(topic="nobody/default/x"),
        "nobody/default",
        "tenant",
        error=eos.TopicMissing,
    ),
    bad(
        "a missing namespace",
        lambda w: w.sink(topic="public/none/x"),
        "public/none",
        "namespace",
        error=eos.TopicMissing,
    ),
    bad("no scheme", lambda w: w.sink(service_url="localhost:6650"), "pulsar://"),
    bad("an HTTP address", lambda w: w.sink(service_url="http://localhost:8080"), "pulsar://"),
    bad("no port", lambda w: w.sink(service_url="pulsar://localhost:x"), "localhost:x"),
    bad("an empty address", lambda w: w.sink(service_url=""), "pulsar://"),
    bad("a closed port", lambda w: w.sink(service_url="pulsar://localhost:1"), "localhost:1", "service URL"),
    bad("no such host", lambda w: w.sink(service_url="pulsar://no.such.host.invalid:6650"), "no.such.host"),
    bad("the HTTP port", lambda w: w.sink(service_url=w.admin_url.replace("http://", "pulsar://")), "HTTP"),
    bad(
        "TLS to a plain port", lambda w: w.sink(service_url=w.service_url.replace("pulsar://", "pulsar+ssl://")), "TLS"
    ),
    bad("a TLS option without TLS", lambda w: w.sink(tls_trust_certs="/ca.pem"), "pulsar+ssl://"),
    bad(
        "a PEM file that is not there",
        lambda w: w.sink(service_url="pulsar+ssl://localhost:6651", tls_trust_certs="/no/such/ca.pem"),
        "/no/such/ca.pem",
        "trusted certificates",
        error=BadCertificates,
    ),
    bad(
        "a client certificate that is not there",
        lambda w: w.sink(service_url="pulsar+ssl://localhost:6651", tls_certificate="/no/c.pem", tls_key="/no/k.pem"),
        "/no/c.pem",
        error=BadCertificates,
    ),
    bad("a token file that is not there", lambda w: w.sink(token="file:/no/such/token"), "/no/such/token"),
    bad("an admin API out of reach", lambda w: w.sink(admin_url="http://localhost:1"), "admin_url", "localhost:1"),
)

COLUMNS = (
    columns("no value", "cast(id as string) key", words=("no column 'value'",)),
    columns("a misspelt value", "cast(id as string) vlaue", words=("Did you mean 'vlaue'",)),
    columns("a column without meaning", DATA, "'x' kee", words=("'kee'", "Did you mean 'key'")),
    columns("a number as value", "id value", words=("'value' is bigint", "Cast it")),
    columns("a number as key", DATA, "id key", words=("'key' is bigint",)),
    columns("a number as ordering key", DATA, "id ordering_key", words=("'ordering_key' is bigint",)),
    columns("text as event time", DATA, "'x' event_time", words=("event_time", "timestamp")),
    columns("text as partition", DATA, "'0' partition", words=("'partition' is string", "integer")),
    columns("numbers as properties", DATA, "map('a', 1) properties", words=("properties", "map<string,string>")),
    columns("key twice", DATA, "'a' key", "'b' __key", words=("Columns 'key' and '__key'", "Drop one")),
    columns("Kafka's headers", DATA, "array() headers", words=("'headers'", "properties")),
    columns("json without payload", "'k' __key", value_format="json", words=("value_format='json'", "none")),
    columns("json of bytes", "binary('x') value", value_format="json", words=("value_format='json'", "rename the")),
    columns("an option that names no column", DATA, key="ky", words=("key='ky'", "names no column")),
    columns("json with keys that are numbers", "map(id, 1) m", value_format="json", words=("'m'", "string")),
    bad("no topic at all", lambda w: _write_without_topic(w), "No topic", "topic="),
    bad(
        "a missing topic of one write",
        lambda w: w.write(w.rows(), f"{w.topic}-not"),
        "does not exist",
        error=eos.TopicMissing,
    ),
    bad(
        "a missing topic of one row",
        lambda w: w.write(w.rows(DATA, f"'{w.topic}-not' topic"), topic=None),
        "-not",
        "does not exist",
        error=eos.TopicMissing,
    ),
    bad(
        "a malformed topic of one row",
        lambda w: w.write(w.rows(DATA, "'a b c' topic"), topic=None),
        "a b c",
        "does not exist",
        error=eos.TopicMissing,
    ),
    bad(
        "a partition that isn't there",
        lambda w: w.write(w.rows(DATA, "7 partition")),
        "partition 7",
        "partitions 0 to 1",
    ),
    bad(
        "a value over the largest message",
        lambda w: w.write(w.rows("repeat('x', 6000000) value")),
        "bytes",
        "maxMessageSize",
    ),
    bad(
        "a cast that overflows",
        lambda w: w.write(w.rows("cast(cast(id + 300 as tinyint) as string) value")),
        "CAST_OVERFLOW",
    ),
)

CALLS = (
    bad("outside of a query", lambda w: w.sink()(w.rows(), 0), "foreachBatch", "identity="),
    bad("a batch without a write", _nothing_written, "Batch 0 has no txn.write()"),
    bad("a batch twice in one run", _twice_in_one_batch, "one `with sink.batch(batch_id)"),
    bad("a write after its block", _after_the_block, "block", "sink.batch"),
    bad("a batch after one that failed", _after_a_swallowed_failure, "batch 0"),
    bad("another query under the name", _other_query, "sink name of its own", error=eos.IdentityMismatch),
    bad("a batch older than the output", _older_batch, "the output holds batch 5", error=eos.StaleBatch),
    bad("a batch with other input", _same_batch_other_input, "other offsets", error=eos.IdentityMismatch),
    bad("a DataFrame that is none", lambda w: w.write([1, 2]), "DataFrame", "list"),
    bad("a batch id that is no number", lambda w: w.write(w.rows(), batch_id="0"), "batch_id", "str"),
    bad("foreach in place of foreachBatch", lambda w: _foreach(w), "foreachBatch"),
)


def _write_without_topic(world: World) -> None:
    with eos.sink(world.service_url, name=world.name).batch(0, identity()) as txn:
        txn.write(world.rows())


def _foreach(world: World) -> None:
    pickle.dumps(world.sink())


def job(what: str, *words: str, df: Callable[[World], Any] = lambda w: w.rows(), **options: Any) -> Bad:
    """A batch job that is refused before anything is written."""

    def give(world: World) -> None:
        right: dict[str, Any] = {"topic": world.topic, "job_id": world.name}
        patient = {"request_timeout_s": HOURS_S, "connect_timeout_s": HOURS_S}
        eos.write(df(world), world.service_url, **{**right, **patient, **options})

    return Bad(f"a job: {what}", give, eos.InvalidInput, words)


def _stream(world: World) -> DataFrame:
    return world.spark.readStream.format("rate").load()


JOBS = (
    job("a streaming DataFrame", "streaming", "foreachBatch(eos.sink(...))", df=_stream),
    job("a DataFrame that is none", "DataFrame", "list", df=lambda w: [1, 2]),
    job("no id", "job_id=None", "must be str", job_id=None),
    job("an empty id", '""', "letters, digits", job_id=""),
    job("an id that is no part of a topic's name", "a/b", "letters, digits", job_id="a/b"),
    job("an option that only a stream has", "markers_kept", "takes", markers_kept=7),
    job("columns that mean nothing", "'vlaue'", "Did you mean 'value'", df=lambda w: w.rows("id vlaue", DATA)),
    job("no topic", "No topic", "eos.write()", topic=None),
    job(
        "columns that Spark can't compute",
        "CAST_OVERFLOW",
        df=lambda w: w.rows("string(cast(id + 300 as tinyint)) value"),
    ),
)

TABLE: tuple[Bad, ...] = (*OPTIONS, *PLACES, *COLUMNS, *CALLS, *JOBS)
