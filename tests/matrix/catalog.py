"""One script of SQL on the catalog by PySpark, `spark-sql` or a client of Spark Connect, in the Spark under test.

    python -m tests.matrix.catalog DOOR '{"service_url": …, "admin_url": …, "topic": …, "folder": …, "values": […]}'

The topic has the values, their keys and two partitions. Ends with 0 where each statement gave what it should.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from eos.by_name.session import CLASS, configure_spark
from eos.config import Cluster
from eos.local.checks import pick_ports
from eos.pulsar.net.client import Client
from eos.spark.capabilities import Capability, SparkLacks, has
from eos.spark.jar import shipped_jar

START_S, STREAM_S = 180.0, 120
COMMON = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.driver.host": "localhost"}
NO_WRITER = ("It came with 4.2", "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_FIND_DATA")
"""The refusal of INSERT INTO on an older Spark. Spark 4.0 itself refuses one that leaves out columns."""
_MARK = "end of statement"

Rows = list[list[str]]
"""The result of a statement: its rows, of texts."""


@dataclass(frozen=True)
class Step:
    """A statement. Attributes: its text; its rows where they are known to the last cell; or words that it shows."""

    statement: str
    rows: Rows | None = None
    words: tuple[str, ...] = ()

    def wrong(self, found: Rows) -> str:
        """Return how the rows differ from what they should be, "" where they do not."""
        if self.rows is not None and found != self.rows:
            return f"{self.statement}: {found}, not {self.rows}"
        missing = [word for word in self.words if not any(word in row for row in found)]
        return f"{self.statement}: {missing} are not in {found}" if missing else ""


def script(given: Mapping[str, Any]) -> tuple[list[Step], Step]:
    """Return the statements that every Spark from 4.0 on takes, and an INSERT INTO with what it wrote."""
    name, total = given["topic"].rpartition("/")[2], len(given["values"])
    table, made = f"pulsar.public.default.`{name}`", f"made_{uuid.uuid4().hex[:8]}"
    by_key = Counter(f"k{number % 7}" for number in range(total))
    sum_of = str(sum(map(int, given["values"])))
    steps = [
        Step("show namespaces in pulsar", words=("public",)),
        Step("show namespaces in pulsar.public", words=("public.default",)),
        Step(f"show tables in pulsar.public.default like '{name}'", words=(name,)),
        Step(f"describe {table}", words=("value", "binary", "__key", "__publishTime")),
        Step(f"describe extended {table}", words=("__key",)),
        Step(f"show tblproperties {table} ('partitions')", [["partitions", "2"]]),
        Step(
            f"select string(__key) as k, count(*) as n from {table} group by 1 order by 1",
            [[key, str(by_key[key])] for key in sorted(by_key)],
        ),
        Step(f"select count(*) as n from {table}", [[str(total)]]),
        Step(f"select sum(int(string(value))) as s from {table} where __partition in (0, 1)", [[sum_of]]),
        Step(f"select count(*) as n from {table} where __publishTime < timestamp'2020-01-01'", [["0"]]),
        Step(f"select count(*) as n from {table} timestamp as of '2020-01-01 00:00:00'", [["0"]]),
        Step("use pulsar", []),
        Step(f"select count(*) as n from `{name}`", [[str(total)]]),
        Step(f"create table {made} (id bigint, minutes int) tblproperties ('partitions' = '2', 'team' = 'ops')", []),
        Step(f"describe {made}", words=("value", "struct<id:bigint,minutes:int>")),
        Step(f"alter table {made} set tblproperties ('partitions' = '3', 'droppable' = 'true')", []),
        Step(f"show tblproperties {made} ('partitions')", [["partitions", "3"]]),
        Step(f"drop table {made}", []),
        Step(f"select count(*) as n from {table}", [[str(total)]]),
    ]
    insert = "with ('guarantee' = 'at-least-once') (value, __key) select binary('1'), binary('by sql')"
    return steps, Step(f"insert into {table} {insert}", [])


Run = Callable[[Sequence[str]], tuple[list[Rows], str]]
"""Runs statements up to the first that Spark refuses; returns what each showed, and the words of the refusal."""


def older_state(given: Mapping[str, Any]) -> Step:
    """Return a query of what the topic holds now, for later."""
    ends = {}
    with Client(Cluster(given["service_url"])) as client:
        for one in client.physical_topics(given["topic"]):
            with closing(client.entry_reader(one, None)) as reader:
                ends[one], _ = reader.last_message_id()
    version = json.dumps({one: str(end) for one, end in ends.items()})
    name = given["topic"].rpartition("/")[2]
    query = f"select count(*) as n from pulsar.public.default.`{name}` version as of '{version}'"
    return Step(query, [[str(len(given["values"]))]])


def tried(given: Mapping[str, Any], run: Run, older: Step) -> None:
    """Run the script; raise AssertionError with the statement that gave something else.

    Args: the topic; what runs statements; a query of what the topic held before.
    """
    steps, insert = script(given)
    steps.append(older)
    if has(Capability.COMPARES_SHUFFLES):
        total = len(given["values"])
        steps += [insert, Step(steps[-2].statement, [[str(total + 1)]]), older]
        shown, refused = run([step.statement for step in steps])
        assert not refused, refused
    else:
        shown, refused = run([*(step.statement for step in steps), insert.statement])
        assert len(shown) == len(steps), refused
        assert any(words in refused for words in NO_WRITER), refused
    wrong = [step.wrong(rows) for step, rows in zip(steps, shown, strict=True) if step.wrong(rows)]
    assert not wrong, "\n".join(wrong)


def by_session(spark: SparkSession) -> Run:
    """Return what runs statements in a session, classic or of Spark Connect."""

    def run(statements: Sequence[str]) -> tuple[list[Rows], str]:
        shown: list[Rows] = []
        for statement in statements:
            try:
                rows = spark.sql(statement).collect()
            except Exception as error:
                return shown, f"{statement}: {error}"
            shown.append([[_text(cell) for cell in row] for row in rows])
        return shown, ""

    return run


def _text(cell: object) -> str:
    return "NULL" if cell is None else str(cell).lower() if isinstance(cell, bool) else str(cell)


def by_command(given: Mapping[str, Any]) -> Run:
    """Return what runs statements by `spark-sql`."""

    def run(statements: Sequence[str]) -> tuple[list[Rows], str]:
        file = Path(given["folder"], "script.sql")
        file.write_text("".join(f"{statement};\nselect '{_MARK}';\n" for statement in statements))
        command = [_spark("spark-sql"), *_flags(given, "--master", "local[2]"), "-f", str(file)]
        done = subprocess.run(command, cwd=given["folder"], capture_output=True, text=True, check=False)
        print(done.stdout, done.stderr)
        parts = re.split(rf"^{_MARK}\n", done.stdout, flags=re.MULTILINE)[:-1]
        shown = [[[cell.strip() for cell in line.split("\t")] for line in part.splitlines()] for part in parts]
        return shown, done.stderr if done.returncode else ""

    return run


@contextmanager
def connect_server(given: Mapping[str, Any]) -> Iterator[str]:
    """Run a server of Spark Connect that has the catalog; yield its address.

    Raises SparkLacks where PySpark brings no such server.
    """
    if not list(Path(pyspark.__file__).parent.glob("jars/spark-connect_*.jar")):
        raise SparkLacks(
            f"Spark Connect needs a jar in PySpark, and Spark {pyspark.__version__} lacks it. It came with 4.0."
        )
    [port] = pick_ports(1)
    server = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    settings = ["--conf", f"spark.connect.grpc.binding.port={port}", "--conf", "spark.driver.bindAddress=127.0.0.1"]
    command = [_spark("spark-submit"), *server, *settings, *_flags(given, "--master", "local[2]"), "spark-internal"]
    process = subprocess.Popen(command, cwd=given["folder"])
    try:
        deadline = time.monotonic() + START_S
        while not _listens(port):
            assert process.poll() is None, f"the server ended with {process.returncode}"
            assert time.monotonic() < deadline, "the server does not listen"
            time.sleep(0.3)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _spark(command: str) -> str:
    return str(Path(pyspark.__file__).parent / "bin" / command)


def _flags(given: Mapping[str, Any], *first: str) -> list[str]:
    """Return the flags that docs/how-to/sql.md gives."""
    jar = str(shipped_jar())
    catalog = "spark.sql.catalog.pulsar"
    settings = COMMON | {catalog: CLASS, f"{catalog}.service.url": given["service_url"]}
    settings[f"{catalog}.admin.url"] = given["admin_url"]
    pairs = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    return [*first, "--jars", jar, "--driver-class-path", jar, *pairs]


def read_as_stream(spark: SparkSession, given: Mapping[str, Any]) -> None:
    """Read the table as a stream, where this Spark tells a Python source where the query stands."""
    if not has(Capability.TELLS_START):
        return
    name = given["topic"].rpartition("/")[2]
    reader = spark.readStream.option("subscription", "catalog").option("startingOffsets", "earliest")
    rows = reader.table(f"pulsar.public.default.`{name}`").selectExpr("string(value) as v")
    writer = rows.writeStream.format("memory").queryName("from_catalog")
    query = writer.option("checkpointLocation", f"{given['folder']}/ck").trigger(availableNow=True).start()
    assert query.awaitTermination(STREAM_S), query.status
    found = [row.v for row in spark.sql("select v from from_catalog").collect()]
    assert sorted(found) == sorted([*given["values"], "1"]), f"{len(found)} rows"


def pyspark_door(given: Mapping[str, Any]) -> None:
    """By a classic session, made as docs/how-to/sql.md makes it."""
    builder = SparkSession.builder.master("local[2]")
    for name, value in COMMON.items():
        builder = builder.config(name, value)
    urls = {"service_url": given["service_url"], "admin_url": given["admin_url"]}
    spark = configure_spark(builder, **urls).getOrCreate()
    tried(given, by_session(spark), older_state(given))
    read_as_stream(spark, given)
    spark.stop()


def connect_door(given: Mapping[str, Any]) -> None:
    """By a client of Spark Connect, whose own session has no setting and no jar."""
    with connect_server(given) as address:
        spark = SparkSession.builder.remote(address).getOrCreate()
        assert spark.conf.get("spark.sql.catalog.pulsar.service.url") == given["service_url"]
        tried(given, by_session(spark), older_state(given))
        read_as_stream(spark, given)
        spark.stop()


DOORS: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
    "pyspark": pyspark_door,
    "spark-sql": lambda given: tried(given, by_command(given), older_state(given)),
    "connect": connect_door,
}


def main() -> None:
    """Run the script by one door."""
    given = json.loads(sys.argv[2])
    os.makedirs(given["folder"], exist_ok=True)
    DOORS[sys.argv[1]](given)


if __name__ == "__main__":
    main()
