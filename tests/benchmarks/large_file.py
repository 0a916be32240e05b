"""A large file, written and read through Hadoop on each file system, and as a ledger by BookKeeper's own client."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from eos.spark.jar import FILE_SYSTEM
from statestore.hadoop.jar import jar_path
from statestore.hadoop.session import HADOOP
from tests.benchmarks.rounds import Timed, take_turns
from tests.benchmarks.state_plan import ENTRY_BYTES, WINDOW, StatePlan
from tests.java_peer import JavaPeer

SOURCE = Path(__file__).with_name("FileThroughput.java")
RAW = "raw"
WRITE, READ = "write", "read"
_OPENED = ("java.base/java.nio", "java.base/jdk.internal.misc")
_FLAGS = (
    "-Xmx1g",
    "-XX:MaxDirectMemorySize=1g",
    "-Dio.netty.tryReflectionSetAccessible=true",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
)


class _Contender:
    """One order to the JVM, such as `write URI`."""

    def __init__(self, java: JavaPeer, name: str, order: str) -> None:
        self.name = name
        self._java = java
        self._order = order

    def run(self) -> int:
        """Carry it out; return the number of bytes."""
        return int(self._java.order(self._order, "done"))


def compare(folder: Path, plan: StatePlan, options: Mapping[str, str]) -> dict[str, dict[str, Timed]]:
    """Write the file everywhere in turn, then read it everywhere in turn; return {"write" or "read": {name: times}}.

    Args:
        folder: where the JVM's class and log may be kept for that time.
        options: Hadoop options.
    """
    from pyspark.find_spark_home import _find_spark_home

    classpath = os.pathsep.join([str(jar_path()), str(Path(_find_spark_home(), "jars", "*"))])
    known = {name.removeprefix(HADOOP): value for name, value in FILE_SYSTEM.items()} | dict(options)
    arguments = (
        f"zk+hierarchical://{plan.zookeeper}/ledgers",
        *(str(number) for number in (plan.file_blocks, ENTRY_BYTES, WINDOW)),
        *(f"{name}={value}" for name, value in known.items()),
    )
    with JavaPeer(SOURCE, folder, classpath, arguments, _FLAGS) as java:
        found = {}
        for verb in (WRITE, READ):
            contenders = [_Contender(java, name, f"{verb} {root}/large") for name, root in plan.roots.items()]
            contenders.append(_Contender(java, RAW, f"raw-{verb}"))
            found[verb] = take_turns(contenders, plan, f"large file: {verb}", plan.file_bytes, "bytes")
    return found
