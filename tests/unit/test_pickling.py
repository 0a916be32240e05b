"""Data classes that travel to tasks name their fields: no other version may take one field for another."""

from __future__ import annotations

import dataclasses
import pickle
import pickletools
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql.types import BinaryType, StringType, StructType

from eos.bookkeeper import parse_printed
from eos.by_name.columns import columns_of
from eos.by_name.writers import BatchWriter, TaskDone
from eos.config import Cluster, Credentials, Provider
from eos.delivery.row_writer import WriteSettings
from eos.delivery.task import writing_task
from eos.errors import InvalidInput
from eos.history.segments import Segment, Segments
from eos.pickling import PickledByName
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.producer import ProducerIdentity
from eos.pulsar.wire.message_id import EntryId
from eos.schema.description import described
from eos.source.batch import PulsarReader
from eos.source.offsets import Position
from eos.source.options import SourceOptions, parse_options
from eos.source.ranges import Range
from eos.source.segment_path import SegmentPath
from eos.source.stream import PulsarStreamReader
from eos.source.tasks import RangePartition
from eos.source.value_schema import ValueSchema
from tests.unit.history.test_segments import CLOSED
from tests.unit.schema.registered import TOPIC, golden, registered

ROWS = StructType().add("key", StringType()).add("value", BinaryType())
OPTIONS = {
    "service.url": "pulsar+ssl://h:1",
    "topic": TOPIC,
    "admin.url": "https://h:1",
    "read.from": "auto",
    "offload.url": "s3://b",
    "startingOffsets": f'{{"{TOPIC}": "1:2"}}',
    "oauth2": '{"issuer_url": "https://h", "client_id": "a", "client_secret": "b"}',
}


SCHEMAS = {
    "AVRO": golden("AVRO")[0],
    "JSON": golden("JSON")[0],
    "INT32": registered("INT32"),
    "KEY_VALUE": golden("KEY_VALUE SEPARATED")[0],
}


def settings(kind: str) -> WriteSettings:
    schema = SCHEMAS[kind]
    introduction = ProducerIdentity("flights", {"eos.sink": "flights"})
    return WriteSettings(TOPIC, "murmur3", "none", 1, schema=schema, introduction=introduction)


def sent_to_tasks() -> Iterator[tuple[str, Any]]:
    """Yield all that Spark takes from the driver to tasks, or back, by a name."""
    streaming = OPTIONS | {"subscription": "s", "maxEntriesPerTrigger": "3"}
    for kind, schema in SCHEMAS.items():
        values = ValueSchema(schema, described(schema))
        yield f"stream of {kind}", PulsarStreamReader(parse_options(streaming, "stream"), ROWS, values)
    yield "table", PulsarReader(parse_options(OPTIONS, "batch"), ROWS)
    segment = Segment(4, 5, 60, False, parse_printed(4, CLOSED), "uuid")
    path = SegmentPath(Segments((segment,), EntryId(4, 5)), EntryId(4, 5))
    yield "range", RangePartition(Range(TOPIC, Position(EntryId(4, 1)), EntryId(4, 5)), path, "0" * 32)
    client = Client(Cluster("pulsar://h:1", Credentials("token", Provider("f", b""))))
    yield "task of a sink", writing_task(client, settings("AVRO"), "carrier")
    columns = columns_of(ROWS, "raw", topic=TOPIC, named={})
    yield "task of a save", BatchWriter(client, settings("INT32"), columns)
    yield "report of a save", TaskDone("a problem")


def pickled_classes(value: Any) -> Iterator[type[Any]]:
    """Yield the classes of this library by which a pickle is read again."""
    pickled = cloudpickle.dumps(value, protocol=2)  # type: ignore[no-untyped-call]  # has each name whole
    for code, named, _ in pickletools.genops(pickled):
        if code.name == "GLOBAL" and str(named).startswith("eos."):
            module, name = str(named).split(" ")
            found = getattr(import_module(module), name)
            if isinstance(found, type):
                yield found


@pytest.mark.parametrize(("name", "value"), [pytest.param(*one, id=one[0]) for one in sent_to_tasks()])
def test_each_data_class_that_travels_names_its_fields(name: str, value: Any) -> None:
    data = filter(dataclasses.is_dataclass, pickled_classes(value))
    by_place = {kind for kind in data if hasattr(kind, "__setstate__")}  # frozen, with slots
    assert by_place, f"{name} has none"
    assert {kind for kind in by_place if not issubclass(kind, PickledByName)} == set()


def in_another_version(options: SourceOptions, values: dict[str, Any]) -> Any:
    """Return options as another version gave them, whose class has these fields."""
    restored, (kind, _) = options.__reduce__()
    return restored(kind, values)


def test_values_come_back_under_their_names_and_not_by_their_places() -> None:
    options = parse_options(OPTIONS | {"subscription": "s", "resetSubscription": "true"}, "stream")
    assert pickle.loads(pickle.dumps(options)) == options
    values = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    assert in_another_version(options, dict(reversed(values.items()))) == options


@pytest.mark.parametrize("change", ["one more", "one less", "renamed"])
def test_a_version_with_other_fields_is_refused_by_their_names(change: str) -> None:
    options = parse_options(OPTIONS, "batch")
    values = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    differs = []
    if change != "one more":
        del values["prefix"]
        differs.append("prefix")
    if change != "one less":
        values["prefixes"] = None
        differs.append("prefixes")
    with pytest.raises(InvalidInput, match=f"different versions of .* SourceOptions differs in {', '.join(differs)}"):
        in_another_version(options, values)
