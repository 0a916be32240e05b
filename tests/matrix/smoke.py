"""Try every part of this library on one Spark and one Pulsar, with drivers that are killed between two runs.

    python -m tests.matrix.smoke --python PYTHON [--pulsar VERSION] [--only PART …]

PYTHON has the Spark under test. This process may have another one; it only starts drivers, and counts what they wrote.
Prints a line of JSON for each part: its answer is "worked", "can't" (refused in words), or "failed". With `--out` the
lines are merged into a file, from which tools/matrix_page.py draws a page.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from eos.local import LocalPulsar
from eos.local.jars import PULSAR_VERSION
from eos.pulsar.net.admin import Admin
from tests.child_process import ChildProcess, python
from tests.conftest import START_S, create_topic
from tests.crash.job import Job, prepare
from tests.crash.process import account_for
from tests.reading import values_of
from tools.matrix_page import merged

FILES, ROWS = 5, 60
KILLED: Final = -9
_SHOWN: Final = 200
"""Characters of an error; all of it is in the log."""
WORKED, CANT, FAILED = "worked", "can't", "failed"
ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}
CHANGELOG = {**ROCKSDB, "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true"}
_REFUSED = re.compile(
    r"[^\n:]+ needs .* lacks it\. It came with [\d.]+\.|[^\n]*(?:Spark|PySpark) [\d.]+ or newer[^\n]*"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one part: its answer, and why."""

    part: str
    answer: str
    why: str


@dataclass
class Smoke:
    """One Spark on one Pulsar."""

    python: str
    service_url: str
    admin_url: str
    zookeeper: str
    folder: Path
    timeout_s: float = 400.0
    checkpoint: str = ""
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ask = "import os, pyspark; print(os.path.dirname(pyspark.__file__))"
        home = subprocess.run([self.python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
        here = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
        self.environment = {
            **here,
            "PYSPARK_PYTHON": self.python,
            "PYSPARK_DRIVER_PYTHON": self.python,
            "SPARK_HOME": home,
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }

    def versions(self) -> dict[str, str]:
        """Return the versions of Spark, Pulsar and Python that are tried."""
        ask = "import platform, pyspark; print(pyspark.__version__, platform.python_version())"
        said = subprocess.run([self.python, "-c", ask], capture_output=True, text=True, check=True).stdout.split()
        with Admin(self.admin_url) as admin:
            return {"spark": said[0], "pulsar": admin.version(), "python": said[1]}

    def run(self, part: str, module: str, *arguments: object) -> int:
        """Run a module; return its exit code. Its log stays in the folder."""
        command = python(module, *arguments, program=self.python)
        return ChildProcess(command, self.folder / f"{part}.log", self.environment, inherited={}).wait(self.timeout_s)

    def topic(self, part: str) -> str:
        """Make a topic of two partitions."""
        return create_topic(self.admin_url, f"matrix-{part}", 2)

    def killed(self, part: str, crash: tuple[str, str], **fields: Any) -> str:
        """Run a query that is killed in its second batch, and again to its end. Return what is wrong, or ""."""
        topic = self.topic(part)
        job = prepare(
            self.service_url,
            topic,
            self.folder / part,
            FILES,
            ROWS,
            crash=crash,
            crash_in=1 if fields.get("by_id") else 3,
            **fields,
        )
        first = self.run(part, "tests.crash.job", job)
        if first != KILLED:
            return f"the first run ended with {first}, and was not killed"
        again = self.run(part, "tests.crash.job", dataclasses.replace(job, crash=None))
        return f"the second run ended with {again}" if again else self.wrong(topic, job)

    def wrong(self, topic: str, job: Job) -> str:
        """Return how the topic differs from what the job was to write, "" where it does not."""
        found = account_for(self.service_url, topic, FILES, ROWS, stateful=job.stateful)
        return "" if found.is_exact() else found.reason

    def state(self, part: str, *words: str, ok: tuple[int, ...] = (0,)) -> str:
        """Run a command of `statestore`. Return what is wrong, or ""."""
        if not self.checkpoint:
            return "there is no checkpoint: the part before failed"
        code = self.run(part, "statestore", *words)
        return "" if code in ok else f"it ended with {code}"

    def by_name(self, part: str, topic: str, values: Sequence[str]) -> str:
        """Read or write by name."""
        given = {"service_url": self.service_url, "topic": topic, "folder": str(self.folder / part), "values": values}
        code = self.run(part, "tests.matrix.by_name", part, given)
        return "" if code == 0 else f"it ended with {code}"

    def parts(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """Yield each part and what tries it."""
        yield "sink stateless, by driver", lambda: self.killed("sink-1", ("end-sent", "after"))
        yield "sink stateless, by tasks", lambda: self.killed("sink-2", ("marker", "before"), small_batch_rows=0)
        yield (
            "sink stateful, by driver",
            lambda: self.killed("sink-3", ("marker", "after"), stateful=True, conf=ROCKSDB),
        )
        yield (
            "sink stateful, by tasks",
            lambda: self.killed("sink-4", ("end-answered", "after"), stateful=True, conf=CHANGELOG, small_batch_rows=0),
        )
        yield "eos.write", lambda: self.killed("write", ("end-sent", "after"), by_id=True)
        yield "bk:// with RocksDB", self.on_bookkeeper
        yield "verify", lambda: self.state("verify", "verify", self.checkpoint)
        name = f"matrix-{uuid.uuid4().hex[:6]}"
        yield "savepoint", lambda: self.state("savepoint", "savepoint", "create", name, self.checkpoint)
        yield "restore", lambda: self.state("restore", "restore", name, f"{self.checkpoint}-restored")
        yield "cp", lambda: self.state("cp", "cp", self.checkpoint, f"{self.checkpoint}-copy")
        yield "diff", lambda: self.state("diff", "diff", self.checkpoint, f"{self.checkpoint}-copy")
        yield (
            "rescale",
            lambda: self.state("rescale", "rescale", self.checkpoint, f"{self.checkpoint}-3", "--partitions", "3"),
        )
        values = [str(number) for number in range(FILES * ROWS)]
        yield "source table", lambda: self.by_name("read-table", self.written(), values)
        yield "source stream", lambda: self.by_name("read-stream", self.written(), values)
        yield "writer by name", self.write_by_name
        yield "catalog in PySpark", lambda: self.by_sql("pyspark")
        yield "catalog in spark-sql", lambda: self.by_sql("spark-sql")
        yield "catalog by Spark Connect", lambda: self.by_sql("connect")

    def on_bookkeeper(self) -> str:
        """A query whose checkpoint is on bk://."""
        at = f"bk://{self.zookeeper}/matrix/{uuid.uuid4().hex[:8]}"
        problem = self.killed("bk", ("end-answered", "after"), stateful=True, conf=CHANGELOG, small_batch_rows=0, bk=at)
        self.checkpoint = "" if problem else at
        return problem

    def written(self) -> str:
        """Return a topic that the official client has filled."""
        import pulsar

        topic = self.topic("feed")
        client = pulsar.Client(self.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        producer = client.create_producer(topic, batching_enabled=True, batching_max_messages=20)
        for number in range(FILES * ROWS):
            producer.send_async(str(number).encode(), lambda *_: None, partition_key=f"k{number % 7}")
        producer.flush()
        client.close()
        return topic

    def by_sql(self, door: str) -> str:
        """Run the script of SQL on the catalog. Return what is wrong, or ""."""
        part = f"catalog-{door}"
        given = {
            "service_url": self.service_url,
            "admin_url": self.admin_url,
            "topic": self.written(),
            "folder": str(self.folder / part),
            "values": [str(number) for number in range(FILES * ROWS)],
        }
        code = self.run(part, "tests.matrix.catalog", door, given)
        return "" if code == 0 else f"it ended with {code}"

    def write_by_name(self) -> str:
        """Rows that are written by name, at least once."""
        topic, values = self.topic("by-name"), [str(number) for number in range(FILES * ROWS)]
        problem = self.by_name("write-table", topic, values)
        missing = set(values) - set(values_of(self.service_url, topic))
        return problem or (f"{len(missing)} rows are missing" if missing else "")

    def answers(self, only: Sequence[str] = ()) -> Iterator[Answer]:
        """Try the parts one after the other."""
        for part, attempt in self.parts():
            if only and not part.startswith(tuple(only)):
                continue
            before = self._logs()
            try:
                problem = attempt()
            except Exception as error:
                problem = repr(error)[:_SHOWN]
            yield answer(
                part, problem, "\n".join(path.read_text(errors="replace") for path in sorted(self._logs() - before))
            )

    def _logs(self) -> set[Path]:
        return {*self.folder.glob("*.log"), *self.folder.glob("*.out")}


def answer(part: str, problem: str, said: str) -> Answer:
    """Return what a part gave. Args: its name; what is wrong, or ""; all that its processes said."""
    if not problem:
        return Answer(part, WORKED, "")
    refused = _REFUSED.search(said)
    return Answer(part, CANT, refused[0].strip()) if refused else Answer(part, FAILED, problem)


def main(arguments: Sequence[str]) -> int:
    """Try all parts; exit with 1 where one failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--python", required=True)
    parser.add_argument("--pulsar", default=PULSAR_VERSION, help="the version that is started, if none is named by:")
    for name in ("--service-url", "--admin-url", "--zookeeper"):
        parser.add_argument(name)
    parser.add_argument("--only", nargs="+", default=[], metavar="PART", help="beginnings of parts; all by default")
    parser.add_argument("--out", type=Path, help="a file of JSON with the newest answer of each part")
    parser.add_argument("--logs", type=Path, help="where the logs stay")
    given = parser.parse_args(arguments)
    folder = given.logs.absolute() if given.logs else Path(tempfile.mkdtemp(prefix="smoke-"))
    folder.mkdir(parents=True, exist_ok=True)
    if given.service_url is None:
        with LocalPulsar(version=given.pulsar, start_timeout_s=START_S) as pulsar:
            smoke = Smoke(given.python, pulsar.service_url, pulsar.admin_url, pulsar.zookeeper, folder)
            return tried(smoke, given.only, given.out)
    smoke = Smoke(given.python, given.service_url, given.admin_url, given.zookeeper, folder)
    return tried(smoke, given.only, given.out)


def tried(smoke: Smoke, only: Sequence[str], out: Path | None) -> int:
    """Try the parts, print their answers and keep them; return 1 where one failed."""
    versions = smoke.versions()
    rows: list[dict[str, Any]] = []
    for found in smoke.answers(only):
        rows.append({**versions, **dataclasses.asdict(found)})
        print(json.dumps(rows[-1]), flush=True)
        if out is not None:
            before = json.loads(out.read_text()) if out.exists() else []
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(merged(before, rows), indent=1) + "\n")
    return int(any(row["answer"] == FAILED for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
