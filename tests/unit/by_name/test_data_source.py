"""What Spark asks of the data source, and what it sends from process to process."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType
from pyspark.sql.worker.plan_data_source_read import records_to_arrow_batches

from eos.by_name.data_source import PulsarDataSource
from eos.errors import InvalidInput
from eos.source.brokers import PulsarBrokers
from eos.source.columns import ALL, SourceColumns
from eos.source.options import SourceOptions
from eos.source.value_schema import Choose, TypedValues, ValueSchema, shared_schema
from eos.spark import capabilities
from eos.spark.capabilities import SparkLacks
from tests.unit.schema.registered import TOPIC, field, golden, record, registered
from tests.unit.source.test_value_schema import entry

GIVEN = {"service.url": "pulsar://nowhere", "topic": "t", "valueformat": "schema"}
FLIGHT = record(field("delay", "int"), field("legs", {"type": "map", "values": {"type": "array", "items": "int"}}))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[SourceOptions]:
    """Let the registry have a schema of flights, and note with which options it is asked."""
    calls: list[SourceOptions] = []

    def value_schema(self: PulsarBrokers, choose: Choose | None = None) -> ValueSchema:
        calls.append(self._options)
        return shared_schema({TOPIC: registered("JSON", FLIGHT)})

    monkeypatch.setattr(PulsarBrokers, "value_schema", value_schema)
    return calls


def sent(value: Any) -> Any:
    """Send something to another process and back."""
    return pickle.loads(cloudpickle.dumps(value))  # type: ignore[no-untyped-call]


def test_without_the_option_no_broker_is_asked_and_the_value_is_bytes(asked: list[SourceOptions]) -> None:
    source = PulsarDataSource(GIVEN | {"valueformat": "bytes"})
    assert source.schema() == ALL
    source.reader(StructType([StructField("value", BinaryType())]))
    assert asked == []


@pytest.mark.parametrize("subscription", [None, "job"])
def test_the_registry_is_asked_once_for_the_schema_and_the_reader(
    asked: list[SourceOptions], subscription: str | None
) -> None:
    source = PulsarDataSource(GIVEN if subscription is None else GIVEN | {"subscription": subscription})
    schema = source.schema()
    assert schema["value"].dataType.simpleString() == "struct<delay:int,legs:map<string,array<int>>>"
    there = sent(source)
    reader = there.reader(schema) if subscription is None else there.streamReader(schema)
    assert sent(reader)._values.description == shared_schema({TOPIC: registered("JSON", FLIGHT)}).description
    assert [options.subscription for options in asked] == [subscription or ""]


def test_a_declared_type_is_compared_with_the_registry(asked: list[SourceOptions]) -> None:
    with pytest.raises(InvalidInput, match="'value' can't be string: by the registered schema it is struct<delay:int,"):
        PulsarDataSource(GIVEN).reader(StructType([StructField("value", StringType())]))
    assert len(asked) == 1


def test_a_query_without_the_value_needs_no_schema(asked: list[SourceOptions]) -> None:
    source = PulsarDataSource(GIVEN)
    reader = source.reader(StructType([StructField("__partition", IntegerType())]))
    assert reader._values is None  # type: ignore[attr-defined]
    assert asked == []


@pytest.mark.parametrize("asked_for", ["JSON", "AVRO", "TICKET", "KEY_VALUE INLINE"])
def test_spark_takes_the_record_batches_of_typed_values(asked_for: str) -> None:
    schema, value = golden(asked_for)
    shared = shared_schema({TOPIC: schema})
    declared = StructType([StructField("value", shared.spark_type), StructField("__key", StringType())])
    columns = SourceColumns(declared, TOPIC, TypedValues(shared, TOPIC, lambda topic, version: None))
    batch = columns.batch([entry(value), entry(b"", 1, null_value=True)])
    source = PulsarDataSource(GIVEN)
    taken = list(records_to_arrow_batches(iter([batch]), 10_000, declared, source))
    rows = pa.Table.from_batches(taken).column("value").to_pylist()
    assert rows[0] is not None
    assert rows[1] is None


def test_neither_a_planner_without_an_admin_url_nor_a_writer_loads_an_http_client() -> None:
    """It and what comes with it were a third of what each planner and worker loads before it begins."""
    code = "import sys, eos.by_name.data_source, eos.by_name.writers; print('httpx' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


@pytest.mark.parametrize("version", ["4.0.5", "4.1.4"])
@pytest.mark.parametrize("call", ["writer", "streamWriter"])
def test_there_is_no_writer_by_name_where_spark_does_not_compare_shuffles(
    monkeypatch: pytest.MonkeyPatch, call: str, version: str
) -> None:
    monkeypatch.setattr(capabilities, "installed", lambda: version)
    source = PulsarDataSource({"service.url": "pulsar://nowhere", "topic": "t", "guarantee": "at-least-once"})
    with pytest.raises(SparkLacks, match=rf"Spark {version} lacks it\. It came with 4\.2\. .*foreachBatch\(eos\.sink"):
        getattr(source, call)(StructType([StructField("value", StringType())]), False)


@pytest.mark.parametrize("version", ["4.0.5", "4.1.4"])
def test_no_stream_is_read_where_spark_does_not_say_where_a_query_stands(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr(capabilities, "installed", lambda: version)
    source = PulsarDataSource({"service.url": "pulsar://nowhere", "topic": "t", "subscription": "s"})
    with pytest.raises(SparkLacks, match=rf"Spark {version} lacks it\. It came with 4\.2\. .*Nothing is read"):
        source.streamReader(StructType([StructField("value", BinaryType())]))


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("asked_for", [{}, {"Guarantee": "exactly-once"}])
def test_there_is_no_writer_by_name_without_a_guarantee_it_can_keep(overwrite: bool, asked_for: dict[str, str]) -> None:
    """Spark can't prove to it that each task ran once: docs/why/no-writer-by-name.md."""
    source = PulsarDataSource(GIVEN | asked_for)
    ask = re.escape('ask for that: .option("guarantee", "at-least-once")')
    with pytest.raises(InvalidInput, match=rf"rows could be written twice.*Use eos\.write\(df, .*job_id=.*{ask}"):
        source.writer(ALL, overwrite)
    with pytest.raises(InvalidInput, match=rf"lost or written twice.*Use df.*foreachBatch\(eos\.sink\(.*{ask}"):
        source.streamWriter(ALL, overwrite)


def test_nothing_is_overwritten() -> None:
    source = PulsarDataSource({"service.url": "pulsar://nowhere", "topic": "t", "guarantee": "at-least-once"})
    with pytest.raises(InvalidInput, match=r"mode\('overwrite'\) and INSERT OVERWRITE are refused"):
        source.writer(ALL, overwrite=True)
    with pytest.raises(InvalidInput, match=r"outputMode\('complete'\) is refused"):
        source.streamWriter(ALL, overwrite=True)


def test_a_table_that_is_written_too_can_be_read(asked: list[SourceOptions]) -> None:
    written = {"guarantee": "at-least-once", "compression": "zstd", "value_format": "schema"}
    there = PulsarDataSource(GIVEN | written)
    assert there.schema()["value"].dataType.simpleString().startswith("struct<delay:int")
    there.reader(there.schema())
    with pytest.raises(InvalidInput, match="has no option 'compression'"):
        PulsarDataSource(GIVEN | {"compression": "zstd"}).reader(ALL)
