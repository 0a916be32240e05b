"""Checkpoints of each kind of query and source, damaged, and what Spark says of the rest: does it go on from there?"""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row

from statestore.checkpoint import LocalFiles, moved_metadata
from statestore.checkpoint.inspection import inspect
from statestore.checkpoint.logs import METADATA
from tests.planner import again_while_late, is_late
from tests.soak.queries import SESSION, start
from tests.soak.queries import run as run_query
from tests.unit.statestore.checkpoint.conftest import NAMES

Results = Mapping[int, list[Row]]
Begin = Callable[[Path, Any], Any]
"""Starts the query on a checkpoint, with a function for its batches."""

AT_ONCE = 2
FILES, MORE, INTERVAL = 8, 4, 3
_AFTER = 2  # batches that an endless query runs
_MOST = 10_000  # rows of one batch of the rate source: half an hour of them
_PATIENCE_S = 300.0


@dataclass(frozen=True)
class Kind:
    """A query, and a checkpoint that it has left behind.

    Attributes:
        operators: how many stateful operators it has.
        begin: starts it.
        batches: how many it is let run; None: it ends by itself.
        repeatable: its batches have the same rows in each run.
    """

    operators: int
    checkpoint: Path
    begin: Begin
    batches: int | None = _AFTER
    repeatable: bool = True


@dataclass(frozen=True)
class Answer:
    """The result of a start: the batches that ran, and what ended it, "" if nothing did."""

    results: Results
    error: str

    def differs_from(self, healthy: Answer, kind: Kind) -> str:
        """Say why this is not going on, as the undamaged checkpoint does; "" if it is."""
        if self.error or not kind.repeatable:
            return self.error
        common = self.results.keys() & healthy.results.keys()
        if not common or (kind.batches is None and common != healthy.results.keys()):
            return f"batches {sorted(self.results)} ran, {sorted(healthy.results)} were due"
        wrong = [batch for batch in sorted(common) if self.results[batch] != healthy.results[batch]]
        return f"batch {wrong[0]} has other rows" if wrong else ""


def gone(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def without_sources(path: Path) -> None:
    """Cut offsets after their second line."""
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))


def in_source(path: Path) -> None:
    """Cut offsets inside the last source's JSON."""
    path.write_bytes(path.read_bytes()[:-2])


DAMAGES: dict[str, Callable[[Path], None]] = {"gone": gone, "empty": empty, "cut": cut}
OF_OFFSETS = {"without sources": without_sources, "in a source": in_source}


def entries(checkpoint: Path) -> list[str]:
    """All files and folders of a checkpoint, relative to it."""
    return [str(path.relative_to(checkpoint)) for path in sorted(checkpoint.rglob("*")) if path.name[0] != "."]


def kind_of(spark: Any, name: str, folder: Path, unpacked: Path) -> Kind:
    """A kind by its name: a kept vector, or, as vectors have no source that keeps a log, one that is written now."""
    if name in NAMES:
        provider, query = name.split("-")

        def begin(checkpoint: Path, each: Any) -> Any:
            return start(spark, provider, query, str(checkpoint), each)

        return Kind(1, unpacked / name, begin)
    if name == "chained":
        run_query(spark, "hdfs", "chained", str(folder / name), 3)
        return Kind(2, folder / name, lambda checkpoint, each: start(spark, "hdfs", "chained", str(checkpoint), each))
    if name == "rate":
        kind = Kind(0, folder / name, lambda checkpoint, each: _rate(spark, checkpoint, each), repeatable=False)
        assert run(kind, kind.checkpoint).error == ""
        return kind
    return _files(spark, folder / name, counted=name != "files")


def look(kind: Kind, folder: Path, damages: Iterable[tuple[str, str]]) -> list[tuple[str, str, str, list[str]]]:
    """Damage a copy for each entry and damage; return these, what Spark says ("" if it goes on), and verify."""
    healthy = run(kind, copied(kind.checkpoint, folder / "healthy"))
    assert healthy.error == "", healthy.error

    def one(at: tuple[str, str]) -> tuple[str, str, str, list[str]]:
        entry, damage = at

        def answers() -> tuple[str, list[str]]:
            copy = copied(kind.checkpoint, folder / uuid.uuid4().hex)
            (DAMAGES | OF_OFFSETS)[damage](copy / entry)
            found = inspect(LocalFiles(copy), operators=kind.operators).findings
            says = run(kind, copy).differs_from(healthy, kind)
            shutil.rmtree(copy, ignore_errors=True)  # Spark's maintenance may still be at a file of it
            if is_late(says):
                raise RuntimeError(says)
            # Where verify says that it can't know, either answer of Spark's agrees.
            told = ("error", "unknown") if says else ("error",)
            return says, [finding.message for finding in found if finding.severity in told]

        return entry, damage, *again_while_late(answers)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(one, damages))


def copied(checkpoint: Path, target: Path) -> Path:
    """Copy without the checksums that Hadoop keeps beside local files; operators name the copy's own schemas."""
    shutil.copytree(checkpoint, target, ignore=shutil.ignore_patterns(".*"))
    for file in target.glob("state/*/_metadata/v2/*"):
        file.write_bytes(moved_metadata(file.read_bytes(), f"file:{target}"))
    # Spark runs no two queries of one id at a time.
    (target / METADATA).write_text(json.dumps({"id": str(uuid.uuid4())}))
    return target


def run(kind: Kind, checkpoint: Path) -> Answer:
    """Start the query on a checkpoint, and let it run."""
    results: dict[int, list[Row]] = {}

    def each(frame: DataFrame, batch: int) -> None:
        if kind.batches is None or len(results) < kind.batches:
            # A clock that began in 1970 gives billions of rows: of those the application's JVM would run out of memory.
            rows = (frame if kind.repeatable else frame.limit(_MOST)).collect()
            assert len(rows) < _MOST, "the batch has no end"
            results[batch] = sorted(rows, key=repr)

    try:
        query = kind.begin(checkpoint, each)
    except Exception as refused:  # of any kind that Spark has: it doesn't start
        return Answer({}, str(refused).strip())
    deadline = time.monotonic() + _PATIENCE_S
    try:
        while query.isActive and (kind.batches is None or len(results) < kind.batches):
            if time.monotonic() > deadline:
                return Answer(results, "it makes no progress")
            time.sleep(0.05)
        error = query.exception()
    finally:
        query.stop()
    return Answer(results, "" if error is None else str(error).strip())


def _files(spark: Any, checkpoint: Path, counted: bool) -> Kind:
    """One file a batch; some more have come since it ended."""
    folder = checkpoint.with_name(f"{checkpoint.name}-input")
    folder.mkdir(parents=True)

    def add(numbers: range) -> None:
        for number in numbers:
            file = folder / f"{number:02d}.txt"
            file.write_text(f"row {number % 3}\n")
            os.utime(file, (1e9 + number, 1e9 + number))

    def begin(checkpoint: Path, each: Any) -> Any:
        session = spark.newSession()
        for name, value in SESSION.items():
            if name.startswith("spark.sql."):
                session.conf.set(name, value)
        session.conf.set("spark.sql.streaming.fileSource.log.compactInterval", INTERVAL)
        rows = session.readStream.option("maxFilesPerTrigger", 1).text(str(folder))
        writer = rows.groupBy("value").count().writeStream.outputMode("update") if counted else rows.writeStream
        writer = writer.option("checkpointLocation", str(checkpoint)).foreachBatch(each)
        return writer.trigger(availableNow=True).start()

    kind = Kind(int(counted), checkpoint, begin, batches=None)
    add(range(FILES))
    assert sorted(run(kind, checkpoint).results) == list(range(FILES))
    add(range(FILES, FILES + MORE))
    return kind


def _rate(spark: Any, checkpoint: Path, each: Any) -> Any:
    rows = spark.newSession().readStream.format("rate").option("rowsPerSecond", 5).load()
    writer = rows.writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(each)
    return writer.trigger(processingTime="200 milliseconds").start()
