"""Which columns make a message, and what is said of those that don't."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from eos.errors import InvalidInput
from eos.option_names import did_you_mean
from eos.sinks.columns import ALIASES, BUILT, NAMED, VALUE_FORMATS, ColumnRoles, ValueFormat, roles_of
from eos.sinks.message_rows import message_columns
from eos.source.columns import ALL

pytestmark = pytest.mark.usefixtures("spark")  # column expressions need a Spark context


def check(schema: str, value_format: ValueFormat = "raw", *, topic: str | None = "out", **named: str) -> ColumnRoles:
    parsed = StructType.fromDDL(schema)
    assert isinstance(parsed, StructType)
    roles = roles_of(parsed, value_format, topic=topic, named=named)
    message_columns(parsed, roles, value_format)
    return roles


WRONG: dict[ValueFormat, list[tuple[str, str]]] = {
    "raw": [
        ("key string", r"no column 'value' \(it has \['key'\]\)"),
        ("vlaue string", r"no column 'value'.*Did you mean 'vlaue'\?.*or use value_format='json'"),
        ("value string, kee string", r"Column 'kee' means nothing to the sink\. Did you mean 'key'\?"),
        ("value string, eventTime timestamp", r"Did you mean '__eventTime'\?|Did you mean 'event_time'\?"),
        (
            "value string, headers array<struct<key:string,value:binary>>",
            r"Column 'headers' means nothing to the sink\. Kafka's headers are properties here.*map_from_entries",
        ),
        ("value string, xyzzy int", r"Column 'xyzzy' means nothing to the sink\. The columns it takes are"),
        ("value bigint", "Column 'value' is bigint, but the message's value is binary or string. Cast it first"),
        ("value string, key int", "Column 'key' is int, but the message's key is binary or string"),
        ("value string, __key int", "Column '__key' is int, but the message's key is binary or string"),
        ("value string, event_time date", "event_time is timestamp, or bigint in milliseconds"),
        ("value string, event_time timestamp_ntz", r"is timestamp_ntz, but .*\. Cast it first, to timestamp_ltz\."),
        ("value string, key timestamp_ntz", r"Column 'key' is timestamp_ntz, but .* Cast it first\."),
        ("value string, deliver_at string", "deliver_at is timestamp, or bigint in milliseconds"),
        ("value string, __deliverAt string", "Column '__deliverAt' is string, but the message's deliver_at"),
        ("value string, properties map<string,int>", r"map<string,int>, but .* map<string,string>"),
        ("value string, properties string", r"the message's properties is map<string,string>"),
        ("value string, partition string", "the message's partition is an integer"),
        ("value string, partition double", "the message's partition is an integer"),
        ("value string, key string, __key string", "Columns 'key' and '__key' both give the message's key. Drop one"),
        ("value string, ordering_key array<int>", "the message's ordering_key is binary or string"),
    ],
    "json": [
        ("__key string", "builds the payload from the other columns, but there are none"),
        ("value binary, __key string", "make a field of the column 'value'.*Use value_format='raw', or rename"),
        ("a int, __key int", "Column '__key' is int"),
        ("m map<int,string>", r"Column 'm' holds a map<int,string>.*keys of a JSON object are strings.*transform_keys"),
        ("a array<struct<m:map<string,map<date,int>>>>", r"Column 'a' holds a map<date,int>"),
        ("a array<struct<b:struct<c:int,d:int,c:int>>>", r"Column 'a' holds a struct with two fields 'c'"),
    ],
    "avro": [
        ("__key string", "value_format='avro' builds the payload from the other columns, but there are none"),
        ("value binary", "value_format='avro' would make a field of the column 'value'"),
    ],
    "schema": [
        ("key string", "has no column 'value'.* Add one of the type of the topic's schema, or use"),
        ("value int, a int", "Column 'a' means nothing to the sink"),
        ("value int, key int", "Column 'key' is int"),
    ],
}
"""{how values are written: the columns of a DataFrame, and what is said of the one that is wrong}."""


@pytest.mark.parametrize(
    ("value_format", "schema", "words"), [(kind, *case) for kind, cases in WRONG.items() for case in cases]
)
def test_a_wrong_column_is_named(value_format: ValueFormat, schema: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        check(schema, value_format)


def test_a_value_of_the_topics_schema_is_left_as_it_is() -> None:
    check("value struct<a:int>, key string", "schema")


def test_some_topic_must_be_given() -> None:
    with pytest.raises(
        InvalidInput, match=r"No topic: give topic= to eos.sink\(\), txn.write\(\) or eos.write\(\), or add a column"
    ):
        check("value string", topic=None)
    with pytest.raises(InvalidInput, match="'topic' is binary, but the message's topic is string"):
        check("value string, topic binary", topic=None)
    assert check("value string, topic string", topic=None).parts["topic"] == "topic"
    assert check("value string, __topic string", topic=None).parts["topic"] == "__topic"


def payload(value_format: ValueFormat) -> str:
    return "a int" if value_format in BUILT else "value string"


@pytest.mark.parametrize("value_format", ["avro", "protobuf", "schema"])
def test_rows_that_name_their_topics_have_no_schema_to_be_encoded_by(value_format: ValueFormat) -> None:
    with pytest.raises(InvalidInput, match=r"'__topic' names a topic per row.*txn\.write"):
        check(f"{payload(value_format)}, __topic string", value_format, topic=None)


@pytest.mark.parametrize("value_format", VALUE_FORMATS)
@pytest.mark.parametrize("column", ["topic string", "__topic string", "topic int", "topic string, __topic string"])
def test_a_topic_that_is_given_wins_over_a_column(value_format: ValueFormat, column: str) -> None:
    roles = check(f"{payload(value_format)}, {column}", value_format)
    assert "topic" not in roles.parts
    fields = {"topic"} if value_format in BUILT else set()  # a field of the payload like any other
    assert set(roles.unused) == {one.split()[0] for one in column.split(", ")} - fields
    assert set(roles.unused.values()) <= {"since topic='out' is given, and counts for all rows"}


PLAIN = ("value", "key", "ordering_key", "event_time", "properties", "deliver_at", "topic", "partition")


@pytest.mark.parametrize("value_format", BUILT)
def test_a_payload_that_is_built_keeps_every_column_that_no_option_names(value_format: ValueFormat) -> None:
    assert set(PLAIN) == {"value", "topic", *NAMED}
    roles = check(", ".join(f"{name} int" for name in PLAIN), value_format)
    assert roles.payload.fieldNames() == list(PLAIN)
    assert (roles.parts, roles.notes) == ({}, {})
    metadata = ", ".join(f"`{name}` {_TYPE.get(part, 'string')}" for name, part in ALIASES.items())
    roles = check(f"{metadata}, a int, __v int", value_format)
    assert roles.payload.fieldNames() == ["a", "__v"]
    assert {*roles.parts.values(), *roles.unused} == set(ALIASES)


_TYPE = {"event_time": "timestamp", "deliver_at": "timestamp", "properties": "map<string,string>", "partition": "int"}


@pytest.mark.parametrize("part", NAMED)
@pytest.mark.parametrize("value_format", VALUE_FORMATS)
def test_an_option_names_the_column_of_each_part(value_format: ValueFormat, part: str) -> None:
    declared = f"{payload(value_format)}, it {_TYPE.get(part, 'string')}"
    roles = check(declared, value_format, **{part: "it"})
    assert roles.parts[part] == "it"
    note = f"column 'it' is the message's {part} by the option {part}, and no field of the payload"
    assert roles.notes == ({"it": note} if value_format in BUILT else {})
    assert "it" not in roles.payload.fieldNames()
    with pytest.raises(InvalidInput, match=rf"{part}='itt' names no column of the DataFrame.*Did you mean 'it'\?"):
        check(declared, value_format, **{part: "itt"})
    # A sink can't select such a column, and a writer by name took the last one.
    with pytest.raises(InvalidInput, match=f"{part}='it' names more than one column"):
        check(f"{declared}, it string", value_format, **{part: "it"})
    with pytest.raises(InvalidInput, match=f"'it' is array<int>, but the message's {part} is"):
        check(f"{payload(value_format)}, it array<int>", value_format, **{part: "it"})
    twice = next(name for name, known in ALIASES.items() if known == part)
    with pytest.raises(InvalidInput, match=f"Columns 'it' and '{twice}' both give the message's {part}"):
        check(f"{declared}, `{twice}` {_TYPE.get(part, 'string')}", value_format, **{part: "it"})


@pytest.mark.parametrize("value_format", ["raw", "schema"])
def test_a_payload_as_it_is_can_be_the_key_too(value_format: ValueFormat) -> None:
    roles = check("value string", value_format, key="value", ordering_key="value")
    assert roles.parts == {"key": "value", "ordering_key": "value", "value": "value"}
    assert roles.unused == {}


def test_each_column_of_the_source_has_a_role() -> None:
    roles = roles_of(ALL, "raw", topic="out", named={})
    assert {*roles.parts.values(), *roles.unused} == set(ALL.fieldNames())
    assert set(roles.unused) == {"__topic", "__messageId", "__publishTime"}
    assert roles.parts["partition"] == "__partition"
    assert "topic" in roles_of(ALL, "raw", topic=None, named={}).parts


def test_roles_are_told_a_line_each() -> None:
    assert str(check("a int, b int, __key string, __publishTime timestamp", "json")).splitlines() == [
        "value: built from 'a', 'b'",
        "key: column '__key'",
        "not written: column '__publishTime', which the broker assigns to each message",
    ]


@pytest.mark.parametrize(
    ("word", "suggestion"),
    [("vlaue", " Did you mean 'value'?"), ("VALUE", " Did you mean 'value'?"), ("zzz", ""), ("observation", "")],
)
def test_a_close_word_is_suggested(word: str, suggestion: str) -> None:
    assert did_you_mean(word, ["value", "key", "observer"]) == suggestion
