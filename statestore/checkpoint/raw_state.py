"""State as it is stored, through Spark's own state data source: to see that it is the same after it was rewritten.

Since Spark 4.2 that source gives all column families of a RocksDB at once, in bytes, with what each key is partitioned
by. Spark's own offline repartitioning (`OfflineStateRepartitionRunner`) rests on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eos.spark.capabilities import READ_STATE, Capability, require
from statestore.checkpoint import logs
from statestore.checkpoint.files import Files
from statestore.checkpoint.logs import OffsetsLogEntry
from statestore.checkpoint.operators import PARTITIONS, Operator, operator_ids, read_operator
from statestore.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB, HDFS_BACKED = "RocksDBStateStoreProvider", "HDFSBackedStateStoreProvider"
"""The last parts of the class names of Spark's providers."""
FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
"""The setting of a session by which Spark looks for the files of one checkpoint format or the other."""
_QUOTED = frozenset(' %#?[]{}<>^`|"\\')
_ALL_FAMILIES = "_readAllColumnFamilies"
# By default a moment is written without its microseconds.
_JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_REPLACED = "\N{REPLACEMENT CHARACTER}"
"""What `to_json` writes for each byte of a text that is not UTF-8, whatever it is."""


@dataclass(frozen=True, slots=True)
class BatchState:
    """The state that a query keeps after a batch.

    Attributes:
        batch: a committed one.
        offsets: where it begins, with the settings that the query keeps for its life.
        format: of the checkpoint, 1 or 2.
        operators: with a folder in it.
    """

    batch: int
    offsets: OffsetsLogEntry
    format: int
    operators: tuple[Operator, ...]

    @property
    def provider(self) -> str:
        """The last part of the class name of the state store provider; "" if it isn't known."""
        return self.offsets.conf.get(PROVIDER, "").rpartition(".")[2]

    @property
    def partitions(self) -> int | None:
        """Of the state of each operator; None if it isn't known."""
        said = self.offsets.conf.get(PARTITIONS, "")
        return int(said) if said.isdecimal() else None

    @property
    def stores(self) -> Iterator[tuple[Operator, str]]:
        """Each operator with the name of each of its stores."""
        return ((operator, store) for operator in self.operators for store in operator.stores)


def read_kept(files: Files, batch: int) -> BatchState:
    """Return what the logs and the operators' metadata tell of the state after a committed batch.

    Raises:
        NotFound: a log has no such batch.
        Damaged: a log or metadata can't be read.
    """
    operators = tuple(read_operator(files, number, batch) for number in operator_ids(files))
    return BatchState(batch, logs.read_offsets(files, batch), logs.read_commit(files, batch).format, operators)


def session_for(spark: SparkSession, kept: BatchState, options: Mapping[str, object] | None = None) -> SparkSession:
    """Return a session like this one that reads and writes the checkpoint's format.

    Args:
        options: Hadoop options `fs.bk.…`.
    """
    return session_of(spark, kept.format, options)


def session_of(
    spark: SparkSession, checkpoint_format: int, options: Mapping[str, object] | None = None
) -> SparkSession:
    """Return a session with all settings of this one that reads and writes a checkpoint's format. Args: as above."""
    own: Any = spark
    session: SparkSession = type(spark)(spark.sparkContext, own._jsparkSession.cloneSession())
    for name, value in {**(options or {}), FORMAT: checkpoint_format}.items():
        session.conf.set(name, str(value))
    return session


def check_address(uri: str, also: str = "") -> None:
    """Refuse a checkpoint that Spark's state data source does not find, though a query runs on it.

    The source looks for the address as a URI quotes it: at "a%20b" for "a b" (StateSourceOptions).

    Args:
        also: more characters to refuse.

    Raises:
        InvalidInput: it has a character that a URI quotes.
    """
    if odd := sorted({*uri} & {*_QUOTED, *also}):
        raise InvalidInput(
            f"{uri} has {', '.join(map(repr, odd))} in it. Spark does not find state at such an address. Name one "
            "without it: statestore cp copies a checkpoint"
        )


def reader_of(session: SparkSession, batch: int, operator: int) -> DataFrameReader:
    """Return Spark's reader of an operator's state after a batch."""
    require(Capability.READS_STATE, *READ_STATE)
    return session.read.format("statestore").option("batchId", batch).option("operatorId", operator)


def exact_json(*names: str) -> Column:
    """Return columns as JSON that is the same only if they are the same.

    Where a text may not be UTF-8, the JSON has a field more, "not_utf8", with a hash of all bytes.
    """
    from pyspark.sql import functions as F

    row = F.struct(*names)
    text = F.to_json(row, _JSON_OPTIONS)
    # A cast keeps the bytes of a text, and takes maps, which a hash does not.
    mark = F.concat(F.lit(',"not_utf8":"'), F.hex(F.xxhash64(row.cast("string"))), F.lit('"}'))
    marked = F.concat(text.substr(F.lit(1), F.length(text) - 1), mark)
    return F.when(F.instr(text, _REPLACED) > 0, marked).otherwise(text)


def raw_rows(session: SparkSession, uri: str, kept: BatchState, batch: int, operator: int, store: str) -> DataFrame:
    """Return the rows of a store after a batch.

    Args:
        session: of `session_for`; of a RocksDB's state, of a Spark with `Capability.REWRITES_STATE`.
        kept: of any batch of the checkpoint.

    Returns:
        partition_key: a struct of what the key is partitioned by; key_bytes; value_bytes; column_family_name; and
        partition: the number of the partition that it lies in. A list has a row for each of its values. Of
        HDFSBackedStateStoreProvider keys and values are JSON, in place of bytes.
    """
    from pyspark.sql import functions as F

    reader = reader_of(session, batch, operator).option("storeName", store)
    if kept.provider == HDFS_BACKED:
        return reader.load(uri).select(
            F.col("key").alias("partition_key"),
            exact_json("key").alias("key_bytes"),
            exact_json("value").alias("value_bytes"),
            F.lit("default").alias("column_family_name"),
            F.col("partition_id").alias("partition"),
        )
    rows = reader.option(_ALL_FAMILIES, "true").load(uri)
    # The source has one task for each partition, in their order (StateScan.planInputPartitions).
    return rows.withColumn("partition", F.spark_partition_id())


def key_schema(session: SparkSession, uri: str, batch: int, operator: int) -> StructType:
    """Return the schema of the keys of an operator's default store."""
    from pyspark.sql.types import StructType

    key = reader_of(session, batch, operator).load(uri).schema["key"].dataType
    assert isinstance(key, StructType)
    return key
