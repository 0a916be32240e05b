"""Entries and messages that can't be read, by each value of `onDamagedEntry`."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, DataType, IntegerType, StringType, StructField, StructType

from eos.errors import DamagedEntry, DamagedFrame, InvalidInput
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.source.columns import PARTS, SourceColumns, checked
from eos.source.damage import DamagePolicy
from eos.source.errors import UnreadableMessage
from eos.source.offsets import BEGINNING
from eos.source.ranges import Range
from eos.source.value_schema import TypedValues, shared_schema
from tests.unit.schema.registered import registered
from tests.unit.source.test_value_schema import batch_of, entry, number

TOPIC = "persistent://public/default/t-partition-3"


def declared(*names: str, **types: DataType) -> StructType:
    """Return a schema of these columns, each in its first type but for what is different."""
    first = {part.name: part.types[0] for part in PARTS}
    return StructType([StructField(name, types.get(name, first[name])) for name in names])


SCHEMA = declared(
    *("value", "__key", "__topic", "__partition", "__messageId", "__publishTime", "__messageProperties"),
    *("__producerName", "__schemaVersion", "__damage", "__damagedValue"),
    value=StringType(),
    __key=StringType(),
)


def policy(word: str, columns: SourceColumns | None = None) -> DamagePolicy:
    return DamagePolicy(word, Range(TOPIC, BEGINNING, EntryId(8, 9)), columns or SourceColumns(SCHEMA, TOPIC))


def rows(taken: DamagePolicy, *entries: Entry) -> list[dict[str, Any]]:
    return [row for batch in taken.readable(entries) for row in batch.to_pylist()]


def test_a_message_comes_as_a_row_in_its_place_with_what_can_be_read_of_it() -> None:
    keep = policy("keep")
    batch = batch_of([b"\xff", b"b", b"\xfe", b"d"], 1)
    batch.metadata.schema_version = (7).to_bytes(8, "big")
    found = rows(keep, entry(b"a"), batch)
    assert [row["value"] for row in found] == ["a", None, "b", None, "d"]
    assert [row["__damagedValue"] for row in found] == [None, b"\xff", None, b"\xfe", None]
    assert [row["__damage"] is None for row in found] == [True, False, True, False, True]
    assert found[1] | {"__damage": ""} == {
        "value": None,
        "__key": None,
        "__topic": TOPIC.removesuffix("-partition-3"),
        "__partition": 3,
        "__messageId": {"ledger": 8, "entry": 1, "batchIndex": 0},
        "__publishTime": datetime.fromtimestamp(0.001, UTC),
        "__messageProperties": [],
        "__producerName": "p",
        "__schemaVersion": 7,
        "__damage": "",
        "__damagedValue": b"\xff",
    }
    assert f"message 8:1:0 of {TOPIC}: column 'value' can't be read as string" in found[1]["__damage"]
    assert keep.count == 2


def test_a_typed_value_that_does_not_fit_comes_with_its_bytes() -> None:
    shared = shared_schema({TOPIC: registered("INT32")})
    typed = TypedValues(shared, TOPIC, lambda topic, version: None)
    columns = SourceColumns(declared("value", "__damage", "__damagedValue", value=IntegerType()), TOPIC, typed)
    found = rows(policy("keep", columns), entry(number(1)), entry(b"xx", 1))
    assert [(row["value"], row["__damagedValue"]) for row in found] == [(1, None), (None, b"xx")]
    assert "its value can't be decoded: 2 bytes" in found[1]["__damage"]


def test_a_row_keeps_a_time_that_python_has_no_word_for() -> None:
    columns = SourceColumns(declared("value", "__eventTime", "__damage", value=StringType()), TOPIC)
    in_year_20000 = 568_971_820_800_000
    batches = policy("keep", columns).readable([entry(b"\xff", event_time=in_year_20000)])
    (found,) = (batch for batch in batches if batch.num_rows)
    assert found.column("__eventTime").cast(pa.int64()).to_pylist() == [in_year_20000 * 1_000]
    assert found.column("value").to_pylist() == [None]


def test_an_entry_comes_as_a_row_that_says_where_it_is_stored() -> None:
    keep = policy("keep")
    hostile = entry(b"", 4, num_messages_in_batch=2)
    found = rows(keep, entry(b"a"), hostile)
    assert [row["value"] for row in found] == ["a", None]
    assert found[1]["__messageId"] == {"ledger": 8, "entry": 4, "batchIndex": -1}
    assert "entry 8:4" in found[1]["__damage"]
    keep(DamagedEntry("entry 8:6 can't be read: its checksum is wrong", 8, 6))
    keep(DamagedFrame("a chunk"))
    kept = [row for batch in keep.rows_of_entries() for row in batch.to_pylist()]
    assert [row["__messageId"] for row in kept] == [{"ledger": 8, "entry": 6, "batchIndex": -1}, None]
    assert [row["__damage"] for row in kept] == ["entry 8:6 can't be read: its checksum is wrong.", "a chunk."]
    assert not list(keep.rows_of_entries()), "each comes once"


def test_skip_leaves_out_and_counts_and_fail_names_both_ways_out(caplog: pytest.LogCaptureFixture) -> None:
    skip = policy("skip")
    with caplog.at_level(logging.WARNING, "eos.source"):
        assert [row["value"] for row in rows(skip, batch_of([b"\xff", b"b"], 1))] == ["b"]
    assert "left out: onDamagedEntry=skip (1 so far" in caplog.text
    assert skip.count == 1
    assert not list(skip.rows_of_entries())
    with pytest.raises(InvalidInput, match=r"onDamagedEntry=skip to go on without such messages.*onDamagedEntry=keep"):
        policy("fail")(UnreadableMessage(0, "message 8:1"))


@pytest.mark.parametrize(("columns", "keeps"), [(("value",), True), (("value", "__damage"), False)])
def test_keep_and_its_column_belong_together(columns: tuple[str, ...], keeps: bool) -> None:
    with pytest.raises(InvalidInput, match="onDamagedEntry=keep and the column __damage belong together"):
        checked(declared(*columns), keeps_damaged=keeps)
    checked(declared(*columns), keeps_damaged=not keeps)


def test_a_schema_version_is_a_number_or_bytes_and_null_where_the_producer_had_none() -> None:
    entries = [entry(b"a", 0, version=2), entry(b"b", 1), entry(b"c", 2, schema_version=b""), entry(b"d", 3, version=0)]
    numbers = SourceColumns(declared("__schemaVersion"), TOPIC)
    assert numbers.batch(entries).column(0).to_pylist() == [2, None, None, 0]
    texts = SourceColumns(declared("__schemaVersion", __schemaVersion=BinaryType()), TOPIC)
    assert texts.batch(entries).column(0).to_pylist() == [b"\0" * 7 + b"\2", None, b"", b"\0" * 8]
    with pytest.raises(UnreadableMessage, match=r"message 8:5 .* a schema version of 9 bytes. Declare it as binary"):
        numbers.batch([*entries, entry(b"", 5, schema_version=b"\1" * 9)])
