"""What `collectAsArrowToPython` writes: batches as the partitions end, then the places they belong in.

Spark's end of the socket is played here, so that each version of PySpark shows in a moment whether it can be read.
"""

from __future__ import annotations

import gc
import io
import socket
import struct
import threading
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from eos.spark.failures import PERMANENT, is_permanent
from eos.spark.jobs import OldGarbage, _few, collect

SCHEMA = pa.schema([("value", pa.int64())])


def stream(*batches: list[int], places: list[int]) -> io.BytesIO:
    """Write it as Spark does: an Arrow stream, the number of batches, and the place of each."""
    out = io.BytesIO()
    with pa.ipc.new_stream(out, SCHEMA) as writer:
        for batch in batches:
            writer.write_batch(pa.record_batch([pa.array(batch, pa.int64())], SCHEMA))
    out.write(struct.pack(f"!i{len(places)}i", len(places), *places))
    out.seek(0)
    return out


def values(table: pa.Table | None) -> list[int]:
    assert table is not None
    found: list[int] = table.column("value").to_pylist()
    return found


def test_batches_that_arrive_in_another_order_are_put_in_the_order_of_the_partitions() -> None:
    arrived = stream([30, 31], [10], [20], places=[1, 2, 0])
    assert values(_few(arrived, 4)) == [10, 20, 30, 31]


@pytest.mark.parametrize(("limit", "few"), [(3, True), (2, False)])
def test_more_rows_than_the_limit_are_none_and_the_stream_is_read_to_its_end(limit: int, few: bool) -> None:
    arrived = stream([1], [2, 3], places=[0, 1])
    rows = _few(arrived, limit)
    assert (rows is not None) is few
    assert arrived.read() == b""


def test_no_rows_have_a_schema_all_the_same() -> None:
    rows = _few(stream(places=[]), 1)
    assert rows is not None
    assert (rows.num_rows, rows.schema) == (0, SCHEMA)


class _Jvm:
    def __init__(self, scala: Any) -> None:
        self.scala = scala


class Spark:
    """A job whose rows wait behind a socket of the driver's."""

    SECRET = "a secret"

    def __init__(self, rows: bytes) -> None:
        self._rows, self._listening = rows, socket.create_server(("127.0.0.1", 0))
        self.asked_why: list[Any] = []
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def df(self) -> Any:
        server = SimpleNamespace(getResult=self._result)
        answer = (self._listening.getsockname()[1], self.SECRET, server)
        durations = SimpleNamespace(Duration=SimpleNamespace(create=lambda length, unit: (length, unit)))
        jvm = _Jvm(scala=SimpleNamespace(concurrent=SimpleNamespace(duration=durations)))
        return SimpleNamespace(
            _jdf=SimpleNamespace(collectAsArrowToPython=lambda: answer), sparkSession=SimpleNamespace(_jvm=jvm)
        )

    def _result(self, limit: Any) -> None:
        self.asked_why.append(limit)

    def _serve(self) -> None:
        with self._listening, self._listening.accept()[0] as one, one.makefile("rwb") as stream:
            (size,) = struct.unpack("!i", stream.read(4))
            assert stream.read(size).decode() == self.SECRET
            stream.write(struct.pack("!i", 2) + b"ok" + self._rows)


def test_rows_are_collected_over_the_drivers_socket() -> None:
    spark = Spark(stream([20], [10], places=[1, 0]).getvalue())
    assert values(collect(spark.df, 2)) == [10, 20]
    assert spark.asked_why == [(60, "seconds")]


def test_a_job_that_failed_is_asked_why() -> None:
    spark = Spark(b"")
    with pytest.raises(pa.ArrowInvalid):
        collect(spark.df, 2)
    assert spark.asked_why == [(60, "seconds")], "that call raises the reason"


# ---- failures


class Failure(PySparkException):
    def __init__(self, state: str | None) -> None:
        super().__init__("why")
        self._state = state

    def getSqlState(self) -> str | None:  # noqa: N802
        return self._state


@pytest.mark.parametrize("state", [f"{cls}003" for cls in PERMANENT])
def test_what_the_rows_themselves_bring_about_is_permanent(state: str) -> None:
    assert is_permanent(Failure(state))


@pytest.mark.parametrize(
    "error", [Failure("58030"), Failure("XX000"), Failure("38000"), Failure(None), OSError("22003")]
)
def test_all_else_may_pass(error: Exception) -> None:
    assert not is_permanent(error)


# ---- objects that Python no longer uses


class Knot:
    """An object that refers to itself, as those of py4j do."""

    def __init__(self) -> None:
        self.own = self


def old_knot() -> weakref.ref[Knot]:
    """Return a reference to garbage in the oldest generation."""
    knot = Knot()
    gc.collect()
    return weakref.ref(knot)


@pytest.fixture
def only_by_us() -> Iterator[None]:
    """Python collects nothing old by itself meanwhile."""
    before = gc.get_threshold()
    gc.set_threshold(before[0], before[1], 1_000_000)
    yield
    gc.set_threshold(*before)


def test_what_is_old_is_freed_when_its_time_has_come(only_by_us: None) -> None:
    now = [1_000.0]
    old = OldGarbage(300.0, lambda: now[0])
    first = old_knot()
    now[0] += 299
    old.collect()
    assert first() is not None, "it was not time"
    now[0] += 1
    old.collect()
    assert first() is None
    second = old_knot()
    now[0] += 299
    old.collect()
    assert second() is not None, "it counts from the collection before"


def test_a_program_that_has_switched_the_collector_off_is_left_alone(only_by_us: None) -> None:
    old = OldGarbage(0.0)
    knot = old_knot()
    gc.disable()
    try:
        old.collect()
        assert knot() is not None
    finally:
        gc.enable()
    old.collect()
    assert knot() is None
