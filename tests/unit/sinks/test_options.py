"""The options of the sink: each wrong one is named, with what would be right."""

from __future__ import annotations

import functools
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eos.config import COMPRESSION_OPTIONS, KEY_HASHES, Cluster, Credentials, Provider
from eos.errors import InvalidInput
from eos.pulsar.net.authentication import _functions, secret
from eos.sinks.options import MIB, SinkOptions, check_names, checked, portable
from tests.crash.moments import Witness
from tests.waiting import PATIENCE_S


def options(**given: Any) -> SinkOptions:
    check_names(["name", *given])
    return checked(SinkOptions(**{"name": "flights", "topic": "flights", **given}))


def test_the_defaults_are_those_that_are_documented() -> None:
    assert options() == SinkOptions(
        name="flights",
        topic="persistent://public/default/flights",
        value_format="raw",
        key_hash="murmur3",
        compression="none",
        transaction_timeout_s=600,
        max_in_flight_bytes=32 * MIB,
        small_batch_rows=1_000,
        attempts=5,
        request_timeout_s=30,
        connect_timeout_s=10,
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"token": "t", "basic": "u:p"}, "token and basic are 2 ways"),
        ({"token": lambda: "t", "oauth2": {}}, "token and oauth2 are 2 ways"),
        ({"oauth2": {"issuer": "x"}}, "oauth2 has no option 'issuer'"),
        ({"oauth2": 7}, "oauth2 is not a JSON object"),
        ({"tls_certificate": "c.pem"}, "tls_certificate and tls_key belong together"),
        ({"tls_key": "k.pem"}, "tls_certificate and tls_key belong together"),
    ],
)
def test_a_wrong_way_to_authenticate_is_refused_with_the_call(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        options(**given).cluster("pulsar://h")


def test_secrets_are_in_no_repr() -> None:
    given = options(token="s3cr3t", basic="s3cr3t", oauth2={"client_secret": "s3cr3t"})
    assert "s3cr3t" not in f"{given!r} {given}"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"compresion": "lz4"}, r"no option 'compresion'\. Did you mean 'compression'\? It takes admin_url, attempts"),
        ({"TOPIC": "x"}, r"no option 'TOPIC'\. Did you mean 'topic'\?"),
        ({"xyzzy": 1}, r"no option 'xyzzy'\. It takes"),
        ({"service_uri": "x"}, r"no option 'service_uri'\. Did you mean 'service_url'\? It takes"),
        ({"zone": "x"}, r"no option 'zone'\. It takes"),
        (
            {"compression": "lz5"},
            r"compression='lz5' is unknown\. Did you mean 'lz4'\?.*none, auto, lz4, zlib, zstd, snappy",
        ),
        ({"compression": "LZ4"}, r"Did you mean 'lz4'\?"),
        ({"key_hash": "murmur"}, r"Did you mean 'murmur3'\?.*murmur3, java, boost"),
        (
            {"value_format": "yaml"},
            r"value_format='yaml' is unknown\. .* one of raw, json, avro, protobuf, schema",
        ),
        ({"transaction_timeout_s": 0.5}, r"transaction_timeout_s=0\.5 is too small. It must be at least 1"),
        ({"max_in_flight_bytes": 1_000}, r"max_in_flight_bytes=1000 is too small.*1\.04858e\+06|1048576"),
        ({"small_batch_rows": -1}, "small_batch_rows=-1 is too small. It must be at least 0"),
        ({"attempts": 0}, "attempts=0 is too small. It must be at least 1"),
        ({"request_timeout_s": 0}, r"request_timeout_s=0 is too small. It must be at least 0\.1"),
        ({"connect_timeout_s": -1.0}, r"connect_timeout_s=-1\.0 is too small"),
        ({"attempts": "5"}, "attempts='5' is str. It must be int"),
        ({"attempts": True}, "attempts=True is bool. It must be int"),
        ({"attempts": 2.0}, r"attempts=2\.0 is float. It must be int"),
        ({"tls_verify_hostname": "no"}, "tls_verify_hostname='no' is str. It must be bool"),
        ({"token": 7}, 'token= is int. It must be a str .a token or "file:PATH"., or a function that returns a token'),
        ({"token": b"s3cr3t"}, "^token= is bytes. It must be a str"),
        ({"basic": b"s3cr3t"}, r"^basic= is bytes. It must be str \| None"),
        ({"name": None}, "name=None is NoneType. It must be str"),
        ({"ignore_null_fields": True}, "ignore_null_fields= is about JSON. Give value_format='json' with it"),
        ({"register_schema": "R"}, "register_schema= is about the schema of columns. Give value_format='json' or"),
        ({"register_schema": "R", "value_format": "protobuf"}, "register_schema= is about the schema of columns"),
        ({"register_schema": "R", "value_format": "schema"}, "register_schema= is about the schema of columns"),
        ({"register_schema": "a b", "value_format": "avro"}, "register_schema='a b' can't name a record of Avro"),
        (
            {"register_schema": "int", "value_format": "avro"},
            "register_schema='int' can't name a record of Avro.* are types",
        ),
        ({"ignore_null_fields": "no"}, r"ignore_null_fields='no' is str. It must be bool \| None"),
        ({"observer": 3}, "observer= is int, and can't be called"),
        ({"metrics": 3}, "metrics= is int, and can't be called.*that takes an eos.metrics.batch.FinishedBatch"),
        ({"metrics": {"password": "s3cret"}}, "metrics= is dict, and can't be called"),
        ({"metrics": [print, None]}, "can't be called.*or a list of such"),
        ({"name": "a/b"}, '"a/b" cannot name a sink'),
        ({"topic": "non-persistent://public/default/x"}, r"not persistent.*Use a persistent:// topic"),
        ({"topic": "flights-partition-0"}, "names one partition"),
        ({"topic": "a/b"}, "not a topic name"),
        ({"transaction_timeout_s": 1e16}, r"transaction_timeout_s=1e\+16 is too large.* at most 1e\+09 seconds"),
        ({"request_timeout_s": 10**400}, "request_timeout_s=.* is too large"),
        ({"topic": ""}, "'' is not a topic name"),
        ({"topic": "persistent://a/b c/d"}, "not a topic name"),
    ],
)
def test_a_wrong_option_is_named(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        options(**given)


def test_a_name_is_asked_for() -> None:
    with pytest.raises(InvalidInput, match="needs name=, which finds the control log again"):
        check_names(["topic"])


@pytest.mark.parametrize("topic", ["flights", "public/default/flights", "persistent://public/default/flights"])
def test_short_and_long_names_of_a_topic_mean_the_same(topic: str) -> None:
    assert options(topic=topic).topic == "persistent://public/default/flights"


@pytest.mark.parametrize("compression", COMPRESSION_OPTIONS)
@pytest.mark.parametrize("key_hash", KEY_HASHES)
def test_each_choice_is_taken(compression: str, key_hash: str) -> None:
    taken = options(compression=compression, key_hash=key_hash, transaction_timeout_s=1, connect_timeout_s=3)
    assert (taken.compression, taken.key_hash) == (compression, key_hash)


@pytest.mark.parametrize(
    ("given", "method", "data"),
    [
        ({}, "none", ""),
        ({"token": "file:/run/token"}, "token", "file:/run/token"),
        ({"basic": "u:p"}, "basic", "u:p"),
        ({"tls_certificate": "c.pem", "tls_key": "k.pem"}, "tls", ""),
    ],
)
def test_credentials_reach_the_tasks_and_are_not_shown(given: dict[str, str], method: str, data: str) -> None:
    cluster = options(**given).cluster("pulsar+ssl://localhost:6651")
    assert (cluster.credentials.method, cluster.credentials.data) == (method, data)
    assert pickle.loads(pickle.dumps(cluster)) == cluster
    assert not data or data not in repr(cluster)


TLS_OPTIONS: list[dict[str, Any]] = [
    {"tls_trust_certs": "a.pem"},
    {"tls_certificate": "c.pem", "tls_key": "k.pem"},
    {"tls_verify_hostname": False},
]


@pytest.mark.parametrize("given", TLS_OPTIONS)
def test_a_tls_option_where_nothing_asks_for_tls_is_refused(given: dict[str, Any]) -> None:
    (first, *_) = given
    with pytest.raises(InvalidInput, match=rf"{first}= is an option of TLS, and pulsar://a:6650 asks for none.*6651"):
        options(**given).cluster("pulsar://a:6650")
    options(**given).cluster("pulsar+ssl://a:6651")
    options(**given, admin_url="https://a:8443").cluster("pulsar://a:6650")


@pytest.mark.parametrize("service_url", [None, 6650, b"pulsar://a", ["pulsar://a"]])
def test_a_service_url_that_is_not_a_text_is_refused(service_url: Any) -> None:
    """As an environment variable that is not set."""
    with pytest.raises(InvalidInput, match=rf'service_url= is {type(service_url).__name__}\..*"pulsar://host:6650"'):
        SinkOptions(name="s").cluster(service_url)


def test_a_user_in_the_service_url_is_not_shown_by_a_refusal() -> None:
    with pytest.raises(InvalidInput, match="before the @") as told:
        options(tls_trust_certs="a.pem").cluster("pulsar://me:s3cret@a:6650")
    assert "s3cret" not in str(told.value)


def test_an_observer_may_be_any_callable() -> None:
    assert options(observer=Witness("steps")).observer == Witness("steps")


def test_the_observer_travels_to_the_tasks_with_what_they_write_by() -> None:
    assert options(observer=print).settings(60.0, {}).observer is print


@pytest.mark.parametrize("guarantee", ["dedup", "at least once", ""])
def test_a_guarantee_that_is_not_given_is_refused_with_those_that_are(guarantee: Any) -> None:
    with pytest.raises(
        InvalidInput, match=r"guarantee=.* is unknown.* It must be one of exactly-once, at-least-once\."
    ):
        options(guarantee=guarantee)


@pytest.mark.parametrize("option", ["guarantee", "value_format", "key_hash", "compression", "batching"])
@pytest.mark.parametrize("value", [["none"], {"json": 1}, None, 3])
def test_a_choice_that_is_no_text_is_refused_with_those_that_are(option: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=rf"{option}=.* is {type(value).__name__}\. It must be one of \S+, \S+"):
        options(**{option: value})


@pytest.mark.parametrize("option", ["transaction_timeout_s", "markers_kept", "principal"])
def test_an_option_of_transactions_is_refused_where_there_are_none(option: str) -> None:
    given: dict[str, Any] = {option: {"transaction_timeout_s": 61.0, "markers_kept": 9, "principal": "role"}[option]}
    options(**given)
    options(guarantee="at-least-once")
    with pytest.raises(InvalidInput, match=rf"{option}= is about transactions, and guarantee='at-least-once' has none"):
        options(guarantee="at-least-once", **given)


def test_public_keys_are_read_with_the_call(tmp_path: Path) -> None:
    from tests.encryption import key_pair

    pair = key_pair()
    public, _ = pair.write(tmp_path, "k")
    assert options(encryption_keys={"k": f"file:{public}"}).public_keys == (("k", pair.public),)
    assert options().public_keys == ()
    with pytest.raises(InvalidInput, match="is a private key"):
        options(encryption_keys={"k": pair.private})
    assert "PRIVATE" not in repr(SinkOptions(name="flights", encryption_keys={"k": pair.private}))


def test_the_control_topic_is_beside_the_topic_or_in_the_namespace_that_is_named() -> None:
    for topic in ("flights", None):
        assert options(topic=topic).control_topic == "persistent://public/default/__eos-flights"
    assert options(topic="persistent://a/b/t").control_topic == "persistent://a/b/__eos-flights"
    assert (
        options(topic="persistent://a/b/t", control_namespace="c/d").control_topic == "persistent://c/d/__eos-flights"
    )
    for wrong in ("", "d", "persistent://c/d", "c/d/t"):
        with pytest.raises(InvalidInput, match=r"is not a namespace\. Give tenant and namespace"):
            options(control_namespace=wrong)


# ---- tokens


SECRET = "s3cr3t"


def fetch(password: str) -> str:
    return f"token-{password}"


class Vault:
    """A source of tokens that shows its secret where it is printed."""

    def __init__(self) -> None:
        self.password = SECRET
        self.asked = 0

    def __repr__(self) -> str:
        return f"Vault({self.password})"

    def __call__(self) -> str:
        self.asked += 1
        return f"token-{self.asked}"

    def token(self) -> str:
        return self()


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (functools.partial(fetch, SECRET), "fetch"),
        (functools.partial(functools.partial(fetch), SECRET), "fetch"),
        (Vault(), "Vault"),
        (Vault().token, "Vault.token"),
        (lambda: SECRET, "<lambda>"),
    ],
)
def test_a_function_is_named_without_what_is_bound_to_it(function: Callable[[], str], name: str) -> None:
    carried = portable(function)
    assert repr(carried) == str(carried) == f"Provider(name='{__name__}.{name}')"


def test_the_driver_calls_the_function_itself_and_a_task_what_was_pickled() -> None:
    vault = Vault()
    made = portable(vault)
    assert isinstance(made, Provider)
    cluster = Cluster("pulsar://h", Credentials("token", made))
    assert [secret(cluster.credentials, PATIENCE_S) for _ in range(2)] == ["token-1", "token-2"]
    assert vault.asked == 2

    arrived: Cluster = pickle.loads(pickle.dumps(cluster))
    assert arrived == cluster, "a task's client is found again by its cluster"
    assert hash(arrived) == hash(cluster)
    del _functions[made]  # as in another process
    assert [secret(arrived.credentials, PATIENCE_S) for _ in range(2)] == ["token-1", "token-2"], "loaded once"
    assert vault.asked == 2


def test_a_function_that_can_not_be_pickled_is_refused_at_the_call() -> None:
    lock = threading.Lock()

    def token() -> str:
        with lock:
            return SECRET

    with pytest.raises(InvalidInput, match=r"token=\S+token can't travel to the tasks that write: .*TypeError") as told:
        SinkOptions(name="n", token=token).cluster("pulsar://h")
    assert "holds no lock" in str(told.value)


def test_what_pickling_says_is_not_shown() -> None:
    class Unpicklable(Vault):
        def __reduce__(self) -> str:
            raise pickle.PicklingError(f"can't pickle {self!r}")

    with pytest.raises(InvalidInput, match="PicklingError") as told:
        portable(Unpicklable())
    assert SECRET not in str(told.value)
    assert told.value.__context__ is None


def test_texts_stay_texts() -> None:
    assert (portable("file:/a"), portable(None)) == ("file:/a", None)
