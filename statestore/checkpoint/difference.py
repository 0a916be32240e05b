"""The difference between the state in two checkpoints, row by row, through Spark's own state data source.

Keys and values are compared as JSON, as that source reads them: in whatever number of partitions, by whatever provider
and in whatever format they are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eos.json_reader import read_json
from statestore.checkpoint.files import Files, HadoopFiles
from statestore.checkpoint.logs import check_whole
from statestore.checkpoint.needs import committed_batch
from statestore.checkpoint.operators import DEFAULT_STORE, Operator
from statestore.checkpoint.raw_state import BatchState, check_address, exact_json, read_kept, reader_of, session_for
from statestore.errors import Damaged, InvalidInput, StateStoreError, Unavailable
from statestore.hadoop.file_systems import Hadoop

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ONLY_IN_FIRST, ONLY_IN_SECOND, CHANGED = "only in A", "only in B", "changed"
_COLUMNS = "operator int, operator_name string, store string, key string, change string, a string, b string"
_PLACE = "partition_id"
_JOIN = "symmetricHashJoin"
_JOIN_VERSION = "spark.sql.streaming.join.stateFormatVersion"
_FAMILIES_NAMED = "3"  # the version whose column families have the names of the stores of versions 1 and 2
_JOIN_FAMILIES = ("keyToNumValues", "keyWithIndexToValue")


@dataclass(frozen=True, slots=True)
class StatePart:
    """A part of a query's state that is read by itself.

    Attributes:
        operator, operator_name: its operator.
        store: the store, or of transformWithState the name of the variable.
        reading: options of Spark's state data source.
        many: a key may have several values: they are compared together, in order.
    """

    operator: int
    operator_name: str
    store: str
    reading: tuple[tuple[str, str], ...]
    many: bool = False

    @property
    def name(self) -> tuple[int, str]:
        """By what it is found in another checkpoint."""
        return self.operator, self.store


@contextmanager
def explained(side: Side, part: StatePart) -> Iterator[None]:
    """Say what could not be read, where Spark's state data source can't.

    Raises:
        Unavailable: with what Spark says.
    """
    from eos.spark.query import reason

    try:
        yield
    except StateStoreError:
        raise
    except Exception as error:
        raise Unavailable(
            f"The state of operator {part.operator} ({part.operator_name}), {part.store}, after batch "
            f"{side.kept.batch} of {side.uri} can't be read by Spark: {reason(error)}"
        ) from error


@dataclass(frozen=True, slots=True)
class Side:
    """One of two checkpoints.

    Attributes:
        uri: its address.
        kept: the state that it keeps after the batch that is compared.
        parts: of that state.
    """

    uri: str
    kept: BatchState
    parts: tuple[StatePart, ...]


def state_difference(
    a: str,
    b: str,
    *,
    spark: SparkSession,
    batch_a: int | None = None,
    batch_b: int | None = None,
    options: Mapping[str, object] | None = None,
) -> DataFrame:
    """Compare the state in two checkpoints.

    Args:
        a, b: their addresses, on any file system that Hadoop knows. Their queries may run.
        spark: a session that `configure_spark` made.
        batch_a, batch_b: a committed batch of each. None: the newest.
        options: Hadoop options `fs.bk.…`.

    Returns:
        A row for each key that differs: operator, operator_name, store (of transformWithState the variable), key,
        change ("only in A", "only in B", "changed"), and a and b, the values there or null. Keys and values are JSON.
        Without rows the state is the same. Spark reads it when the DataFrame is used.

    Raises:
        NotFound: there is no checkpoint.
        InvalidInput: there is no such batch, or no state, or a checkpoint is incomplete.
        Damaged: logs or metadata can't be read.
        Unavailable: Spark's state data source can't read the state.
    """
    hadoop = Hadoop.of(spark, options)
    first, second = _side(hadoop, a, batch_a), _side(hadoop, b, batch_b)
    before, after = ({part.name: part for part in side.parts} for side in (first, second))
    found = spark.createDataFrame([], _COLUMNS)
    for name in sorted({*before, *after}):
        part = before.get(name) or after[name]
        old = _rows(spark, first, before.get(name), options)
        new = _rows(spark, second, after.get(name), options)
        found = found.unionByName(_compared(part, old, new))
    return found


def _side(hadoop: Hadoop, uri: str, batch: int | None) -> Side:
    files = HadoopFiles(hadoop, uri)
    check_whole(files, uri)
    check_address(uri)
    kept = read_kept(files, committed_batch(files, uri, batch, "there is no state to compare"))
    if not kept.operators:
        raise InvalidInput(f"The query of {uri} keeps no state. There is nothing to compare")
    version = kept.offsets.conf.get(_JOIN_VERSION, "")
    parts = tuple(part for operator in kept.operators for part in parts_of(files, operator, version))
    return Side(uri, kept, parts)


def _join_parts(operator: Operator, version: str) -> Iterator[StatePart]:
    """Of a stream-stream join that keeps all in one store: what earlier versions keep in four, or the two sides.

    Of a side, Spark gives all rows of one key under that key.
    """
    for side in ("left", "right"):
        for what in _JOIN_FAMILIES if version == _FAMILIES_NAMED else ():
            yield StatePart(operator.id, operator.name, f"{side}-{what}", (("storeName", f"{side}-{what}"),))
        if version != _FAMILIES_NAMED:
            yield StatePart(operator.id, operator.name, side, (("joinSide", side),), many=True)


def parts_of(files: Files, operator: Operator, join_version: str) -> Iterator[StatePart]:
    """Yield the parts of an operator's state that Spark's state data source reads by themselves.

    Args:
        join_version: the setting of the query's joins, which stays for the query's life.
    """
    if operator.name == _JOIN and operator.stores == (DEFAULT_STORE,):
        yield from _join_parts(operator, join_version)
        return
    variables = _variables(files, operator) if operator.name.startswith("transformWithState") else ()
    for name, kind in variables:
        reading = {"readRegisteredTimers": "true"} if kind == "TimerState" else {"stateVarName": name}
        # A list as a whole: its order counts.
        reading |= {"flattenCollectionTypes": "false"} if kind == "ListState" else {}
        yield StatePart(operator.id, operator.name, "timers" if kind == "TimerState" else name, tuple(reading.items()))
    for store in operator.stores if not variables else ():
        yield StatePart(operator.id, operator.name, store, (("storeName", store),))


def _variables(files: Files, operator: Operator) -> tuple[tuple[str, str], ...]:
    """The variables of a transformWithState, with their kinds."""
    said = read_json(files.read(operator.metadata).partition(b"\n")[2])
    try:
        properties = read_json(said.get("operatorPropertiesJson") or "{}")
        return tuple(
            (str(one["stateName"]), str(one["stateVariableType"])) for one in properties.get("stateVariables") or ()
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(f"{operator.metadata} lacks what Spark writes there of the state's variables: {error}") from error


def _rows(spark: SparkSession, side: Side, part: StatePart | None, options: Mapping[str, object] | None) -> DataFrame:
    """The rows of a part as two texts: key and value."""
    from pyspark.sql import functions as F

    if part is None:
        return spark.createDataFrame([], "key string, value string")
    session = session_for(spark, side.kept, options)
    reader = reader_of(session, side.kept.batch, part.operator)
    for name, value in part.reading:
        reader = reader.option(name, value)
    with explained(side, part):
        rows = reader.load(side.uri)
    keys = [name for name in rows.columns if name in _KEYS]
    values = [name for name in rows.columns if name not in {*_KEYS, _PLACE}]

    def text(names: list[str]) -> Column:
        return exact_json(*names) if names else F.lit("{}")

    if part.many:
        rows = rows.select(*(_as_declared(rows, name) for name in (*keys, *values)))
    found = rows.select(text(keys).alias("key"), text(values).alias("value"))
    if not part.many:
        return found
    together = F.array_join(F.array_sort(F.collect_list("value")), ", ")
    return found.groupBy("key").agg(F.concat(F.lit("["), together, F.lit("]")).alias("value"))


def _as_declared(rows: DataFrame, name: str) -> Column:
    """A struct with the fields that its schema has.

    Of joins in state format 4, Spark 4.3 gives a value with one field more, whether it was matched, and then fails
    where it writes the value as JSON (StreamStreamJoinStatePartitionReader).
    """
    from pyspark.sql import functions as F

    fields: Any = rows.schema[name].dataType
    return F.struct(*(F.col(name)[field].alias(field) for field in fields.names)).alias(name)


_KEYS = ("key", "user_map_key", "expiration_timestamp_ms")


def _compared(part: StatePart, old: DataFrame, new: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    both = old.withColumnRenamed("value", "a").join(new.withColumnRenamed("value", "b"), "key", "full_outer")
    change = (
        F.when(F.col("b").isNull(), ONLY_IN_FIRST)
        .when(F.col("a").isNull(), ONLY_IN_SECOND)
        .when(F.col("a") != F.col("b"), CHANGED)
    )
    told: Any = [F.lit(part.operator).alias("operator"), F.lit(part.operator_name).alias("operator_name")]
    told += [F.lit(part.store).alias("store"), "key", change.alias("change"), "a", "b"]
    return both.select(*told).where("change IS NOT NULL")
