"""What a task does around its range."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.source import tasks
from eos.source.offsets import BEGINNING
from eos.source.options import parse_options
from eos.source.ranges import Range
from eos.source.tasks import RangePartition, read_partition
from tests.unit.source.test_value_schema import entry

TOPIC = "persistent://public/default/t"
SCHEMA = StructType([StructField("value", BinaryType())])


@pytest.mark.parametrize("whole", [True, False], ids=["read to its end", "left in the middle"])
def test_collections_of_garbage_are_few_while_a_range_is_read(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def groups(*_: object) -> Iterator[list[Entry]]:
        for value in (b"a", b"b"):
            seen.append(gc.get_threshold()[0])
            yield [entry(value)]

    monkeypatch.setattr(tasks, "read_range", groups)
    usual = gc.get_threshold()
    options = parse_options({"service.url": "pulsar://localhost:1", "topic": TOPIC}, "batch")
    batches = read_partition(RangePartition(Range(TOPIC, BEGINNING, EntryId(3, 1))), options, SCHEMA)
    rows = [next(batches).to_pylist()] if not whole else [batch.to_pylist() for batch in batches]
    assert rows == [[{"value": b"a"}], [{"value": b"b"}]][: len(rows)]
    del batches
    assert min(seen) > usual[0]
    assert gc.get_threshold() == usual
