"""The options of the writers by name: texts in any case, checked as those of `eos.sink` are."""

from __future__ import annotations

import pytest

from eos.by_name.options import OPTIONS, for_reading, parse_write_options
from eos.errors import InvalidInput
from eos.sinks.options import MIB

CALL = 'df.write.format("pulsar")'
GIVEN = {"service.url": "pulsar://h:6650", "topic": "t", "guarantee": "at-least-once"}


def parsed(**more: str):  # type: ignore[no-untyped-def]
    return parse_write_options({**GIVEN, **more}, CALL)


def test_texts_become_what_the_sink_takes() -> None:
    found = parse_write_options(
        {
            "SERVICE.URL": "pulsar+ssl://h:6651",
            "Topic": "tenant/ns/t",
            "guarantee": "at-least-once",
            "Key_Hash": "java",
            "compression": "zstd",
            "max_in_flight_bytes": "2097152",
            "request_timeout_s": "2.5",
            "tls_verify_hostname": "False",
            "tls_trust_certs": "/ca.pem",
            "basic": "user:secret",
            "listener_name": "outside",
            "chunking": "true",
            "producer_properties": '{"team": "flights"}',
        },
        CALL,
    )
    sink, cluster = found.sink, found.cluster
    assert (sink.topic, sink.key_hash, sink.compression) == ("persistent://tenant/ns/t", "java", "zstd")
    assert (sink.max_in_flight_bytes, sink.guarantee) == (2 * MIB, "at-least-once")
    assert sink.chunking is True
    assert sink.producer_properties == {"team": "flights"}
    assert (cluster.request_timeout_s, cluster.listener_name, cluster.tls.verify_hostname) == (2.5, "outside", False)
    assert (cluster.credentials.method, cluster.tls.trust_certs) == ("basic", "/ca.pem")


def test_defaults_are_the_sinks() -> None:
    sink = parsed().sink
    assert (sink.value_format, sink.key_hash, sink.compression, sink.batching) == ("raw", "murmur3", "none", "default")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"compresion": "zstd"}, "has no option 'compresion'. Did you mean 'compression'?"),
        ({"name": "n"}, "has no option 'name'. Nothing is found again by a name here"),
        ({"register_schema": "R"}, "Register the schema before"),
        ({"attempts": "5"}, "spark.task.maxFailures"),
        ({"path": "/x"}, "Name the topic by the option topic"),
        ({"valueFormat": "schema", "value_format": "avro"}, "'value_format' is given twice with different values"),
        ({"registerSchema": "R"}, "Register the schema before"),
        ({"kafka.bootstrap.servers": "h:9092"}, 'Use service.url="pulsar://host:6650"'),
        ({"service_url": "pulsar://other:6650"}, "'service.url' is given twice with different values"),
        ({"tls_verify_hostname": "yes"}, "tls_verify_hostname='yes' is neither true nor false"),
        ({"max_in_flight_bytes": "much"}, "max_in_flight_bytes='much' is not a whole number"),
        ({"max_in_flight_bytes": "5"}, "max_in_flight_bytes=5 is too small"),
        ({"request_timeout_s": "soon"}, "request_timeout_s='soon' is no number"),
        ({"request_timeout_s": "nan"}, "must be a finite number"),
        ({"compression": "zst"}, "compression='zst' is unknown. Did you mean 'zstd'?"),
        ({"value_format": "json"}, "value_format='json' is not there"),
        ({"value_format": "json"}, "INSERT INTO does not write a table whose topic has a JSON schema. Use eos.write("),
        ({"value_format": "avor"}, "value_format='avor' is unknown. Did you mean 'avro'?"),
        ({"guarantee": "exactly-once"}, "can't be kept by df.write"),
        ({"guarantee": "at-least-onc"}, "Did you mean 'at-least-once'?"),
        ({"topic": "t-partition-1"}, "names one partition"),
        ({"token": "a", "basic": "b:c"}, "2 ways to authenticate"),
        ({"tls_key": "/k", "tls_certificate": "/c"}, "is an option of TLS, and pulsar://h:6650 asks for none"),
        ({"service.url": "http://h"}, "pulsar://"),
        ({"producer_properties": "team=x"}, "is not a JSON object"),
        ({"encryption_keys": "key"}, "encryption_keys= is not a JSON object"),
        ({"encryption_keys": "null"}, "encryption_keys= is not a JSON object"),
        ({"producer_properties": "[1]"}, "producer_properties= is list"),
        ({"producer_properties": '{"eos.x": "y"}'}, "are the sink's"),
    ],
)
def test_what_is_wrong_is_named(more: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parsed(**more)
    assert words in str(refused.value)


def test_the_service_url_is_needed() -> None:
    with pytest.raises(InvalidInput, match=r"needs service\.url, such as"):
        parse_write_options({"topic": "t", "guarantee": "at-least-once"}, CALL)


def test_a_secret_is_not_shown() -> None:
    with pytest.raises(InvalidInput) as refused:
        parsed(token="secret", basic="secret")
    assert "secret" not in str(refused.value)


def test_each_side_of_a_table_passes_over_what_only_the_other_knows() -> None:
    table = {**GIVEN, "startingOffsets": "earliest", "compression": "zstd", "checkpointLocation": "/c"}
    assert parse_write_options(table, CALL).sink.compression == "zstd"
    assert for_reading(table) == {
        "service.url": "pulsar://h:6650",
        "topic": "t",
        "startingOffsets": "earliest",
        "checkpointLocation": "/c",
    }


def test_the_options_are_the_sinks_own() -> None:
    assert {one.name for one in OPTIONS} >= {"topic", "guarantee", "value_format", "key_hash", "compression", "token"}
    assert {one.name for one in OPTIONS}.isdisjoint({"name", "attempts", "observer", "metrics", "admin_url"})
