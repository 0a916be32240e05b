"""State from a history: the query goes on as if it had read that first."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from statestore import InvalidInput, Unavailable, bootstrap, read_state, state_difference, verify
from tests.soak.queries import PROVIDERS
from tests.soak.totals import Totals

ROWS = 40  # of a file
HISTORY = 3  # files


def aggregation(rows: DataFrame) -> DataFrame:
    rows = rows.withWatermark("at", "30 seconds")
    return rows.groupBy(F.window("at", "20 seconds"), (F.col("value") % 7).alias("k")).agg(F.sum("value"), F.count("*"))


def deduplication(rows: DataFrame) -> DataFrame:
    return rows.select(F.floor(F.col("value") / 3).alias("k")).dropDuplicates(["k"])


def within_watermark(rows: DataFrame) -> DataFrame:
    # The rows of a key are of one time: which of them comes first is not defined.
    k = F.floor(F.col("value") / 3)
    rows = rows.select(k.alias("k"), F.timestamp_seconds(k * 3 + 1_700_000_000).alias("at"))
    return rows.withWatermark("at", "30 seconds").dropDuplicatesWithinWatermark(["k"])


class InOrder(Totals):
    """Totals, whatever the order of a batch's rows, which no source promises."""

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:  # noqa: N802, N803
        values = pd.concat(list(rows)).sort_values("value")
        return super().handleInputRows(key, iter([values]), timerValues)


def transform(rows: DataFrame) -> DataFrame:
    keyed = rows.select((F.col("value") % 5).alias("k"), "value").groupBy("k")
    return keyed.transformWithStateInPandas(InOrder(), "k long, total long", "Update", "None")


QUERIES: dict[str, tuple[Callable[[DataFrame], DataFrame], Any, str]] = {
    "aggregation": (aggregation, "update", "hdfs"),
    "deduplication": (deduplication, "append", "rocksdb"),
    "within watermark": (within_watermark, "append", "changelog2"),
    "transform": (transform, "update", "changelog1"),
}


def add_file(folder: Path, number: int) -> None:
    """Rows of one second each; every third row belongs together across the files."""
    folder.mkdir(exist_ok=True)
    lines = [f"{1_700_000_000 + number * ROWS + row},{number * ROWS * 2 // 3 + row}" for row in range(ROWS)]
    (folder / f"{number:03}.csv").write_text("\n".join(lines))
    time.sleep(0.01)  # Spark takes files by the time they were written


def live(session: SparkSession, folder: Path) -> DataFrame:
    lines = session.readStream.schema("at bigint, value bigint").csv(str(folder))
    return lines.select(F.timestamp_seconds("at").alias("at"), "value")


@pytest.mark.parametrize(
    "name",
    [
        "aggregation",
        pytest.param("transform", marks=pytest.mark.soak),
        pytest.param("deduplication", marks=pytest.mark.soak),
        pytest.param("within watermark", marks=pytest.mark.soak),
    ],
)
def test_a_bootstrapped_query_is_one_that_has_read_the_history(name: str, spark: SparkSession, tmp_path: Path) -> None:
    query, mode, provider = QUERIES[name]
    session = spark.newSession()
    for setting, value in PROVIDERS[provider].items():
        session.conf.set(setting, value)
    past, rest = tmp_path / "past", tmp_path / "rest"
    for number in range(HISTORY):
        add_file(past, number)
    outputs: dict[str, dict[int, list[str]]] = {"never": {}, "made": {}}

    def run(rows: DataFrame, checkpoint: str) -> None:
        def each(found: DataFrame, batch: int) -> None:
            outputs[checkpoint][batch] = sorted(str(row) for row in found.collect())

        writer = query(rows).writeStream.outputMode(mode).foreachBatch(each)
        writer = writer.option("checkpointLocation", (tmp_path / checkpoint).as_uri())
        writer.trigger(availableNow=True).start().awaitTermination()

    # The history as one batch, then the rest.
    run(live(session, past), "never")
    after_history = max(outputs["never"])
    history = session.read.schema("at bigint, value bigint").csv(str(past))
    history = history.select(F.timestamp_seconds("at").alias("at"), "value")
    made = bootstrap(query, history, (tmp_path / "made").as_uri(), output_mode=mode)
    assert made.batch_id == after_history
    assert [path.name for path in tmp_path.iterdir() if "history" in path.name] == []
    assert verify((tmp_path / "made").as_uri(), operators=1).findings == ()
    never, found = (tmp_path / "never").as_uri(), (tmp_path / "made").as_uri()
    assert state_difference(never, found, spark=session).collect() == []

    for number in range(HISTORY, HISTORY + 3):
        add_file(past, number)
        add_file(rest, number)
    run(live(session, past), "never")
    run(
        session.readStream.schema("at bigint, value bigint")
        .csv(str(rest))
        .select(F.timestamp_seconds("at").alias("at"), "value"),
        "made",
    )
    later = {batch: rows for batch, rows in outputs["never"].items() if batch > after_history}
    assert outputs["made"] == later
    assert any(later.values())
    assert state_difference(never, found, spark=session).collect() == []
    variable = "total" if name == "transform" else None
    assert read_state(found, spark=session, state_variable=variable).count() > 0


def test_what_cannot_be_bootstrapped_is_refused_and_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    target = (tmp_path / "target").as_uri()
    history = spark.range(10).select(F.timestamp_seconds("id").alias("at"), F.col("id").alias("value"))

    def joined(rows: DataFrame) -> DataFrame:
        rows = rows.withWatermark("at", "1 second")
        return rows.alias("a").join(rows.alias("b"), F.expr("a.value = b.value AND a.at = b.at")).select("a.value")

    def wrong(rows: DataFrame) -> DataFrame:
        return rows.groupBy("no_such_column").count()

    def elsewhere(rows: DataFrame) -> DataFrame:
        return spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load().groupBy("value").count()

    def fails(rows: DataFrame) -> DataFrame:
        raise KeyError("k")

    for query, mode, says in (
        (elsewhere, "update", "does not read the rows that it is given, but a source of its own"),
        (fails, "update", "The transformation fails: KeyError: 'k'"),
        (lambda rows: None, "update", "must return a DataFrame .*, and returns NoneType"),
        (lambda rows: history, "update", "must return a DataFrame .*, and returns a table"),
        (joined, "append", "operators: symmetricHashJoin"),
        (lambda rows: rows, "append", "keeps no state"),
        (wrong, "update", "Spark refuses .*no_such_column"),
    ):
        with pytest.raises(InvalidInput, match=says):
            bootstrap(query, history, target, output_mode=mode)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="The history is a stream"):
        bootstrap(aggregation, spark.readStream.format("rate").load(), target)
    with pytest.raises(Unavailable, match=r"No checkpoint can be begun at file:/proc/none/here: may this user write"):
        bootstrap(aggregation, history, "file:///proc/none/here")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "target").mkdir()
    with pytest.raises(InvalidInput, match="There is an empty folder at"):
        bootstrap(aggregation, history, target)
