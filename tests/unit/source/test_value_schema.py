"""Values become what the topic's registered schema says, each by the version that it was written with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql.types import BinaryType, DataType, IntegerType, StringType, StructField, StructType

from eos.errors import DamagedFrame, InvalidInput
from eos.pulsar.protocol.schemas import Registered
from eos.pulsar.wire.decoding import decode
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata, SingleMessageMetadata
from eos.source.columns import ALL, SourceColumns, all_with, checked
from eos.source.damage import DamagePolicy
from eos.source.errors import UnreadableMessage
from eos.source.offsets import BEGINNING
from eos.source.ranges import Range
from eos.source.value_schema import TypedValues, ValueSchema, of_type, shared_schema
from tests.unit.schema.registered import field, golden, record, registered

TOPIC = "persistent://public/default/t"
FLIGHT = record(field("delay", "int"))
DECLARED = StructType([StructField("value", StructType([StructField("delay", IntegerType())]))])
DECLARED_NUMBER = StructType(
    [
        StructField("__key", BinaryType()),
        StructField("value", IntegerType()),
        StructField("__partition", IntegerType()),
    ]
)


def entry(value: bytes, number: int = 0, version: int | None = None, **metadata: Any) -> Entry:
    if version is not None:
        metadata["schema_version"] = version.to_bytes(8, "big")
    described = MessageMetadata(producer_name="p", sequence_id=number, publish_time=1, **metadata)
    return Entry(EntryId(8, number), described, value, 100, TOPIC)


def number(value: int) -> bytes:
    return value.to_bytes(4, "big", signed=True)


def rows(schema: Registered, *entries: Entry, versions: dict[int, Registered] | None = None) -> list[Any]:
    """Return the values of these entries as a query by this schema gets them."""
    shared = shared_schema({TOPIC: schema})
    asked: list[bytes] = []

    def lookup(topic: str, version: bytes) -> Registered | None:
        assert topic == f"{TOPIC}-partition-1"
        asked.append(version)
        return (versions or {}).get(int.from_bytes(version, "big"))

    declared = StructType([StructField("value", shared.spark_type)])
    typed = TypedValues(shared, f"{TOPIC}-partition-1", lookup)
    columns = SourceColumns(declared, f"{TOPIC}-partition-1", typed)
    found = [value for _ in range(2) for value in columns.batch(entries).column("value").to_pylist()]
    assert len(asked) == len(set(asked)), "a version is asked for once"
    assert found[: len(found) // 2] == found[len(found) // 2 :]
    return found[: len(found) // 2]


def test_values_without_a_version_are_read_by_the_querys_schema() -> None:
    assert rows(registered("INT32"), entry(number(-1)), entry(b"", 1, null_value=True)) == [-1, None]


def test_a_separated_pair_takes_its_key_from_the_message() -> None:
    schema, value = golden("KEY_VALUE SEPARATED")
    entries = [entry(value, partition_key=b"k"), entry(b"", 1, null_value=True), entry(value, 2, version=0)]
    assert rows(schema, *entries, versions={0: schema}) == [{"key": "k", "value": 7}, None, {"key": None, "value": 7}]


def test_an_empty_version_is_none() -> None:
    assert rows(registered("INT32"), entry(number(5), schema_version=b"")) == [5]


def test_no_messages() -> None:
    assert rows(registered("INT32")) == []


def test_each_version_is_looked_up_once_and_the_order_stays() -> None:
    old, new = registered("JSON", FLIGHT), registered("JSON", FLIGHT, number=1)
    entries = [entry(b'{"delay": %d}' % place, place, version=place % 2) for place in range(5)]
    found = rows(new, *entries, entry(b"", 5, null_value=True), versions={0: old, 1: new})
    assert found == [*({"delay": place} for place in range(5)), None]


def test_a_version_of_another_kind_is_refused_with_both() -> None:
    words = f"{TOPIC}-partition-1: messages were written with the schema STRING, and the query reads them by INT32"
    with pytest.raises(InvalidInput, match=words):
        rows(registered("INT32"), entry(b"abcd", version=3), versions={3: registered("STRING")})


def test_a_version_that_is_gone_is_named() -> None:
    with pytest.raises(InvalidInput, match=f"{TOPIC}-partition-1 has messages of version 7 of its schema, which the"):
        rows(registered("INT32"), entry(number(1), version=7))


def test_a_wrong_value_is_named_by_topic_message_version_and_field() -> None:
    good = [entry(b'{"delay": 1}', place, version=place % 2) for place in range(4)]
    versions = {0: registered("JSON", FLIGHT), 1: registered("JSON", FLIGHT)}
    words = f"message 8:4 of {TOPIC}-partition-1, of schema version 0: field 'delay' of its value can't be decoded: 'x'"
    with pytest.raises(InvalidInput, match=words):
        rows(registered("JSON", FLIGHT), *good, entry(b'{"delay": "x"}', 4, version=0), versions=versions)
    words = f"message 8:1 of {TOPIC}-partition-1, without a schema version: its value can't be decoded: 1 bytes, where"
    with pytest.raises(InvalidInput, match=words):
        rows(registered("INT32"), entry(number(1)), entry(b"x", 1))


def test_a_message_of_a_batch_is_named_by_its_place_in_it() -> None:
    batch = b"\0\0\0\2\x18\4" + number(1) + b"\0\0\0\2\x18\1" + b"x"
    with pytest.raises(InvalidInput, match=f"message 8:0:1 of {TOPIC}-partition-1"):
        rows(registered("INT32"), entry(batch, num_messages_in_batch=2))


def read_around(columns: SourceColumns, entries: Sequence[Entry]) -> tuple[list[Any], list[str]]:
    """Return the rows that can be read, and the words about each message that can't."""
    told: list[str] = []

    class Noted(DamagePolicy):
        def __call__(self, damage: DamagedFrame | UnreadableMessage) -> None:
            told.append(str(damage))
            super().__call__(damage)

    policy = Noted("skip", Range(TOPIC, BEGINNING, EntryId(8, 9)), columns)
    return [row for batch in policy.readable(entries) for row in batch.to_pylist()], told


def batch_of(values: Sequence[bytes], number: int) -> Entry:
    packed = b""
    for value in values:
        single = SingleMessageMetadata(payload_size=len(value)).SerializeToString()
        packed += len(single).to_bytes(4, "big") + single + value
    return entry(packed, number, num_messages_in_batch=len(values))


def test_each_message_that_does_not_fit_its_schema_is_left_out_alone() -> None:
    shared = shared_schema({TOPIC: registered("INT32")})
    typed = TypedValues(shared, TOPIC, lambda topic, version: None)
    columns = SourceColumns(all_with(shared.spark_type), TOPIC, typed)
    entries = [
        entry(number(1)),
        batch_of([b"xx", number(2), b"yyy", number(3)], 1),
        entry(b"zzzzz", 2),
        entry(number(4), 3),
    ]
    found, told = read_around(columns, entries)
    assert [(row["value"], row["__messageId"]["entry"], row["__messageId"]["batchIndex"]) for row in found] == [
        (1, 0, -1),
        (2, 1, 1),
        (3, 1, 3),
        (4, 3, -1),
    ]
    assert [words.split(" of ")[0] for words in told] == ["message 8:1:0", "message 8:1:2", "message 8:2"]


def test_a_text_that_is_none_is_left_out_alone() -> None:
    columns = SourceColumns(StructType([StructField("value", StringType())]), TOPIC)
    found, told = read_around(columns, [entry(b"a"), batch_of([b"\xff", b"b", b"\xfe"], 1)])
    assert [row["value"] for row in found] == ["a", "b"]
    assert [words.split(" of ")[0] for words in told] == ["message 8:1:0", "message 8:1:2"]


def test_topics_share_a_schema_or_are_refused_with_both() -> None:
    same = {"a": registered("JSON", FLIGHT), "b": registered("JSON", FLIGHT | {"doc": "told"}, number=4)}
    assert shared_schema(same).registered == same["a"]
    words = (
        r"the topics have different schemas: version 0 .* is INT32, but version 2 .* is STRING\. Read them by a query"
    )
    with pytest.raises(InvalidInput, match=words):
        shared_schema({"a": registered("INT32"), "b": registered("STRING", number=2)})
    with pytest.raises(InvalidInput, match="b has no registered schema, so its values have no type"):
        shared_schema({"a": registered("INT32"), "b": None})
    with pytest.raises(InvalidInput, match="no topic is there yet"):
        shared_schema({})


def test_a_query_declares_the_type_of_the_schema_and_may_leave_the_value_out() -> None:
    kind = shared_schema({TOPIC: registered("JSON", FLIGHT)}).spark_type
    checked(DECLARED, kind)
    assert all_with(kind)["value"].dataType == kind
    assert all_with(kind).fieldNames() == ALL.fieldNames()
    with pytest.raises(
        InvalidInput, match=r"'value' can't be string: by the registered schema it is struct<delay:int>"
    ):
        checked(StructType([StructField("value", StringType())]), kind)
    checked(StructType([StructField("__key", StringType())]), kind)


def test_what_types_no_column_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def watched(entries: Any, wanted: Any) -> Any:
        asked.append(set(wanted))
        return decode(entries, wanted)

    monkeypatch.setattr("eos.source.columns.decode", watched)
    shared = ValueSchema(registered("INT32"), shared_schema({TOPIC: registered("INT32")}).description)
    typed = TypedValues(shared, TOPIC, lambda topic, version: None)
    SourceColumns(StructType([StructField("__key", BinaryType())]), TOPIC, typed).batch([entry(number(1))])
    assert asked == [{"key"}]


def test_values_of_several_groups_come_as_one_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eos.pulsar.wire.decoding.GROUP_BYTES", 250)  # an entry counts 100 here
    entries = [entry(b"" if place == 3 else number(place), place, null_value=place == 3) for place in range(7)]
    assert rows(registered("INT32"), *entries) == [0, 1, 2, None, 4, 5, 6]


@pytest.mark.parametrize("versions", [[None], [0], [0, 1], [None, 0]])
def test_a_version_is_looked_for_in_each_message_only_where_there_are_several(versions: list[int | None]) -> None:
    schema = registered("INT32")
    typed = TypedValues(shared_schema({TOPIC: schema}), TOPIC, lambda topic, version: schema)
    entries = [entry(number(place), place, version) for place, version in enumerate(versions)]
    assert typed.needs(entries) == ({"schema_version"} if len(versions) > 1 else set())
    columns = SourceColumns(DECLARED_NUMBER, TOPIC, typed).batch(entries)
    assert columns.to_pylist() == [
        {"__key": None, "value": place, "__partition": None} for place in range(len(entries))
    ]


WIDER = record(field("delay", "int"), field("gate", ["null", "string"], default=None))
VERSIONS = {0: FLIGHT, 1: FLIGHT, 2: {"type": "record", "name": "R", "fields": [], "odd": 1}, 4: WIDER}
"""Of a topic whose version 3 was deleted."""


@pytest.mark.parametrize(
    ("declared", "read_by"),
    [
        (shared_schema({TOPIC: registered("AVRO", WIDER)}).spark_type, 4),
        (shared_schema({TOPIC: registered("AVRO", FLIGHT)}).spark_type, 1),
        (IntegerType(), 4),
    ],
    ids=["of the newest version", "of an older version", "of none"],
)
def test_a_declared_type_chooses_the_newest_version_that_has_it(declared: DataType, read_by: int) -> None:
    def ask(version: bytes) -> Registered | None:
        number = int.from_bytes(version, "big")
        return registered("AVRO", VERSIONS[number], number=number) if number in VERSIONS else None

    found = of_type(declared, registered("AVRO", WIDER, number=4), ask)
    assert found is not None
    assert found.number == read_by


@pytest.mark.parametrize("newest", [None, Registered(TOPIC, b"\xff" * 8, "BYTES", b"", {})])
def test_a_topic_without_a_schema_has_no_older_version_to_look_for(newest: Registered | None) -> None:
    """Brokers tell version -1 where the schema was deleted."""

    def ask(version: bytes) -> Registered | None:
        raise AssertionError(f"asked for version {version!r}")

    assert of_type(IntegerType(), newest, ask) is newest
