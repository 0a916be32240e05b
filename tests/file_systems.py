"""File systems of Hadoop's that behave unlike HDFS, made known to a Spark session that runs already."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

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
