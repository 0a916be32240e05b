"""The data source that Spark finds by the name "pulsar"."""

from __future__ import annotations

from typing import NoReturn

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from eos.errors import InvalidInput
from eos.source.batch import FilteredReader, PulsarReader
from eos.source.brokers import PulsarBrokers
from eos.source.columns import ALL, all_with, checked
from eos.source.filters import are_asked_for
from eos.source.options import SourceOptions, kind_of, parse_options
from eos.source.stream import PulsarStreamReader
from eos.source.typed import ValueSchema

NAME = "pulsar"


class PulsarDataSource(DataSource):
    """`spark.readStream.format("pulsar")` and `spark.read.format("pulsar")`: see docs/source.md for the options."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return NAME

    _shared: ValueSchema | None = None
    """The schema that `schema` found. Spark pickles it for the readers, so both have the same version."""

    def schema(self) -> StructType:
        """Return all columns: what a read without a schema gives. Raises InvalidInput."""
        if "valueformat" not in {name.lower() for name in self.options}:
            return ALL
        shared = self._value_schema(parse_options(self.options, kind_of(self.options)))
        return ALL if shared is None else all_with(shared.spark_type)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch read. Raises InvalidInput."""
        options = parse_options(self.options, "batch")
        made = FilteredReader if are_asked_for() else PulsarReader
        return made(options, schema, self._checked(schema, options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a streaming query. Raises InvalidInput."""
        options = parse_options(self.options, "stream")
        return PulsarStreamReader(options, schema, self._checked(schema, options))

    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:
        """Refuse `df.write.format("pulsar")` and INSERT INTO: docs/why/no-writer-by-name.md. Raises InvalidInput."""
        raise InvalidInput(
            'df.write.format("pulsar") and INSERT INTO are refused: Spark does not tell a Python data source how often '
            "it has run a task, so rows could be written twice. Nothing is written. Use eos.write(df, service_url, "
            "topic=..., job_id=...), which writes a DataFrame as one transaction, once for each job id."
        )

    def streamWriter(self, schema: StructType, overwrite: bool) -> NoReturn:
        """Refuse `df.writeStream.format("pulsar")`, for the reasons told there. Raises InvalidInput."""
        raise InvalidInput(
            'df.writeStream.format("pulsar") is refused: Spark tells a Python data source neither the input of a '
            "micro-batch nor how often it has run a task, so rows could be lost or written twice. Nothing is written. "
            "Use df.writeStream.foreachBatch(eos.sink(service_url, name=..., topic=...))."
        )

    def _checked(self, schema: StructType, options: SourceOptions) -> ValueSchema | None:
        shared = self._value_schema(options) if "value" in schema.fieldNames() else None
        checked(schema, None if shared is None else shared.spark_type)
        return shared

    def _value_schema(self, options: SourceOptions) -> ValueSchema | None:
        if options.typed and self._shared is None:
            self._shared = PulsarBrokers(options).value_schema()
        return self._shared
