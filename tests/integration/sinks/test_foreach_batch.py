"""However people write the function of `foreachBatch`: all rows are there once, or the query ends and says why.

One way of each kind is tried each time, and `make soak` tries the others.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from typer.testing import CliRunner

from eos.cli.app import typer_app
from tests.crash.job import Job, prepare, start
from tests.integration.sinks import (  # noqa: F401  each adds its own
    ways_of_frames,
    ways_of_listeners,
    ways_of_sinks,
    ways_with_errors,
)
from tests.integration.sinks.ways import ONE_BLOCK, WAYS, Batch, Use, Way
from tests.reading import values_of
from tests.waiting import until

FILES, ROWS = 3, 2
BATCHES = [{str(row) for row in range(number * ROWS, (number + 1) * ROWS)} for number in range(FILES + 1)]


@pytest.fixture
def use(spark: SparkSession, pulsar: Any, make_topic: Any) -> Use:
    return Use(spark, pulsar.service_url, make_topic("ways"))


@pytest.fixture
def job(use: Use, tmp_path: Path) -> Job:
    return prepare(use.service_url, use.topic, tmp_path, FILES, ROWS)


def run(use: Use, job: Job, batch: Batch, every: str | None = None) -> str:
    """Run the query over what it has not read yet; return why it failed, "" if it did not. Args: `every` as `start`."""
    query = start(use.spark, job, batch, every)
    try:
        until(lambda: not query.isActive, "the query goes on")
        query.awaitTermination()
    except StreamingQueryException as error:
        return str(error)
    finally:
        query.stop()
    return ""


def add_a_file(job: Job) -> None:
    path = job.input / "more.csv"
    path.write_text("".join(f"{row},k\n" for row in sorted(BATCHES[FILES], key=int)))


def batches_found(use: Use) -> tuple[list[int], list[int]]:
    """Return which batches the topic holds, and which of them in part; no row is there twice."""
    found = Counter(values_of(use.service_url, use.topic))
    assert set(found.values()) <= {1}, f"rows are doubled: {found}"
    batches = [number for number, rows in enumerate(BATCHES) if rows & found.keys()]
    return batches, [number for number in batches if not found.keys() >= BATCHES[number]]


def whole_batches(use: Use) -> list[int]:
    """Return which batches the topic holds; each is whole, and no row is there twice."""
    batches, torn = batches_found(use)
    assert not torn, f"a part of these batches is missing: {torn}"
    return batches


@pytest.mark.parametrize(
    "way", [pytest.param(way, id=name, marks=[pytest.mark.soak] * way.soak) for name, way in WAYS.items()]
)
def test_all_rows_are_there_once_or_the_query_says_why_not(use: Use, job: Job, way: Way) -> None:
    first = run(use, job, way.make(use))
    add_a_file(job)
    again = run(use, job, way.make(use))
    if not way.says:
        assert (first, again) in (("", ""), (first, "")), again
        assert not first or "something of the user's own" in first, first
        assert whole_batches(use) == list(range(FILES + 1))
        return
    assert re.search(way.says, first or again), f"{first}\n{again}"
    assert again, "the second run went on as if nothing had happened"
    batches, torn = batches_found(use)
    assert batches == list(range(len(batches))), f"a hole: only batches {batches} are there"
    assert not torn or re.search(f"{ONE_BLOCK}|is not taken for done", again), (
        f"a part of these batches is missing: {torn}"
    )


IN_CI = [("two_calls_with_filters", None), ("a_failure_is_swallowed_in_the_first_batch", "100 milliseconds")]
REFUSED = [name for name, way in WAYS.items() if way.says]


@pytest.mark.parametrize(
    ("way", "every"),
    [
        pytest.param(name, every, marks=[pytest.mark.soak] * ((name, every) not in IN_CI))
        for name in REFUSED
        for every in (None, "100 milliseconds")
    ],
)
def test_the_corrected_function_goes_on_with_all_rows_or_is_told_what_is_missing(
    use: Use, job: Job, way: str, every: str | None
) -> None:
    """The query ends by itself with any trigger, and its next run has the function that the docs show."""
    first = run(use, job, WAYS[way].make(use), every)
    assert re.search(WAYS[way].says, first), first
    add_a_file(job)
    again = run(use, job, use.sink())
    if again:
        assert re.search(r"Batch \d is not (written|taken for done): |was begun and is not committed", again), again
    else:
        assert whole_batches(use) == list(range(FILES + 1))


@pytest.mark.soak
def test_a_query_without_a_next_batch_ends_where_its_only_sink_could_not_be_made(use: Use, tmp_path: Path) -> None:
    """With a trigger that waits for input it would wait on, and nobody would learn that rows are missing."""
    job = prepare(use.service_url, use.topic, tmp_path, 1, ROWS)
    assert "no_such_option" in run(
        use, job, WAYS["a_sink_of_wrong_options_is_swallowed_each_time"].make(use), "1 second"
    )
    assert (job.checkpoint / "commits" / "0").exists()
    add_a_file(job)
    assert "Batch 1 is not written: batch 0 failed in run" in run(use, job, use.sink())


def test_batches_that_were_refused_are_given_up_with_the_one_that_failed(use: Use, job: Job) -> None:
    run(use, job, WAYS["a_failure_is_swallowed_in_the_first_batch"].make(use))
    said = run(use, job, use.sink())
    assert re.search(r"Batch \d is not written: batch 0 failed", said), said
    passed = [int(batch) for batch in re.findall(r"--batch (\d)", said)]
    assert passed[0] == 0, "how many were passed is for chance to say, since the query ends soon"
    for batch in passed:
        skip(use, batch)
    assert run(use, job, use.sink()) == ""
    assert whole_batches(use) == list(range(passed[-1] + 1, FILES))


def fails_last(use: Use, job: Job, way: str) -> None:
    """Run the job so that its last batch fails, which the batch function hides; and give it more to read."""
    assert "Batch 2 failed" in run(use, job, WAYS[way].make(use))
    assert (job.checkpoint / "commits" / "2").exists(), "Spark has noted it"
    add_a_file(job)


def skip(use: Use, batch: int) -> None:
    done = CliRunner().invoke(
        typer_app, ["sink", "skip", use.name, "--batch", str(batch), "--yes"], env={"EOS_SERVICE_URL": use.service_url}
    )
    assert done.exit_code == 0, done.output


def test_the_rows_of_a_failed_batch_are_given_up_by_a_command(use: Use, job: Job) -> None:
    fails_last(use, job, "a_failure_is_swallowed_in_the_last_batch")
    said = run(use, job, use.sink())
    assert "Batch 3 is not written: batch 2 failed in run" in said
    assert f"eos sink skip {use.name} --batch 2" in said
    skip(use, 2)
    assert run(use, job, use.sink()) == ""
    assert whole_batches(use) == [0, 1, 3]
    assert not (job.checkpoint / "eos-failed.json").exists()


def test_spark_runs_a_failed_batch_again_as_the_error_says(use: Use, job: Job) -> None:
    fails_last(use, job, "a_failure_is_swallowed_in_the_last_batch")
    assert "delete commits/2 and all that is newer than batch 2" in run(use, job, use.sink())
    for newer in ("commits/2", "commits/.2.crc", "offsets/3", "offsets/.3.crc"):
        (job.checkpoint / newer).unlink(missing_ok=True)
    assert run(use, job, use.sink()) == ""
    assert whole_batches(use) == list(range(FILES + 1))


def test_the_log_tells_of_a_failed_batch_where_the_checkpoint_does_not(use: Use, job: Job) -> None:
    fails_last(use, job, "a_failure_after_the_batch_was_begun_is_swallowed")
    (job.checkpoint / "eos-failed.json").unlink()
    assert "batch 2 was begun and is not committed, and Spark hands over batch 3" in run(use, job, use.sink())
    assert whole_batches(use) == [0, 1]


def test_a_sink_for_each_batch_leaves_no_thread_behind(use: Use, job: Job) -> None:
    before, counts = set(threading.enumerate()), list[int]()

    def batch(df: DataFrame, batch_id: int) -> None:
        use.sink()(df, batch_id)
        counts.append(sum(thread.name == "eos-end" for thread in set(threading.enumerate()) - before))

    assert run(use, job, batch) == ""
    assert counts == [1] * FILES
