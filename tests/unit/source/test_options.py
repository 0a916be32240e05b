"""The options of the source, as Spark hands them over: their names in lower case."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from eos.config import Credentials, OAuth2, Tls
from eos.errors import InvalidInput
from eos.pulsar.wire.message_id import EntryId
from eos.source.batch_pace import Limits
from eos.source.boundaries import Boundary
from eos.source.options import SourceOptions, kind_of, parse_options
from eos.source.table import ANSWERS, OPTIONS, SYNONYMS, Kind

URL = "pulsar://localhost:6650"
TLS_URL = "pulsar+ssl://localhost:6651"
FLIGHTS = "persistent://public/default/flights"


def stream(**given: str) -> SourceOptions:
    return options("stream", {"subscription": "job"} | given)


def options(kind: Kind, given: dict[str, str]) -> SourceOptions:
    words = {"service.url": URL} | {word.replace("__", "."): value for word, value in given.items()}
    if not {"topics", "topicspattern"} & {word.lower() for word in words}:
        words.setdefault("topic", "flights")
    return parse_options(words, kind)


def test_a_stream_begins_at_the_latest_message_and_a_batch_reads_everything() -> None:
    taken = stream()
    assert (taken.topics, taken.pattern) == ((FLIGHTS,), None)
    assert (taken.start, taken.subscription, taken.fail_on_data_loss) == (Boundary("latest", given=False), "job", True)
    assert taken.limits is None
    assert (taken.admin_url, taken.min_partitions, taken.part_bytes) == (None, 1, 2**27)
    batch = options("batch", {})
    assert (batch.start, batch.end, batch.subscription) == (
        Boundary("earliest", given=False),
        Boundary("latest", given=False),
        "",
    )


@pytest.mark.parametrize("option", [one for one in OPTIONS if one.name != "decryption_keys"], ids=lambda one: one.name)
def test_every_option_of_the_table_is_taken_in_any_case(option: object) -> None:
    values = {
        "service.url": URL, "topics": "flights", "topicsPattern": "f.*", "subscription": "job",
        "failOnDataLoss": "false", "resetSubscription": "true", "subscriptionPrefix": "job",
        "startingOffsets": "latest",
        "startingTime": "0", "endingOffsets": "latest",
        "endingTime": "0", "maxEntriesPerTrigger": "5", "maxBytesPerTrigger": "5",
        "minEntriesPerTrigger": "5", "maxTriggerDelay": "15m", "tls_verify_hostname": "false",
        "request_timeout_s": "5", "connect_timeout_s": "5", "read_timeout_s": "60",
        "admin.url": "http://localhost:8080", "minPartitions": "8",
        "maxBytesPerPartition": "1000", "valueFormat": "Schema",
        "onDamagedEntry": "Skip", "maxMessageBytes": "1000",
        "targetBatchSeconds": "2.5", "readCompacted": "true", "retainWhileReading": "true",
        "read.from": "brokers", "bookie.addresses": "b0=h:3181", "offload.url": "s3://b", "offload.credentials": "{}",
        "bookie.tls": "true", "bookie.tls_verify_hostname": "false",
        "oauth2": '{"issuer_url": "https://i", "client_id": "i", "client_secret": "s"}',
    }  # fmt: skip
    name, kinds = option.name, option.kinds  # type: ignore[attr-defined]
    https = {"admin.url": "https://localhost:8443"}
    together = {
        "tls_certificate": {"tls_key": "k.pem"},
        "tls_key": {"tls_certificate": "c.pem"},
        "bookie.tls_trust_certs": {"bookie.tls": "true"},
        "bookie.tls_verify_hostname": {"bookie.tls": "true"},
        "bookie.tls_certificate": {"bookie.tls": "true", "bookie.tls_key": "k.pem"},
        "bookie.tls_key": {"bookie.tls": "true", "bookie.tls_certificate": "c.pem"},
        "minPartitions": https,
        "maxTriggerDelay": {"minEntriesPerTrigger": "5"},
        "maxBytesPerPartition": https,
        "offload.url": {"read.from": "auto"} | https,
        "offload.credentials": {"read.from": "auto", "offload.url": "s3://b"} | https,
    }
    for word in (name, name.lower(), name.upper()):
        given = {word: values.get(name, "x")} | together.get(name, {})
        if "stream" in kinds and not name.startswith("subscription"):
            given["subscription"] = "job"
        base = {} if name in ("topics", "topicsPattern") else {"topic": "flights"}
        url = {} if name == "service.url" else {"service.url": TLS_URL if name.startswith("tls_") else URL}
        parse_options(base | url | {**given} if name != "topic" else url | given, kinds[0])


def test_private_keys_are_looked_at_with_the_call(tmp_path: Path) -> None:
    from tests.encryption import key_pair

    _, private = key_pair().write(tmp_path, "k")
    given = json.dumps({"k": f"file:{private}"})
    for word in ("decryption_keys", "DECRYPTION_KEYS"):
        assert stream(**{word: given}).decryption_keys == (("k", str(private)),)
    assert b"PRIVATE" not in pickle.dumps(stream(decryption_keys=given)), "options travel to tasks"
    assert stream().decryption_keys == ()
    private.write_text("no key")
    with pytest.raises(InvalidInput, match="is not a private key in PEM"):
        stream(decryption_keys=given)


def test_time_offsets_and_limits_are_read() -> None:
    given = {"flights": "latest", "air/jfk/t-partition-1": "8:13"}
    assert stream(startingoffsets=json.dumps(given)).start == Boundary(
        "entries", entries={FLIGHTS: "latest", "persistent://air/jfk/t-partition-1": EntryId(8, 13)}
    )
    first = {"flights": "8:-1"}  # as brokers name the place before 8:0
    assert stream(startingoffsets=json.dumps(first)).start == Boundary("entries", entries={FLIGHTS: EntryId(8, 0)})
    assert options("batch", {"endingoffsets": json.dumps(first)}).end.entries == {FLIGHTS: EntryId(8, -1)}
    assert stream(startingtime="1970-01-01T01:00:01+01:00").start == Boundary("time", time_ms=1_000)
    assert stream(startingtime="1500").start == Boundary("time", time_ms=1_500)
    assert stream(startingoffsets="Earliest").start == Boundary("earliest")
    assert options("batch", {"endingtime": "7"}).end == Boundary("time", time_ms=7)
    assert stream(maxentriespertrigger="10", maxbytespertrigger="2000").limits == Limits(10, 2_000)
    assert stream(targetbatchseconds="2.5").limits == Limits(seconds=2.5)
    assert stream(minentriespertrigger="7").limits == Limits(least_entries=7, longest_wait_s=900)


@pytest.mark.parametrize(
    ("text", "seconds"), [("15m", 900), ("15 min", 900), ("250ms", 0.25), ("2H", 7_200), ("1d", 86_400), ("30s", 30)]
)
def test_a_delay_is_written_as_spark_writes_times(text: str, seconds: float) -> None:
    limits = stream(minentriespertrigger="7", maxtriggerdelay=text).limits
    assert limits is not None
    assert limits.longest_wait_s == seconds


def test_several_topics_and_patterns_are_named_in_full() -> None:
    assert stream(topics="flights, air/jfk/rows").topics == (FLIGHTS, "persistent://air/jfk/rows")
    assert stream(topicspattern="f.*").pattern == "persistent://public/default/f.*"
    assert stream(topicspattern="air/jfk/f[0-9]+").pattern == "persistent://air/jfk/f[0-9]+"


def test_a_prefix_gives_each_selection_of_topics_a_subscription_of_its_own() -> None:
    def named(**topics: str) -> str:
        return options("stream", {"subscriptionprefix": "jobs"} | topics).subscription

    assert named().startswith("jobs-")
    assert named() == named(topics="persistent://public/default/flights")
    assert named(topics="a,b") == named(topics="b,a")
    assert len({named(), named(topics="a,b"), named(topicspattern="f.*")}) == 3


@pytest.mark.parametrize(
    ("given", "method", "data"),
    [
        ({}, "none", ""),
        ({"token": "file:/run/token"}, "token", "file:/run/token"),
        ({"basic": "u:p"}, "basic", "u:p"),
        ({"tls_certificate": "c.pem", "tls_key": "k.pem"}, "tls", ""),
    ],
)
def test_credentials_are_as_the_sinks(given: dict[str, str], method: str, data: str) -> None:
    cluster = stream(**{"service.url": TLS_URL}, **given).cluster
    assert cluster.credentials == Credentials(method, data)  # type: ignore[arg-type]
    assert not data or data not in repr(cluster)


def test_oauth2_is_given_as_the_json_that_the_official_clients_take() -> None:
    given = {"issuerUrl": "https://i", "privateKey": "file:///key.json", "audience": "urn:pulsar"}
    cluster = stream(oauth2=json.dumps(given)).cluster
    assert cluster.credentials == Credentials("token", OAuth2("https://i", key_file="/key.json", audience="urn:pulsar"))


def test_names_of_the_java_client_that_mean_the_same_are_taken() -> None:
    names = {"pulsar.client.tlstrustcertsfilepath": "ca.pem", "pulsar.client.listenername": "outside"}
    taken = stream(**{"service.url": TLS_URL}, **names)
    assert (taken.cluster.tls.trust_certs, taken.cluster.listener_name) == ("ca.pem", "outside")
    assert options("stream", {"predefinedsubscription": "theirs"}).subscription == "theirs"


@pytest.mark.parametrize("word", ANSWERS)
def test_names_of_other_connectors_are_answered_with_ours(word: str) -> None:
    with pytest.raises(InvalidInput, match=f"has no option '{word}': ") as refused:
        stream(**{word: "x"})
    assert ANSWERS[word] in str(refused.value)


def test_answers_and_synonyms_are_no_options_and_name_some() -> None:
    names = {option.name for option in OPTIONS}
    assert not {name.lower() for name in names} & (ANSWERS.keys() | SYNONYMS.keys())
    assert set(SYNONYMS.values()) <= names


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"startingofsets": "latest"},
            r"no option 'startingofsets'\. Did you mean 'startingOffsets'\? It takes service",
        ),
        ({"xyzzy": "1"}, r"no option 'xyzzy'\. It takes service\.url, admin\.url, topic"),
        ({"pulsar.reader.readername": "r"}, "uses no Java reader. It takes service.url"),
        ({"kafka.security.protocol": "SSL"}, "reads Pulsar, not Kafka. It takes"),
        ({"service_url": f"{URL}1"}, r"'service.url' is given twice with different values, as .* and as 'service_url'"),
        ({"starting_offsets": "latest", "startingOffsets": "earliest"}, "'startingOffsets' is given twice"),
        ({"service.url": "http://localhost:8080"}, "must begin with pulsar://"),
        ({"topics": "a", "topic": "b"}, "one of topic, topics and topicsPattern; given: topic and topics"),
        ({"topics": " , "}, "names no topic"),
        ({"topics": "flights,public/default/flights"}, "names persistent://public/default/flights twice"),
        ({"topics": "non-persistent://public/default/x"}, "not a topic name"),
        ({"topicspattern": ".*/default/x"}, "must name one tenant and namespace in full"),
        ({"topicspattern": "f("}, "is not a regular expression"),
        ({"topicspattern": "*"}, "is not a regular expression: nothing to repeat"),
        ({"subscription": " "}, "must not be empty"),
        ({"subscriptionprefix": "p"}, "subscription or subscriptionPrefix, one of the two"),
        ({"startingoffsets": "early"}, "neither a word it knows nor a JSON object such as"),
        ({"startingoffsets": "[]"}, "nor a JSON object"),
        ({"startingoffsets": '{"flights": 5}'}, "nor a JSON object"),
        ({"startingoffsets": '{"flights": "5"}'}, r'startingOffsets: "5" is not an entry id. It must be LEDGER:ENTRY'),
        (
            {"startingoffsets": '{"flights": "latest", "public/default/flights": "earliest"}'},
            "startingOffsets names persistent://public/default/flights twice",
        ),
        ({"startingoffsets": "latest", "startingtime": "5"}, "startingOffsets and startingTime are two ways"),
        ({"startingtime": "2026-01-31T12:00:00"}, "is not a time. Write ISO 8601 with a zone"),
        ({"startingtime": "yesterday"}, "is not a time"),
        ({"startingtime": "1790000000000000"}, "is after the year 9999. Give milliseconds since 1970"),
        ({"startingoffsets": '{"flights": "9223372036854775808:1"}'}, "no number in one has more than 63 bits"),
        ({"endingoffsets": "latest"}, "'endingOffsets' is for a batch read. This is a stream read"),
        ({"failondataloss": "yes"}, "failOnDataLoss='yes' is neither true nor false"),
        ({"maxentriespertrigger": "0"}, "maxEntriesPerTrigger='0' is not a whole number of 1 or more"),
        ({"maxentriespertrigger": "9223372036854775808"}, "It must be at most 9223372036854775807"),
        ({"maxmessagebytes": "1073741825"}, "It must be at most 1073741824"),
        ({"maxbytespertrigger": "1k"}, "maxBytesPerTrigger='1k' is not a whole number"),
        ({"targetbatchseconds": "soon"}, "targetBatchSeconds='soon' is not a number of seconds"),
        ({"maxtriggerdelay": "15m"}, "minEntriesPerTrigger, which is not given. Give both"),
        ({"maxtriggerdelay": "900", "minentriespertrigger": "5"}, "maxTriggerDelay='900' can't be read.*such as 15m"),
        ({"maxtriggerdelay": "0s", "minentriespertrigger": "5"}, "maxTriggerDelay='0s' can't be read"),
        (
            {"minentriespertrigger": "6", "maxentriespertrigger": "5"},
            "minEntriesPerTrigger=6 is more than maxEntriesPerTrigger=5",
        ),
        ({"request_timeout_s": "0"}, "request_timeout_s='0' is not a number of seconds"),
        ({"read_timeout_s": "9"}, "read_timeout_s='9' is not a number of seconds of 10 or more"),
        ({"kafkaConsumer.pollTimeoutMs": "9"}, "use read_timeout_s, in seconds, which bounds how long a task waits"),
        ({"connect_timeout_s": "inf"}, "connect_timeout_s='inf' is not a number"),
        ({"request_timeout_s": "1e300"}, r"request_timeout_s='1e300' is too large. It must be at most 1e\+09 seconds"),
        ({"minpartitions": "8"}, r"minPartitions cuts .* by their ledgers.* Give admin\.url, such as"),
        ({"maxbytesperpartition": "8"}, r"maxBytesPerPartition cuts .* by their ledgers"),
        ({"minpartitions": "0", "admin.url": "http://h:1"}, "minPartitions='0' is not a whole number"),
        ({"admin.url": "h:8080"}, r"admin\.url='h:8080' must begin with http://"),
        ({"token": "t", "basic": "u:p"}, "token and basic are 2 ways"),
        ({"tls_key": "k.pem"}, "tls_certificate and tls_key belong together"),
        ({"tls_trust_certs": "a.pem"}, "tls_trust_certs= is an option of TLS, and pulsar://.* asks for none"),
    ],
)
def test_a_wrong_option_is_named(given: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        parse_options({"service.url": URL, "subscription": "job"} | _topic(given) | given, "stream")


def _topic(given: dict[str, str]) -> dict[str, str]:
    return {} if {"topics", "topicspattern"} & given.keys() else {"topic": "flights"}


def test_a_time_before_1970_begins_with_what_was_published_first() -> None:
    assert stream(startingtime="1960-01-01T00:00:00+00:00").start == Boundary("time", time_ms=0)


def test_no_time_is_looked_for_in_what_compaction_left() -> None:
    assert options("batch", {"readcompacted": "true", "startingoffsets": "earliest"}).compacted
    assert not options("batch", {}).compacted
    for boundary in ("startingtime", "endingtime"):
        with pytest.raises(InvalidInput, match="readCompacted reads what compaction left, and no broker looks"):
            options("batch", {"readcompacted": "true", boundary: "5"})
    with pytest.raises(InvalidInput, match="up to an earlier end keys would be missing"):
        options("batch", {"readcompacted": "true", "endingoffsets": '{"t": "5:3"}'})
    assert options("batch", {"readcompacted": "true", "endingoffsets": "latest"}).compacted
    with pytest.raises(InvalidInput, match="'readCompacted' is for a batch read"):
        stream(readcompacted="true")


def test_a_batch_has_no_use_for_the_options_of_streams() -> None:
    with pytest.raises(InvalidInput, match=r"'subscription' is for a stream read. This is a batch read"):
        options("batch", {"subscription": "job"})
    with pytest.raises(InvalidInput, match="'maxEntriesPerTrigger' is for a stream read"):
        options("batch", {"maxentriespertrigger": "5"})


@pytest.mark.parametrize("missing", ["service.url", "topic", "subscription"])
def test_what_is_needed_is_asked_for(missing: str) -> None:
    given = {"service.url": URL, "topic": "flights", "subscription": "job"}
    del given[missing]
    with pytest.raises(InvalidInput, match=f"needs .*{missing}"):
        parse_options(given, "stream")


def test_values_are_bytes_unless_the_schema_is_asked_for() -> None:
    assert not stream().typed
    assert not stream(valueformat="bytes").typed
    assert stream(valueformat="SCHEMA").typed
    with pytest.raises(InvalidInput, match="valueFormat='json' is neither raw nor bytes nor schema"):
        stream(valueformat="json")


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["topic", "subscription"], "stream"),
        (["SubscriptionPrefix"], "stream"),
        (["predefinedSubscription"], "stream"),
        (["topic", "maxEntriesPerTrigger"], "stream"),
        (["topic", "endingTime"], "batch"),
        (["topic", "minPartitions"], "batch"),
    ],
)
def test_options_of_streams_tell_a_stream_from_a_batch(names: list[str], kind: Kind) -> None:
    assert kind_of(names) == kind


def test_reading_past_the_brokers_needs_the_admin_api_and_bookies_that_can_be_found() -> None:
    batch = options(
        "batch", {"read__from": "AUTO", "admin__url": "http://a:1", "bookie__addresses": "b0=h:3181, b1=[::1]:2"}
    )
    assert (batch.read_from, batch.bookie_addresses) == ("auto", (("b0", "h:3181"), ("b1", "[::1]:2")))
    assert options("batch", {}).read_from == "brokers"
    with pytest.raises(InvalidInput, match=r"read\.from='bookies' needs the admin API"):
        options("batch", {"read__from": "bookies"})
    with pytest.raises(InvalidInput, match=r"read\.from='disk' is neither brokers nor bookies nor auto"):
        options("batch", {"read__from": "disk", "admin__url": "http://a:1"})
    for wrong in ("h:3181", "b0=h", "b0=h:x", "=h:1", "b0=h:1,"):
        with pytest.raises(InvalidInput, match=r"bookie\.addresses="):
            options("batch", {"bookie__addresses": wrong})


def test_tls_with_bookies_is_on_by_its_own_option_and_a_certificate_comes_with_its_key() -> None:
    given = {
        "bookie__tls": "true",
        "bookie__tls_trust_certs": "a.pem",
        "bookie__tls_certificate": "c.pem",
        "bookie__tls_key": "k.pem",
    }
    assert options("batch", given).bookie_tls == Tls("a.pem", True, "c.pem", "k.pem")
    assert options("batch", {"bookie__tls": "true", "bookie__tls_verify_hostname": "false"}).bookie_tls == Tls(
        verify_hostname=False
    )
    assert options("batch", {}).bookie_tls is None
    for name in ("bookie__tls", "bookie__tls_certificate", "bookie__tls_key"):
        with pytest.raises(InvalidInput, match=r"bookie\.tls"):
            options("batch", {other: text for other, text in given.items() if other != name})
    with pytest.raises(InvalidInput, match=r"bookie\.tls_… have no effect without TLS"):
        options("batch", {"bookie__tls_trust_certs": "a.pem"})


def test_offloaded_segments_are_read_past_the_brokers_alone() -> None:
    past = {"read.from": "auto", "admin.url": "http://a:1", "offload.url": "s3://b?region=r"}
    found = parse_options({"service.url": URL, "topic": "t"} | past, "batch").offload
    assert found is not None
    assert (found.url, found.credentials) == ("s3://b?region=r", "")
    for wrong, said in (
        ({"offload.url": "s3://b"}, "offload.url is read only past the brokers"),
        ({"offload.credentials": "{}"}, "is of no use without offload.url"),
        (past | {"offload.url": "b"}, "offload.url must begin with s3://"),
        (past | {"offload.credentials": "x"}, "offload.credentials is not a JSON object"),
    ):
        with pytest.raises(InvalidInput, match=said):
            parse_options({"service.url": URL, "topic": "t"} | wrong, "batch")


HUGE = "9" * 5_000
"""Python reads no number of more than 4,300 digits."""


@pytest.mark.parametrize(
    "wrong",
    [
        {"minPartitions": HUGE},
        {"maxMessageBytes": HUGE},
        {"endingTime": HUGE},
        {"startingTime": f'{{"t": {HUGE}}}'},
        {"startingTime": f'{{"t": "{HUGE}"}}'},
        {"startingOffsets": f'{{"t": "{HUGE}:1"}}'},
        {"startingOffsets": f'{{"t": "1:{HUGE}"}}'},
        {"request_timeout_s": HUGE},
        {"service.url": f"pulsar://h:{HUGE}"},
        *({"offload.url": url} for url in ("s3://[x", "abfs://[@/x", "hdfs://h:port/x", f"hdfs://h:{HUGE}/x")),
    ],
)
def test_no_number_and_no_address_is_too_odd_to_be_refused_in_words(wrong: dict[str, str]) -> None:
    others = {"service.url": "pulsar://h:6650", "topic": "t", "admin.url": "http://h:8080", "read.from": "auto"}
    with pytest.raises(InvalidInput):
        parse_options(others | wrong, "batch")
