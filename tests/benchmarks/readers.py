"""Rows of a topic through Spark and away: by this source, by those of other clients, and from memory."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from eos.local import jars
from tests.benchmarks import client_cpu
from tests.benchmarks.plan import Broker, create_topic, published
from tests.benchmarks.python_sources import COLUMNS, ClientSource, ReadySource
from tests.benchmarks.rounds import Timed, take_turns
from tests.benchmarks.rows import KEYS
from tests.benchmarks.source_plan import PARTITIONS, Case, SourcePlan
from tests.java_peer import JavaPeer

HERE = Path(__file__).parent
TABLE = "PulsarTable"
VALUE_BYTES = 100
READY_ROWS = 10_000
OURS, CLIENT, JAVA, READY = "this_source", "pulsar_client", "java_source", "ready"


class Reading:
    """A batch read whose rows are thrown away.

    Attributes:
        name: its name in the results.
        df: the rows.
    """

    def __init__(self, name: str, df: DataFrame) -> None:
        self.name = name
        self.df = df

    def run(self) -> int:
        """Read everything once; return how many rows Spark has counted where they come from."""
        self.df.write.format("noop").mode("overwrite").save()
        session = self.df.sparkSession
        assert session.sparkContext._jsc is not None
        session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        store = session._jsparkSession.sharedState().statusStore()
        execution = store.executionsList().last()
        told = store.executionMetrics(execution.executionId())
        metrics = execution.metrics()
        every = (metrics.apply(place) for place in range(metrics.size()))
        ids = (one.accumulatorId() for one in every if one.name() == "number of output rows")
        counted = {told.apply(number) for number in ids if told.contains(number)}
        if len(counted) != 1:
            raise RuntimeError(f"{self.name}: what is read and what is thrown away are different rows: {counted}")
        return int(counted.pop().replace(",", ""))


def readings(session: SparkSession, broker: Broker, topic: str, rows: int, folder: Path) -> list[Reading]:
    """Return a read of a filled topic by each contender.

    Args:
        session: knows the Python sources already (`make_known`).
        topic: the partitioned topic.
        rows: of each of its partitions; all but this source are told, and need not look for the end.
        folder: with the classes (`make_known`), and for the ready rows.
    """
    told: dict[str, str | int] = {"partitions": PARTITIONS, "rows": rows}
    there = {"service": broker.service_url, "topic": topic, **told}
    client_jars = sorted(jars.folder().glob("*.jar"))
    in_java = {**there, "classpath": ":".join(map(str, (folder, *client_jars)))}
    read = session.read.format("pulsar").options(**{"service.url": broker.service_url, "topic": topic})
    keys = [b"key-%d" % row for row in range(READY_ROWS)]
    ready = pa.table({"value": [bytes(VALUE_BYTES)] * READY_ROWS, "__key": keys})
    return [
        Reading(OURS, read.schema(COLUMNS).load()),
        Reading(CLIENT, session.read.format(ClientSource.name()).options(**there).load()),
        Reading(JAVA, session.read.format(TABLE).options(**in_java).load()),
        from_memory(session, READY, ready, COLUMNS, PARTITIONS * rows, folder),
    ]


def from_memory(
    session: SparkSession, name: str, ready: pa.Table, schema: StructType | str, rows: int, folder: Path
) -> Reading:
    """Return a read of the same rows again and again.

    Args: the session, which knows the Python sources already; the read's name in the results; the rows, and their
    columns for Spark; how many to read; where to keep them.
    """
    file = folder / f"{name}.arrows"
    with pa.ipc.new_stream(file, ready.schema) as out:
        out.write(ready.combine_chunks())
    told: dict[str, str | int] = {"partitions": PARTITIONS, "rows": rows // PARTITIONS, "file": str(file)}
    return Reading(name, session.read.format(ReadySource.name()).options(**told).schema(schema).load())


def make_known(session: SparkSession, folder: Path) -> None:
    """Make the sources in Java and Python known to the session; the classes are kept in `folder`."""
    javac = shutil.which("javac")
    if javac is None:
        raise RuntimeError("no javac on the PATH: the Java source is compiled here, by a JDK")
    spark_jars = str(Path(pyspark.__file__).parent / "jars" / "*")
    for name, classpath in (("PulsarRows", jars.classpath()), (TABLE, spark_jars)):
        subprocess.run([javac, "-nowarn", "-d", str(folder), "-cp", classpath, str(HERE / f"{name}.java")], check=True)
    archive = folder / f"{TABLE}.jar"
    with zipfile.ZipFile(archive, "w") as out:
        for found in folder.glob(f"{TABLE}*.class"):
            out.write(found, found.name)
    session.sql(f"ADD JAR '{archive}'")
    for source in (ClientSource, ReadySource):
        session.dataSource.register(source)


def fill(plan: SourcePlan, folder: Path, *cases: Case) -> dict[str, str]:
    """Write a topic for each case by the Java client; return their names. Raises RuntimeError when rows are missing."""
    topics = {}
    arguments = (plan.broker.service_url, str(VALUE_BYTES), str(KEYS))
    with JavaPeer(HERE / "FillTopic.java", folder, jars.classpath(), arguments) as java:
        for case in cases:
            topic = create_topic(plan.broker, f"{plan.stem}-{case.name}", PARTITIONS)
            each = case.rows // PARTITIONS
            for number in range(PARTITIONS):
                java.order(f"fill {topic}-partition-{number} {case.messages} {each}", "filled")
            if (stored := published(plan.broker, topic)) != case.rows:
                raise RuntimeError(f"the broker has {stored} messages of {topic}; it should have {case.rows}")
            plan.tell(f"{case.name}: {case.rows:,} rows are stored")
            topics[case.name] = topic
    return topics


def compare(
    session: SparkSession, plan: SourcePlan, case: Case, topic: str, folder: Path, without: tuple[str, ...] = ()
) -> dict[str, Timed]:
    """Let the contenders read a filled topic in turn; return what each took, of CPU too."""
    contenders = readings(session, plan.broker, topic, case.rows // PARTITIONS, folder)
    chosen = [one for one in contenders if one.name not in without]
    return take_turns(chosen, plan, case.name, case.rows, cpu=client_cpu.of_session(session))
