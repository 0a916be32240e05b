"""Checkpoints on file systems that Spark can use and that behave unlike HDFS: the sink's notes are there too."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

import eos
from eos.commit.registration import REGISTRATION, UNLOGGED
from statestore.hadoop.file_systems import Hadoop
from tests.reading import values_of

SOURCE = Path(__file__).with_name("OddFileSystems.java")
SCHEMES = {"plain": "OddFileSystems$Plain", "odd": "OddFileSystems$Odd"}
"""{scheme: class}: what each does is said in the source."""


def know_odd_file_systems(spark: SparkSession, folder: Path) -> None:
    """Compile them into `folder`, and define them beside Hadoop's own classes in the driver's JVM."""
    jvm: Any = spark._jvm
    conf: Any = spark.sparkContext._jsc.hadoopConfiguration()
    if conf.get("fs.plain.impl") is not None:
        return
    javac = shutil.which("javac")
    assert javac is not None, "the tests need a JDK"
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    subprocess.run([javac, "-d", str(folder), "-cp", str(jars), str(SOURCE)], check=True)
    loader = jvm.java.lang.Class.forName("org.apache.hadoop.fs.FileSystem").getClassLoader()
    whole = spark.sparkContext._gateway.new_array(jvm.java.lang.Class, 4)  # type: ignore[union-attr]
    named = jvm.java.lang.Class.forName
    whole[0], whole[1] = named("java.lang.String"), named("[B")
    whole[2] = whole[3] = jvm.java.lang.Integer.TYPE
    define = named("java.lang.ClassLoader").getDeclaredMethod("defineClass", whole)
    define.setAccessible(True)
    for made in ("OddFileSystems", "OddFileSystems$Plain", "OddFileSystems$Missing", "OddFileSystems$Odd"):
        code = (folder / f"{made}.class").read_bytes()
        arguments = spark.sparkContext._gateway.new_array(jvm.java.lang.Object, 4)  # type: ignore[union-attr]
        arguments[0], arguments[1], arguments[2], arguments[3] = made, bytearray(code), 0, len(code)
        define.invoke(loader, arguments)
    for scheme, name in SCHEMES.items():
        conf.set(f"fs.{scheme}.impl", name)


@pytest.fixture(autouse=True, scope="module")
def file_systems(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    know_odd_file_systems(spark, tmp_path_factory.mktemp("classes"))


@pytest.mark.parametrize(
    ("scheme", "guarantee"), [("plain", "exactly-once"), ("odd", "exactly-once"), ("odd", "at-least-once")]
)
def test_a_query_goes_on_from_any_checkpoint_that_spark_can_use(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path, scheme: str, guarantee: Any
) -> None:
    topic, checkpoint, note = make_topic("odd"), tmp_path / "checkpoint", None
    said = REGISTRATION if guarantee == "exactly-once" else UNLOGGED
    (tmp_path / "in").mkdir()
    for batch in range(2):
        (tmp_path / "in" / f"{batch}.txt").write_text(f"{batch}\n")
        sink = eos.sink(pulsar.service_url, topic=topic, name=topic.rpartition("/")[2], guarantee=guarantee)
        rows = spark.readStream.text(str(tmp_path / "in")).groupBy("value").count().select("value")
        started = rows.writeStream.foreachBatch(sink).outputMode("update").trigger(availableNow=True)
        started.option("checkpointLocation", f"{scheme}://{checkpoint}").start().awaitTermination()
        sink.close()
        before, note = note, json.loads((checkpoint / said).read_text())
        assert note != before
        assert not (checkpoint / f"{said}.next").exists()
    assert sorted(values_of(pulsar.service_url, topic)) == ["0", "1"]
    if guarantee == "exactly-once":
        assert note is not None
        assert note["stateful"] is True


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_file_is_replaced_by_a_command_too(spark: SparkSession, tmp_path: Path, scheme: str) -> None:
    hadoop = Hadoop.of(spark)
    for text in (b"old", b"new"):
        hadoop.replace(f"{scheme}://{tmp_path}/note", text)
        assert (tmp_path / "note").read_bytes() == text
    assert not [one.name for one in tmp_path.iterdir() if one.name.endswith(".tmp")]
