"""The data source that Spark finds by the name "pulsar"."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from eos.source.batch import FilteredReader, PulsarReader
from eos.source.columns import ALL, checked
from eos.source.filters import are_asked_for
from eos.source.options import parse_options
from eos.source.stream import PulsarStreamReader

NAME = "pulsar"


class PulsarDataSource(DataSource):
    """`spark.readStream.format("pulsar")` and `spark.read.format("pulsar")`: see docs/source.md for the options."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return NAME

    def schema(self) -> StructType:
        """Return all columns: what a read without a schema gives."""
        return ALL

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch read. Raises InvalidInput."""
        checked(schema)
        made = FilteredReader if are_asked_for() else PulsarReader
        return made(parse_options(self.options, "batch"), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a streaming query. Raises InvalidInput."""
        checked(schema)
        return PulsarStreamReader(parse_options(self.options, "stream"), schema)
