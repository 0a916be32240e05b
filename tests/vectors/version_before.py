"""Write tests/vectors/version_before.tar.xz: what a version leaves for its successor to go on with.

    PYTHONPATH=CHECKOUT python -P tests/vectors/version_before.py VERSION TARGET      (in the folder CHECKOUT)

CHECKOUT is a checkout of the version to keep data of, with its jar of bk://. The script uses no module of the tests,
only what that version offers its users, and starts a Pulsar of its own. One query runs three times:

1. It commits batches 0 and 1, then its driver dies before it asks for the commit of batch 2: an INTENT without MARKER.
2. It takes over, ends that transaction, writes batch 2 again, and dies after the commit, before Spark knows of it.

So the successor must skip batch 2 and write batch 3. The savepoints are of the same checkpoint.
"""

from __future__ import annotations

import base64
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import httpx
import pulsar as official
from kazoo.client import KazooClient
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import eos
from eos.local import LocalPulsar
from eos.steps import Phase, Step
from statestore import configure_spark, savepoints
from statestore.savepoints import pulsar_topic
from tests.clients import official_client

NAME = "version-before"
TOPIC = f"persistent://public/default/{NAME}"
CONTROL = f"persistent://public/default/__eos-{NAME}"
SAVEPOINTS = "public/default/version-before-savepoints"
TREE = "/eos-bk"  # where bk:// keeps its names, unless told otherwise
SILENCE_MS = 2_000


def main(version: str, target: str) -> None:
    """Make all of it."""
    with tempfile.TemporaryDirectory() as folder, LocalPulsar() as pulsar:
        httpx.put(f"{pulsar.admin_url}/admin/v2/persistent/public/default/{NAME}", timeout=30).raise_for_status()
        checkpoint = Path(folder, "checkpoint")
        for step, batch in (("end-sent", 2), ("return", 2)):
            ran = subprocess.run(
                [sys.executable, "-P", __file__, "run", pulsar.service_url, str(checkpoint), step, str(batch)],
                start_new_session=True,
            )
            if ran.returncode != -signal.SIGKILL:
                raise SystemExit(f"the driver was to die at {step} of batch {batch}, and ended with {ran.returncode}")
        content = {f"checkpoint/{path}": data for path, data in files_below(checkpoint).items()}
        content["control.json"] = as_json(messages(pulsar.service_url, CONTROL))
        content |= savepoints_of(checkpoint, pulsar)
        content["README"] = f"Made of {version} by tests/vectors/version_before.py\n".encode()
        with tarfile.open(target, "w:xz") as archive:
            for name, data in sorted(content.items()):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))


def run(service_url: str, checkpoint: str, last_step: str, last_batch: str) -> None:
    """Run the query until the process kills itself before a step of a batch."""

    def die(step: Step, phase: Phase, batch_id: int | None) -> None:
        if (step, phase, batch_id) == (last_step, "before", int(last_batch)):
            os.killpg(0, signal.SIGKILL)

    spark = session()
    sink = eos.sink(service_url, topic=TOPIC, name=NAME, observer=die)
    numbers = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", 20)
        .option("numPartitions", 2)
        .option("startTimestamp", 1_700_000_000_000)
        .load()
    )
    key = F.concat(F.lit("k"), F.col("value") % 7)
    counts = numbers.groupBy(key.alias("key")).count()

    def write(df: DataFrame, batch_id: int) -> None:
        sink(df.select("key", F.concat_ws("=", "key", "count").alias("value")), batch_id)

    query = counts.writeStream.outputMode("update").foreachBatch(write).option("checkpointLocation", checkpoint)
    query.start().awaitTermination()


def session() -> SparkSession:
    """Start Spark with `bk://`."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.driver.host", "localhost")
    made: SparkSession = configure_spark(builder).getOrCreate()
    return made


def savepoints_of(checkpoint: Path, pulsar: LocalPulsar) -> dict[str, bytes]:
    """Make a savepoint on a topic, and one on BookKeeper with its whole tree of names; messages and znodes as JSON."""
    spark = session()
    source, bk = checkpoint.as_uri(), f"bk://{pulsar.zookeeper}/query"
    pulsar_topic.create("kept", source, f"{pulsar.service_url}/{SAVEPOINTS}", spark=spark)
    jvm: Any = spark._jvm
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    paths = [jvm.org.apache.hadoop.fs.Path(uri) for uri in (source, bk)]
    (local, tree), (here, there) = [path.getFileSystem(conf) for path in paths], paths
    jvm.org.apache.hadoop.fs.FileUtil.copy(local, here, tree, there, False, conf)
    savepoints.create("kept", bk, spark=spark)
    client = KazooClient(pulsar.zookeeper)
    client.start()
    nodes = znodes(client, TREE)
    client.stop()
    spark.stop()
    return {
        "savepoint-topic.json": as_json(messages(pulsar.service_url, f"persistent://{SAVEPOINTS}")),
        "savepoint-znodes.json": as_json(nodes),
    }


def messages(service_url: str, topic: str) -> list[dict[str, Any]]:
    """Return what a new reader of the official client gets."""
    found: list[dict[str, Any]] = []
    with official_client(service_url) as client:
        reader = client.create_reader(topic, official.MessageId.earliest)
        while True:
            try:
                message = reader.read_next(SILENCE_MS)
            except official.Timeout:
                return found
            text = base64.b64encode(message.data()).decode()
            found.append({"key": message.partition_key(), "properties": message.properties(), "payload": text})


def znodes(client: KazooClient, path: str) -> list[dict[str, Any]]:
    """Return a znode and all below it, parents first."""
    data, stat = client.get(path)
    text = base64.b64encode(data).decode()
    found = [{"path": path, "data": text, "version": stat.version, "ephemeral": stat.ephemeralOwner != 0}]
    for child in sorted(client.get_children(path)):
        found += znodes(client, f"{path}/{child}")
    return found


def files_below(folder: Path) -> dict[str, bytes]:
    """Return all files of a checkpoint but Hadoop's own checksums."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(".crc")
    }


def as_json(content: object) -> bytes:
    """Return it as text."""
    return (json.dumps(content, indent=1) + "\n").encode()


if __name__ == "__main__":
    run(*sys.argv[2:]) if sys.argv[1] == "run" else main(*sys.argv[1:])
