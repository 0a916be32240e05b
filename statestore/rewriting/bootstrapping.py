"""Bootstrapping: a new checkpoint with the state that a query would have, had it read a history first.

State is what a query's own operators have made of rows, in encodings that only they know. So the history is given to
them: the user's transformation runs over it as a stream of its own that ends. Then the place of that stream in the
checkpoint is emptied, and the query begins its own source where that source begins.

1. BEGIN      the target is made, with an empty `metadata`.
2. RUN        the history as a source of files, with a checkpoint of its own, both in a folder `history` of the target;
              output goes nowhere.
3. COPY       a cut of that checkpoint to the target.
4. EMPTY      the offsets of the source become "-", Spark's word for a source that nothing was read of yet; its log is
              removed. Watermark, batch ids and the number of partitions stay. The folder `history` is removed.
5. FINISH     `metadata` is written: it is a checkpoint.

A crash before the last step leaves a folder on which Spark starts nothing; an error removes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from statestore.checkpoint.cut import Cut
from statestore.checkpoint.files import HadoopFiles, join
from statestore.checkpoint.logs import OFFSETS, SOURCES, batch_ids, parse_offsets, read_commit
from statestore.checkpoint.needs import committed
from statestore.checkpoint.operators import operator_ids, read_operator
from statestore.checkpoint.place import HISTORY, NewCheckpoint
from statestore.checkpoint.raw_state import check_address
from statestore.checkpoint.sources import numbers_of
from statestore.checkpoint.transfer import copy_into
from statestore.errors import InvalidInput, StateStoreError, Unavailable
from statestore.hadoop.file_systems import Hadoop

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NOTHING_READ = "-"
_JOIN = "symmetricHashJoin"

OutputMode = Literal["append", "update", "complete"]


@dataclass(frozen=True, slots=True)
class Bootstrapped:
    """A checkpoint whose state comes from a history.

    Attributes:
        checkpoint: its address.
        query: the id that the query has.
        batch_id: the last batch of the history. The query goes on with the one after it.
        watermark_ms: the event-time watermark that the query goes on with, or 0 if it has none.
        operators: Spark's names for them.
    """

    checkpoint: str
    query: str
    batch_id: int
    watermark_ms: int
    operators: tuple[str, ...]


def bootstrap(
    transform: Callable[[DataFrame], DataFrame],
    history: DataFrame,
    target: str,
    *,
    output_mode: OutputMode = "update",
    options: Mapping[str, object] | None = None,
) -> Bootstrapped:
    """Make a new checkpoint with the state of a query that has read a history.

    Start the query with the new checkpoint as its location. It goes on as if the history had been its first input, and
    begins to read its source where the source's own options say. Let them say the place where the history ends.

    Args:
        transform: the query's own function from the input to the output, with its watermark and all stateful operators.
            It reads its input once.
        history: rows with the columns and types of the query's source. Of any size.
        target: an address where nothing is, on any file system that Hadoop knows and Spark's executors reach.
        output_mode: the query's. The output of the history goes nowhere.
        options: Hadoop options `fs.bk.…`.

    Raises:
        InvalidInput: there is something at the target, the transformation does not keep state from exactly one source,
            or Spark refuses it. Nothing is left.
        Unavailable: the history could not be run, or the file system does not answer. Nothing is left at the target.
    """
    spark = history.sparkSession
    if history.isStreaming:
        raise InvalidInput("The history is a stream. Give a DataFrame that ends, such as spark.read… of the same data")
    hadoop = Hadoop.of(spark, options)
    where = hadoop.qualified(target)
    check_address(where, also="*")  # Spark reads the history below it, by a pattern
    place = NewCheckpoint(hadoop, where)
    rows, checkpoint = place.at(f"{HISTORY}/rows"), place.at(f"{HISTORY}/checkpoint")
    made: list[Bootstrapped] = []

    def prepare(cut: Cut) -> None:
        made.append(_emptied(hadoop, HadoopFiles(hadoop, where), where, cut))
        hadoop.delete(place.at(HISTORY), recursive=True)

    place.begin()
    try:
        _run(transform, history, rows, checkpoint, output_mode)
        _check(HadoopFiles(hadoop, checkpoint))
        copy_into(place, checkpoint, prepare)
    except BaseException:
        place.abandon()
        raise
    return made[0]


def _run(
    transform: Callable[[DataFrame], DataFrame], history: DataFrame, rows: str, checkpoint: str, output_mode: str
) -> None:
    """Run the transformation over the history, as a stream that ends."""
    from pyspark.errors import AnalysisException

    from eos.spark.query import reason

    spark = history.sparkSession
    try:
        history.write.parquet(rows)
        stream = _transformed(transform, spark.readStream.schema(history.schema).parquet(rows))
        writer = stream.writeStream.outputMode(output_mode).format("noop")
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()  # where the caller was interrupted, it would go on writing into what is removed
    except AnalysisException as error:
        raise InvalidInput(f"Spark refuses the history or the transformation: {reason(error)}") from error
    except StateStoreError:
        raise
    except Exception as error:
        raise Unavailable(f"The history could not be run: {reason(error)}. Nothing was kept. Call again") from error


def _transformed(transform: Callable[[DataFrame], DataFrame], rows: DataFrame) -> DataFrame:
    from pyspark.errors import AnalysisException

    try:
        made: object = transform(rows)
    except AnalysisException:
        raise
    except Exception as error:
        raise InvalidInput(f"The transformation fails: {type(error).__name__}: {error}") from error
    if not isinstance(made, type(rows)) or not made.isStreaming:
        what = "a table" if isinstance(made, type(rows)) else f"{type(made).__name__}"
        raise InvalidInput(
            f"The transformation must return a DataFrame made of the one that it gets, and returns {what}"
        )
    return made


def _check(files: HadoopFiles) -> None:
    batches = committed(files)
    if not batches:
        raise InvalidInput("The history has no rows, or the transformation runs no batch. There is no state to make")
    names = [read_operator(files, number, batches[-1]).name for number in operator_ids(files)]
    if not names:
        raise InvalidInput("The transformation keeps no state. There is nothing to bootstrap. Start the query as it is")
    offsets = parse_offsets(OFFSETS, files.read(join(OFFSETS, str(batches[-1]))))
    if _JOIN in names or len(offsets.sources) != 1:
        raise InvalidInput(
            f"The transformation reads {len(offsets.sources)} sources (operators: {', '.join(names)}). Only state of "
            "one source is made from one history. A stream-stream join has two, each with its own beginning"
        )
    if not numbers_of(offsets):
        raise InvalidInput(
            "The transformation does not read the rows that it is given, but a source of its own. Its state is none of "
            "the history's. Let it begin with its argument"
        )
    if offsets.version != 1:
        raise InvalidInput(
            "Sources have names here (spark.sql.streaming.queryEvolution.enableSourceEvolution), and Spark has no word "
            "for a named source that nothing was read of: turn it off for this query"
        )


def _emptied(hadoop: Hadoop, files: HadoopFiles, where: str, cut: Cut) -> Bootstrapped:
    """Take the history's source out of a copy."""
    for batch in batch_ids(files, OFFSETS):
        path = join(OFFSETS, str(batch))
        head = files.read(path).split(b"\n")[:2]
        hadoop.replace(files.uri(path), b"\n".join([*head, _NOTHING_READ.encode()]))
    hadoop.delete(files.uri(SOURCES), recursive=True)
    names = tuple(read_operator(files, number, cut.batch_id).name for number in operator_ids(files))
    watermark = read_commit(files, cut.batch_id).next_watermark_ms
    return Bootstrapped(where, cut.query, cut.batch_id, watermark, names)
