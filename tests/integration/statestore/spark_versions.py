"""Each version and format of logs and state that Spark 4.3 can write, and the settings that make it write them.

From Spark's classes: OffsetSeqLog, CommitLog, OperatorStateMetadata, SymmetricHashJoinStateManager, StateStoreConf,
CompressionCodec, StateStoreEncoding, KeyValueChecksumEncoder.

Spark 4.3 itself refuses to write two forms: join state of version 1 ("Unsupported schema writer version: 1"), and Avro
for another operator than transformWithState ("not supported for operator=aggregation").
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from tests.soak.queries import SESSION

_SQL = "spark.sql.streaming."
_SINKS = {f"{_SQL}queryEvolution.enableSinkEvolution": "true"}
_SOURCES = {f"{_SQL}queryEvolution.enableSourceEvolution": "true", f"{_SQL}offsetLog.formatVersion": "2"}
_ROW_CHECKSUMS = {f"{_SQL}stateStore.rowChecksum.enabled": "true"}
_AVRO = {f"{_SQL}stateStore.encodingFormat": "avro"}
_NO_CHECKSUMS = {f"{_SQL}checkpoint.fileChecksum.enabled": "false"}
CODECS = ("lz4", "lzf", "snappy", "zstd")


@dataclass(frozen=True)
class Form:
    """A query that Spark keeps in one of the forms that it knows.

    Attributes:
        provider, query: of `tests.soak.queries`.
        settings: what makes Spark write this form.
        begins: a file, or the folder that it is in, and the version that each file there begins with.
        operators: how many stateful operators it has.
    """

    provider: str
    query: str
    settings: Mapping[str, str] = field(default_factory=dict)
    begins: Mapping[str, str] = field(default_factory=dict)
    operators: int = 1


def _codec(name: str) -> dict[str, str]:
    return {f"{_SQL}stateStore.compression.codec": name}


def _join(version: int) -> dict[str, str]:
    return {f"{_SQL}join.stateFormatVersion": str(version)}


FORMS: Mapping[str, Form] = {
    "commits-v1": Form("hdfs", "chained", {}, {"offsets": "v1", "commits": "v1"}, 2),
    "commits-v2": Form("changelog2", "chained", {}, {"commits": "v2"}, 2),
    "commits-v3-of-format-1": Form("hdfs", "aggregation", _SINKS, {"commits": "v3"}),
    "commits-v3-of-format-2": Form("changelog2", "deduplication", _SINKS, {"commits": "v3"}),
    "offsets-v2": Form("hdfs", "aggregation", _SOURCES, {"offsets": "v2", "commits": "v1"}),
    "offsets-v2-commits-v3": Form(
        "changelog2", "transform", _SOURCES | _SINKS, {"offsets": "v2", "commits": "v3", "state/0/_metadata/v2": "v2"}
    ),
    "join-v2": Form("rocksdb", "join", _join(2)),
    "join-v3": Form("changelog1", "join", _join(3)),
    "join-v3-of-format-2": Form("changelog2", "join", _join(3)),
    "join-v4": Form("changelog1", "join", _join(4)),
    "join-v4-of-format-2": Form("changelog2", "join", _join(4)),
    "aggregation-v1": Form("hdfs", "aggregation", {f"{_SQL}aggregation.stateFormatVersion": "1"}),
    **{f"deltas-{codec}": Form("hdfs", "deduplication", _codec(codec)) for codec in CODECS},
    **{f"changelog-{codec}": Form("changelog1", "deduplication", _codec(codec)) for codec in CODECS},
    "avro-transform": Form("changelog2", "transform", _AVRO),
    "row-checksums-of-deltas": Form("hdfs", "deduplication", _ROW_CHECKSUMS),
    "row-checksums-of-rocksdb": Form("rocksdb", "aggregation", _ROW_CHECKSUMS),
    "row-checksums-of-changelogs": Form("changelog2", "join", _ROW_CHECKSUMS),
    "no-file-checksums": Form("changelog2", "aggregation", _NO_CHECKSUMS),
}


def session() -> SparkSession:
    """A session of a JVM of our own."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for name, value in SESSION.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
