"""Entries become record batches of exactly the schema that a query declares."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from eos.errors import DamagedFrame, InvalidInput
from eos.pulsar.wire.decoding import decode
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import KeyValue, MessageMetadata, SingleMessageMetadata
from eos.source.columns import ALL, PARTS, SourceColumns, checked

TOPIC = "persistent://public/default/t-partition-3"
AT_MS = 1_357_043_400_250


def entry(value: bytes = b"v", number: int = 0, **metadata: Any) -> Entry:
    described = MessageMetadata(producer_name="p", sequence_id=number, publish_time=AT_MS, **metadata)
    return Entry(EntryId(8, number), described, value, 100, TOPIC)


def schema(**types: Any) -> StructType:
    return StructType([StructField(name, kind) for name, kind in types.items()])


def rows(declared: StructType, *entries: Entry, topic: str = TOPIC) -> list[dict[str, Any]]:
    checked(declared, keeps_damaged="__damage" in declared.fieldNames())
    batch = SourceColumns(declared, topic).batch(entries)
    assert batch.schema.equals(to_arrow_schema(declared, timezone="UTC"))
    found: list[dict[str, Any]] = batch.to_pylist()
    return found


def test_all_columns_in_their_default_types() -> None:
    full = entry(
        b"\xff",
        partition_key=b"k",
        ordering_key=b"o",
        event_time=AT_MS + 1,
        properties=[KeyValue(key="a", value="b")],
    )
    bare = entry(b"", 1)
    first, second = rows(ALL, full, bare)
    at = pa.scalar(AT_MS, pa.timestamp("ms", "UTC")).as_py()
    assert first == {
        "value": b"\xff",
        "__key": b"k",
        "__topic": "persistent://public/default/t",
        "__partition": 3,
        "__messageId": {"ledger": 8, "entry": 0, "batchIndex": -1},
        "__publishTime": at,
        "__eventTime": pa.scalar(AT_MS + 1, pa.timestamp("ms", "UTC")).as_py(),
        "__messageProperties": [("a", "b")],
        "__orderingKey": b"o",
    }
    assert [second[name] for name in ("value", "__key", "__eventTime", "__orderingKey")] == [b"", None, None, None]
    assert second["__messageProperties"] == []


def test_other_types_and_any_order_may_be_declared() -> None:
    declared = schema(__eventTime=LongType(), __key=StringType(), value=StringType(), __publishTime=LongType())
    assert rows(declared, entry("ü".encode(), partition_key="ключ".encode())) == [
        {"__eventTime": None, "__key": "ключ", "value": "ü", "__publishTime": AT_MS}
    ]


def test_a_topic_without_partitions_has_no_partition_number() -> None:
    declared = schema(__topic=StringType(), __partition=IntegerType())
    topic = "persistent://public/default/t"
    assert rows(declared, entry(), entry(number=1), topic=topic) == [{"__topic": topic, "__partition": None}] * 2


def test_what_is_not_declared_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def watched(entries: Any, wanted: Any) -> Any:
        asked.append(set(wanted))
        return decode(entries, wanted)

    monkeypatch.setattr("eos.source.columns.decode", watched)
    rows(schema(__key=BinaryType(), __topic=StringType()), entry())
    assert asked == [{"key"}]


def test_bytes_that_are_no_text_are_refused_where_text_is_declared() -> None:
    with pytest.raises(
        InvalidInput, match=rf"message 8:0 of {TOPIC}: column 'value' can't be read as string.*Declare it as binary"
    ):
        rows(schema(value=StringType()), entry(b"\xff\xfe"))


def test_a_time_that_spark_has_no_timestamp_for_is_told_to_be_read_as_a_number() -> None:
    late = entry(event_time=2**63 - 1)
    with pytest.raises(
        InvalidInput, match=rf"message 8:0 of {TOPIC}: column '__eventTime' can't be read as .*Declare it as"
    ):
        rows(schema(__eventTime=TimestampType()), entry(event_time=1), late)
    assert rows(schema(__eventTime=LongType()), late) == [{"__eventTime": 2**63 - 1}]


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        (schema(valeu=BinaryType()), r"no column 'valeu'\. Did you mean 'value'\? It has value, __key, __topic"),
        (schema(key=BinaryType()), r"no column 'key'\. Did you mean '__key'"),
        (schema(value=IntegerType()), "column 'value' can't be int: the Pulsar source gives it as binary or string"),
        (schema(__messageId=StringType()), r"gives it as struct<ledger:bigint,entry:bigint,batchIndex:int>"),
        (schema(__partition=TimestampType()), "gives it as int"),
        (schema(__eventTime=TimestampNTZType()), r"gives it as timestamp or bigint\. Where .*, write timestamp_ltz\."),
        (schema(__partition=TimestampNTZType()), r"gives it as int\.$"),
        (
            schema(__messageProperties=MapType(StringType(), StringType(), False)),
            r"each part may be null.*NOT NULL and",
        ),
        (StructType([StructField("value", BinaryType(), nullable=False)]), "'value' is declared not null"),
    ],
)
def test_a_wrong_column_is_named(declared: StructType, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        checked(declared)


@pytest.mark.parametrize("more", [{"nullable": False}, {"metadata": {"comment": "of a day"}}])
def test_what_no_type_shows_is_named_where_it_differs(more: dict[str, Any]) -> None:
    value = StructType([StructField("a", IntegerType())])
    declared = schema(value=StructType([StructField("a", IntegerType(), **more)]))
    with pytest.raises(
        InvalidInput, match=r"registered schema it is struct<a:int>, where each part may be null and has"
    ):
        checked(declared, value)


def test_every_column_can_be_had_in_each_of_its_types() -> None:
    for part in PARTS:
        for kind in part.types:
            assert len(rows(schema(**{part.name: kind}), entry(), entry(number=1))) == 2


def test_a_count_reads_the_messages_that_a_query_of_values_would_get() -> None:
    """The number in an entry's metadata counts what compaction took out, and what can't be read."""
    singles = [SingleMessageMetadata(payload_size=0, compacted_out=gone) for gone in (False, True)]
    described = [one.SerializeToString() for one in singles]
    batch = b"".join(len(one).to_bytes(4, "big") + one for one in described)
    counted = schema(__partition=IntegerType())
    assert len(rows(counted, entry(batch, num_messages_in_batch=2))) == 1
    with pytest.raises(DamagedFrame):
        rows(counted, entry(batch[:-1], num_messages_in_batch=2))
