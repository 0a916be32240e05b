"""Facts of a query, as the batch function and a thread beside it find them."""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PythonException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from eos.errors import InvalidInput
from eos.spark.query import (
    Query,
    current_query,
    foreach_batch_queries,
    query_of,
    reason,
    refuse_speculation,
    refuse_temporary_checkpoint,
    threads_are_pinned,
)
from tests.waiting import PATIENCE_S


def session(**conf: str) -> Any:
    return SimpleNamespace(
        sparkContext=SimpleNamespace(getConf=lambda: {k.replace("_", "."): v for k, v in conf.items()})
    )


@pytest.mark.parametrize("text", ["true", "True", "TRUE"])
def test_speculation_is_refused_however_it_is_spelled(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"Set spark\.speculation=false"):
        refuse_speculation(session(spark_speculation=text))


def test_no_speculation_is_taken() -> None:
    refuse_speculation(session())
    refuse_speculation(session(spark_speculation="false"))


@pytest.mark.parametrize(
    ("checkpoint", "refused"),
    [
        ("file:/tmp/temporary-0c7e1b1e-9d5a-4b77-8f0a-0c7f1d5d2a11", True),
        ("file:///tmp/x/temporary-0c7e1b1e-9d5a-4b77-8f0a-0c7f1d5d2a11", True),
        ("hdfs://nn:8020/tmp/temporary-0c7e1b1e-9d5a-4b77-8f0a-0c7f1d5d2a11", True),
        ("s3a://bucket/temporary-0c7e1b1e-9d5a-4b77-8f0a-0c7f1d5d2a11/", True),
        ("file:/tmp/temporary-0c7e1b1e-9d5a-4b77-8f0a-0c7f1d5d2a11/mine", False),
        ("file:/data/not-temporary-0c7e1b1e-9d5a-4b77-8f0a-0c7f1d5d2a11", False),
        ("file:/data/checkpoints/flights", False),
        ("bk://localhost:2181/flights", False),
    ],
)
def test_a_checkpoint_that_spark_throws_away_is_refused(checkpoint: str, refused: bool) -> None:
    query: Any = SimpleNamespace(checkpoint=checkpoint)
    if not refused:
        refuse_temporary_checkpoint(query)
        return
    with pytest.raises(InvalidInput, match=r'option\("checkpointLocation"'):
        refuse_temporary_checkpoint(query)


@pytest.mark.parametrize("error", [Py4JNetworkError("no answer from Java"), ConnectionRefusedError()])
def test_a_query_whose_jvm_is_gone_is_not_active(error: Exception) -> None:
    def gone() -> bool:
        raise error

    rest: Any = None
    execution = SimpleNamespace(isActive=gone)
    assert not Query("query", "run", "file:/x", execution, rest).is_active()


@pytest.mark.parametrize("fails", [False, True])
def test_the_end_of_a_run_is_awaited_however_it_comes(spark: SparkSession, tmp_path: Path, fails: bool) -> None:
    seen: list[tuple[str | None, bool]] = []
    looked, ended = threading.Event(), threading.Event()

    def batch(df: DataFrame, batch_id: int) -> None:
        query = current_query(df.sparkSession)
        assert query is not None
        df.sparkSession.sparkContext.setJobGroup("mine", "the function's own")
        df.sparkSession.sparkContext.setLocalProperty("sql.streaming.queryId", "mine")
        again, by_session = current_query(None, query), query_of(df.sparkSession)
        assert by_session is not None
        same = again is query and by_session.run_id == query.run_id and query.batch_in_hand() == batch_id
        same = same and query.run_id in [one.run_id for one in foreach_batch_queries(spark)]
        same = same and query_of(spark) is None and query_of(spark, query.query_id) is not None
        seen.append((query.run_id, same))
        if batch_id == 0:

            def wait() -> None:
                query.await_end()
                ended.set()

            threading.Thread(target=wait, daemon=True).start()
        elif fails:
            looked.wait(PATIENCE_S)
            raise LookupError("something of the user's own")

    rows = spark.readStream.format("rate").load()
    started = rows.writeStream.foreachBatch(batch).option("checkpointLocation", str(tmp_path)).start()
    while len(seen) < 2 and started.isActive:
        assert not ended.wait(0.1), "it runs still"
    looked.set()
    if not fails:
        started.stop()
    assert ended.wait(PATIENCE_S)
    assert seen[:2] == [(started.runId, True)] * 2
    assert current_query(spark) is None
    assert seen[0][0] not in [one.run_id for one in foreach_batch_queries(spark)]
    assert threads_are_pinned()
    assert current_query() is None


OF_A_FUNCTION = """An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "/x/py4j/clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
ValueError: no room
 SQLSTATE: 39000"""
OF_SPARK = "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted"
OF_THE_QUERY = "\n\n=== Streaming Query ===\nIdentifier: two [id = 1]\nCurrent Committed Offsets: {}\nLogical Plan:\nx"


@pytest.mark.parametrize(("text", "why"), [(OF_A_FUNCTION, "ValueError: no room"), (OF_SPARK, OF_SPARK)])
def test_why_a_query_failed_is_told_without_a_traceback_and_a_plan(text: str, why: str) -> None:
    assert reason(StreamingQueryException(text + OF_THE_QUERY)) == why


NO_MODULE = """Traceback (most recent call last):
  File "/x/pyspark/worker.py", line 1, in read_command
    command = serializer._read_with_length(file)
ModuleNotFoundError: No module named '{}'
"""


@pytest.mark.parametrize("module", ["eos", "eos.delivery.task", "pyarrow"])
def test_a_module_that_only_the_driver_has_is_told_with_the_way_to_give_it_to_the_tasks(module: str) -> None:
    said = reason(PythonException(NO_MODULE.format(module)))
    assert re.search(rf"No module named '{module}'.*PYSPARK_PYTHON.*{re.escape(sys.executable)}", said)


def test_a_module_that_the_driver_lacks_too_is_no_matter_of_its_python() -> None:
    assert reason(PythonException(NO_MODULE.format("no_such_module"))).endswith("No module named 'no_such_module'")
