"""Drills: break everything a job stands on, count what came out, and write down what was seen.

The journal comes first; a report is made of the journal alone. Needs the extra `spark-pulsar-eos[drills]`.
"""

from __future__ import annotations

STORE = "spark.sql.streaming.stateStore."
SPARK = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "localhost",
    "spark.sql.shuffle.partitions": "2",
    f"{STORE}providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{STORE}rocksdb.changelogCheckpointing.enabled": "true",
}
"""Spark's settings that the jobs of all drills share: small and local, with their state on RocksDB with changelog."""
