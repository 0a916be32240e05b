"""Ways in which people make and share sinks, and write several times."""

from __future__ import annotations

import functools
import itertools
import pickle
from collections.abc import Iterator
from contextlib import suppress

from pyspark.sql import DataFrame

import eos
from tests.integration.sinks.ways import ONE_BLOCK, WRONG_ID, Batch, Use, halves, sink_way, way


@way(soak=True)
def the_sink_itself(use: Use) -> Batch:
    return use.sink()


@way(soak=True)
def a_sink_for_each_batch(use: Use) -> Batch:
    return lambda df, batch_id: use.sink()(df, batch_id)


@way(soak=True)
def a_sink_for_each_batch_with_an_observer_of_its_own(use: Use) -> Batch:
    return lambda df, batch_id: use.sink(metrics=lambda batch: None)(df, batch_id)


@way()
def a_sink_for_each_batch_that_is_closed(use: Use) -> Batch:
    def batch(df: DataFrame, batch_id: int) -> None:
        sink = use.sink()
        try:
            sink(df, batch_id)
        finally:
            sink.close()

    return batch


@way(soak=True)
def a_sink_in_a_class(use: Use) -> Batch:
    class Writer:
        def __init__(self) -> None:
            self.sink = use.sink()

        def __call__(self, df: DataFrame, batch_id: int) -> None:
            self.sink(df, batch_id)

    return Writer()


@way(soak=True)
def a_partial(use: Use) -> Batch:
    def batch(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
        sink(df, batch_id)

    return functools.partial(batch, use.sink())


@way(ONE_BLOCK)
def two_sinks_of_one_name(use: Use) -> Batch:
    first, second = use.sink(), use.sink()

    def batch(df: DataFrame, batch_id: int) -> None:
        for sink, part in zip((first, second), halves(df), strict=True):
            sink(part, batch_id)

    return batch


@way(ONE_BLOCK, soak=True)
def two_sinks_of_one_name_made_inside(use: Use) -> Batch:
    def batch(df: DataFrame, batch_id: int) -> None:
        for part in halves(df):
            use.sink()(part, batch_id)

    return batch


@way(ONE_BLOCK, soak=True)
def two_sinks_of_one_name_with_other_options(use: Use) -> Batch:
    def batch(df: DataFrame, batch_id: int) -> None:
        for part, compression in zip(halves(df), ("none", "zlib"), strict=True):
            use.sink(compression=compression)(part, batch_id)

    return batch


@way("One query has one sink")
def two_sinks_of_two_names(use: Use) -> Batch:
    first, second = use.sink(), use.sink(f"{use.name}-2")

    def batch(df: DataFrame, batch_id: int) -> None:
        for sink, part in zip((first, second), halves(df), strict=True):
            sink(part, batch_id)

    return batch


@sink_way("A sink stays in the driver")
def a_sink_that_is_sent_to_executors(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    pickle.dumps(sink)


# ---- several writes


@sink_way()
def several_writes_in_one_block(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    with sink.batch(batch_id) as txn:
        for part in halves(df):
            txn.write(part)


@way(soak=True)
def writes_from_a_generator(use: Use) -> Batch:
    sink = use.sink()

    def parts(df: DataFrame) -> Iterator[DataFrame]:
        yield from halves(df)

    def batch(df: DataFrame, batch_id: int) -> None:
        with sink.batch(batch_id) as txn:
            for part in parts(df):
                txn.write(part, use.topic)

    return batch


@sink_way(ONE_BLOCK)
def two_calls_with_filters(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    for part in halves(df):
        sink(part, batch_id)


@sink_way(ONE_BLOCK, soak=True)
def the_same_call_twice(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    sink(df, batch_id)
    sink(df, batch_id)


@sink_way(ONE_BLOCK)
def closed_between_two_writes(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    for part in halves(df):
        sink(part, batch_id)
        sink.close()


@sink_way(soak=True)
def closed_after_each_batch(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    sink(df, batch_id)
    sink.close()


@sink_way(ONE_BLOCK, soak=True)
def a_call_within_a_block(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    first, second = halves(df)
    with sink.batch(batch_id) as txn:
        txn.write(first)
        sink(second, batch_id)


@sink_way("after the block of batch 0 had ended")
def a_write_after_the_block(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    first, second = halves(df)
    with sink.batch(batch_id) as txn:
        txn.write(first)
    txn.write(second)


@sink_way("has no txn.write")
def a_block_that_is_left_without_a_write(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    with sink.batch(batch_id) as txn:
        if batch_id == 1:
            return
        txn.write(df)


@sink_way()
def nothing_is_written_of_a_batch_without_rows(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    if df.isEmpty():
        return
    sink(df, batch_id)


# ---- which batch the caller says it is


@sink_way(WRONG_ID)
def always_batch_0(sink: eos.Sink, df: DataFrame, _: int) -> None:
    with suppress(eos.EosError):
        sink(df, 0)


@way(WRONG_ID, soak=True)
def counted_from_1_by_a_sink_without_transactions(use: Use) -> Batch:
    sink, numbers = use.sink(guarantee="at-least-once"), itertools.count(1)
    return lambda df, _: sink(df, next(numbers))


@sink_way("must be the int that Spark gives", soak=True)
def by_a_text(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    with suppress(eos.EosError):
        sink(df, str(batch_id))  # type: ignore[arg-type]
