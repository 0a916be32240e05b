"""Ways in which people deal with the errors of a sink, or don't."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from pyspark.sql import DataFrame

import eos
from tests.integration.sinks.ways import BAD, HOLE, ONE_BLOCK, Batch, Use, halves, sink_way, way

_has_failed: set[str] = set()


Fail = Callable[[Use, DataFrame, int], None]


def careless(use: Use, fails_in: int, fail: Fail, before: Batch | None = None) -> Batch:
    sink = use.sink()

    def batch(df: DataFrame, batch_id: int) -> None:
        if before is not None:
            before(df, batch_id)
        with suppress(eos.EosError, LookupError):
            if batch_id == fails_in:
                fail(use, df, batch_id)
            else:
                sink(df, batch_id)

    return batch


def bad_columns(use: Use, df: DataFrame, batch_id: int) -> None:
    use.sink()(df.selectExpr(*BAD), batch_id)


@way(HOLE, soak=True)
def a_failure_is_swallowed(use: Use) -> Batch:
    return careless(use, 1, bad_columns)


@way(HOLE, soak=True)
def a_failure_is_swallowed_in_the_last_batch(use: Use) -> Batch:
    return careless(use, 2, bad_columns)


@way(HOLE, soak=True)
def a_failure_is_swallowed_in_the_first_batch(use: Use) -> Batch:
    return careless(use, 0, bad_columns)


@way(HOLE)
def a_failure_is_swallowed_in_a_job_group_of_the_users(use: Use) -> Batch:
    def group(df: DataFrame, batch_id: int) -> None:
        use.spark.sparkContext.setJobGroup(f"batch {batch_id}", "a name for the UI")

    return careless(use, 1, bad_columns, group)


@way(HOLE, soak=True)
def a_failure_after_the_batch_was_begun_is_swallowed(use: Use) -> Batch:
    def fail(use: Use, df: DataFrame, batch_id: int) -> None:
        use.sink()(df.selectExpr("cast(raise_error(value) as string) value"), batch_id)

    return careless(use, 2, fail)


@way(HOLE)
def an_error_in_the_block_is_swallowed(use: Use) -> Batch:
    def fail(use: Use, df: DataFrame, batch_id: int) -> None:
        with use.sink().batch(batch_id) as txn:
            txn.write(df)
            raise LookupError("something of the user's own")

    return careless(use, 2, fail)


@sink_way(r"A txn\.write\(\) of the block of batch \d failed", soak=True)
def an_error_of_one_write_of_a_block_is_swallowed(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    with suppress(eos.EosError), sink.batch(batch_id) as txn:
        txn.write(df.limit(1))
        with suppress(eos.EosError):
            txn.write(df.selectExpr(*BAD))


@way(HOLE)
def a_sink_that_cannot_be_made_is_swallowed(use: Use) -> Batch:
    def fail(use: Use, df: DataFrame, batch_id: int) -> None:
        eos.sink(use.service_url, topic=f"{use.topic}-missing", name=use.name)(df, batch_id)

    return careless(use, 1, fail)


@way(HOLE, soak=True)
def a_sink_of_wrong_options_is_swallowed_each_time(use: Use) -> Batch:
    def batch(df: DataFrame, batch_id: int) -> None:
        with suppress(eos.EosError):
            use.sink(no_such_option=1)(df, batch_id)

    return batch


@way(HOLE, soak=True)
def a_sink_of_a_wrong_option_is_swallowed_once(use: Use) -> Batch:
    def batch(df: DataFrame, batch_id: int) -> None:
        with suppress(eos.EosError):
            use.sink(attempts=0 if batch_id == 1 else 2)(df, batch_id)

    return batch


@way(soak=True)
def a_sink_is_made_again_with_right_options(use: Use) -> Batch:
    def batch(df: DataFrame, batch_id: int) -> None:
        try:
            sink = use.sink(attempts=0)
        except eos.InvalidInput:
            sink = use.sink()
        sink(df, batch_id)

    return batch


@way("was called from foreachBatch", soak=True)
def a_refused_job_is_swallowed(use: Use) -> Batch:
    def batch(df: DataFrame, batch_id: int) -> None:
        with suppress(eos.EosError):
            eos.write(df, use.service_url, job_id=use.name, topic=use.topic)

    return batch


@way("was called from foreachBatch", soak=True)
def a_refused_job_in_a_pool(use: Use) -> Batch:
    pool = ThreadPoolExecutor(1)

    def batch(df: DataFrame, batch_id: int) -> None:
        pool.submit(eos.write, df, use.service_url, job_id=use.name, topic=use.topic).exception()

    return batch


@sink_way("A sink stays in the driver", soak=True)
def a_sink_in_foreach_is_swallowed(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    with suppress(Exception):
        df.foreach(sink)  # type: ignore[arg-type]


@sink_way()
def an_error_in_the_block_is_swallowed_and_the_same_batch_written_again(
    sink: eos.Sink, df: DataFrame, batch_id: int
) -> None:
    try:
        with sink.batch(batch_id) as txn:
            txn.write(df.filter("true"))
            raise LookupError
    except LookupError:
        sink(df.filter("true"), batch_id)


@sink_way(ONE_BLOCK)
def two_calls_of_which_the_first_one_fails(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    bad, good = halves(df)
    for part in (bad.selectExpr(*BAD), good):
        with suppress(eos.EosError):
            sink(part, batch_id)


@sink_way(ONE_BLOCK, soak=True)
def a_failure_is_swallowed_and_the_batch_written_again(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    try:
        sink(df.selectExpr(*BAD), batch_id)
    except eos.InvalidInput:
        sink(df, batch_id)


@sink_way(soak=True)
def an_error_after_the_write_is_swallowed(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    with suppress(LookupError):
        sink(df, batch_id)
        raise LookupError


@way()
def an_error_after_the_write_ends_the_run(use: Use) -> Batch:
    sink = use.sink()

    def batch(df: DataFrame, batch_id: int) -> None:
        sink(df, batch_id)
        if batch_id == 2 and use.topic not in _has_failed:
            _has_failed.add(use.topic)
            raise LookupError("something of the user's own")

    return batch
