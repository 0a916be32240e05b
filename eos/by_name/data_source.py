"""The data source that Spark finds by the name "pulsar"."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import DataType, StructType

from eos.errors import InvalidInput
from eos.option_names import CATALOG_QUESTION, VALUE_FORMAT, spelling_key
from eos.source.batch import FilteredReader, PulsarReader
from eos.source.brokers import PulsarBrokers
from eos.source.columns import ALL, all_with, checked
from eos.source.options import SourceOptions, kind_of, parse_options
from eos.source.value_schema import ValueSchema, of_type
from eos.spark.capabilities import Capability, require
from eos.spark.pyspark_api import PUSHES_FILTERS, is_worker

NAME = "pulsar"

_BATCH_WAYS = (
    'df.write.format("pulsar") and INSERT INTO are refused without a guarantee that they can keep. Spark does not tell '
    "a Python data source how often it has run a task, so rows could be written twice. Nothing is written. Use "
    "eos.write(df, service_url, topic=..., job_id=...), which writes a DataFrame as one transaction, once for each job "
    "id. Or, where a row may be there twice after a failure, ask for that: "
    '.option("guarantee", "at-least-once").mode("append"). Of a table made by CREATE TABLE Spark does not hand over '
    "the options: insert into a temporary view of USING pulsar OPTIONS (...), or by INSERT INTO ... WITH (...)."
)
_STREAM_WAYS = (
    'df.writeStream.format("pulsar") is refused without a guarantee that it can keep. Spark tells a Python data source '
    "neither the input of a micro-batch nor how often it has run a task, so rows could be lost or written twice. "
    "Nothing is written. Use df.writeStream.foreachBatch(eos.sink(service_url, name=..., topic=...)). Or, where a row "
    'may be there twice after a failure, ask for that: .option("guarantee", "at-least-once").'
)

_OLD_SPARK = (
    "Without it a row could be in none of the partitions that were written. Nothing is written. Use "
    "foreachBatch(eos.sink(...)) or eos.write(...), which need no such check."
)

_OLD_STREAM = (
    "Without it a query that starts again could skip what it has not read. Nothing is read. "
    'spark.read.format("pulsar") reads topics on this Spark too.'
)


class PulsarDataSource(DataSource):
    """`format("pulsar")`: docs/reference/source.md has the options of reading, docs/how-to/by-name.md of writing."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return NAME

    _shared: ValueSchema | None = None
    """The schema that `schema` found. Spark pickles it for the readers, so both have the same version."""

    def schema(self) -> StructType:
        """Return all columns: what a read without a schema gives. Raises InvalidInput.

        A question of the SQL catalog is answered here too: `eos.sql.answers` says why.
        """
        if CATALOG_QUESTION in map(str.lower, self.options):
            from eos.sql.answers import answer  # with the admin API, which a read need not load

            return answer(self._reading(), self._must_ask)
        if spelling_key(VALUE_FORMAT) not in map(spelling_key, self.options):
            return ALL
        shared = self._value_schema(parse_options(self._reading(), kind_of(self.options)))
        return ALL if shared is None else all_with(shared.spark_type)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch read. Raises InvalidInput."""
        options = parse_options(self._reading(), "batch")
        made = FilteredReader if is_worker(PUSHES_FILTERS) else PulsarReader
        return made(options, schema, self._checked(schema, options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a streaming query. Raises InvalidInput."""
        options = parse_options(self._reading(), "stream")
        require(Capability.TELLS_START, 'spark.readStream.format("pulsar")', _OLD_STREAM)
        from eos.source.stream import PulsarStreamReader  # its base classes came with that capability

        return PulsarStreamReader(options, schema, self._checked(schema, options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of `df.write.format("pulsar")` and INSERT INTO, where at-least-once is asked for.

        Raises InvalidInput.
        """
        self._must_ask(_BATCH_WAYS)
        if overwrite:
            raise InvalidInput(
                "mode('overwrite') and INSERT OVERWRITE are refused. Nothing takes messages back out of a topic. "
                "Nothing is written. Use mode('append') or INSERT INTO."
            )
        from eos.by_name.options import parse_write_options  # a reader needs nothing of all this
        from eos.by_name.writers import batch_writer

        return batch_writer(parse_write_options(self.options, 'df.write.format("pulsar")'), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return the writer of `df.writeStream.format("pulsar")`, where at-least-once is asked for.

        Raises InvalidInput.
        """
        self._must_ask(_STREAM_WAYS)
        if overwrite:
            raise InvalidInput(
                "outputMode('complete') is refused: each micro-batch would replace all rows of the one before, and "
                "nothing takes messages back out of a topic. Nothing is written. Use outputMode('append'), or "
                "foreachBatch(eos.sink(...)), which writes each micro-batch as it comes."
            )
        from eos.by_name.options import parse_write_options
        from eos.by_name.writers import stream_writer

        return stream_writer(parse_write_options(self.options, 'df.writeStream.format("pulsar")'), schema)

    @property
    def _guarantee(self) -> str | None:
        return {name.lower(): value for name, value in self.options.items()}.get("guarantee")

    def _must_ask(self, ways: str) -> None:
        """Refuse to write unless a guarantee is asked for that can be kept here: docs/why/no-writer-by-name.md."""
        if self._guarantee in (None, "exactly-once"):
            raise InvalidInput(ways)
        require(Capability.COMPARES_SHUFFLES, f'guarantee="{self._guarantee}"', _OLD_SPARK)

    def _reading(self) -> Mapping[str, str]:
        """Return the options without those that only the writer of the same table knows."""
        if self._guarantee is None:
            return self.options
        from eos.by_name.options import for_reading

        return for_reading(self.options)

    def _checked(self, schema: StructType, options: SourceOptions) -> ValueSchema | None:
        declared = schema["value"].dataType if "value" in schema.fieldNames() else None
        shared = None if declared is None else self._value_schema(options, declared)
        typed = None if shared is None else shared.spark_type
        checked(schema, typed, keeps_damaged=options.on_damaged == "keep")
        return shared

    def _value_schema(self, options: SourceOptions, declared: DataType | None = None) -> ValueSchema | None:
        if options.typed and self._shared is None:
            choose = None if declared is None else partial(of_type, declared)
            self._shared = PulsarBrokers(options).value_schema(choose)
        return self._shared


def named(name: str) -> type[PulsarDataSource]:
    """Return the data source as a class that Spark registers by this name."""
    return type(PulsarDataSource.__name__, (PulsarDataSource,), {"name": classmethod(lambda cls: name)})
