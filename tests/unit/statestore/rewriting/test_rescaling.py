"""What is rescaled and what is refused, before anything is written."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from pyspark.sql.types import ArrayType, DoubleType, LongType, StringType, StructField, StructType

from eos.commit.registration import Registration
from eos.spark import capabilities
from eos.spark.capabilities import SparkLacks
from statestore.checkpoint import LocalFiles, OffsetsLogEntry, Operator
from statestore.checkpoint.raw_state import PROVIDER, BatchState
from statestore.errors import Damaged, InvalidInput
from statestore.rewriting.fingerprints import Fingerprint
from statestore.rewriting.partitioning import hash_bytes, hash_int, hash_long, partition_of
from statestore.rewriting.rescaling import _check_places, _compare, _jumping, check, refuse_gone_on, refuse_in_doubt
from statestore.savepoints.savepoint import is_name

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"


def kept(name: str = "dedupe", provider: str = ROCKSDB, partitions: str | None = "2") -> BatchState:
    conf = {PROVIDER: provider} | ({} if partitions is None else {"spark.sql.shuffle.partitions": partitions})
    operators = (Operator(0, name, ("default",), 2, "", ()),) if name else ()
    return BatchState(4, OffsetsLogEntry(1, 0, 0, conf, (), ()), 1, operators)


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (kept(""), "keeps no state. Set spark.sql.shuffle.partitions"),
        (kept(provider="a.b.OwnProvider"), "is kept by OwnProvider. It can be rewritten where it is kept by Rocks"),
        (kept("symmetricHashJoin", HDFS), "is symmetricHashJoin, .* it is for aggregation, dropDuplicates, dropDupl"),
        (kept(provider=""), "an unknown provider"),
        (kept("globalLimit"), r"Operator 0 of file:///c is globalLimit.* it is for aggregation, session windows"),
        (kept(partitions=None), "don't say how many partitions"),
        (kept(partitions="3"), "has 3 partitions already"),
    ],
)
def test_what_cannot_be_rescaled_is_named(state: BatchState, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        check(state, 3, "file:///c")
    check(kept(), 3, "file:///c")


@pytest.mark.parametrize("operator", ["stateStoreSave", "?"])
@pytest.mark.parametrize(
    ("version", "provider", "says"),
    [
        (
            "4.1.4",
            ROCKSDB,
            r"Rescaling state that RocksDB\S+ keeps needs .* Spark 4\.1\.4 lacks it\. It came with 4\.2",
        ),
        ("3.5.9", ROCKSDB, r"lacks it\. It came with 4\.2"),
        ("3.5.9", HDFS, r"lacks it\. It came with 4\.0"),
    ],
)
def test_a_spark_that_cannot_rescale_is_named_before_anything_is_copied(
    version: str, provider: str, says: str, operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark 3.5 does not write the names of operators: what it lacks is said first."""
    monkeypatch.setattr(capabilities, "installed", lambda: version)
    with pytest.raises(SparkLacks, match=says):
        check(kept(operator, provider), 3, "file:///c")


@pytest.mark.parametrize("version", ["4.0.5", "4.2.1"])
def test_a_spark_that_can_rescale_does(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "installed", lambda: version)
    provider = HDFS if version < "4.2" else ROCKSDB  # the other one is rewritten by Spark, since 4.2
    check(kept("stateStoreSave", provider), 3, "file:///c")


def test_a_batch_in_doubt_is_refused(tmp_path: Path) -> None:
    """Its rows may be in the output, and the rescaled query would read them again in another batch."""
    for log in ("offsets", "commits"):
        (tmp_path / log).mkdir()
    files = LocalFiles(tmp_path)
    with pytest.raises(InvalidInput, match="no committed batch yet"):
        refuse_in_doubt(files, "file:///c")
    for batch in range(3):
        (tmp_path / "offsets" / str(batch)).write_text("v1")
    for batch in range(2):
        (tmp_path / "commits" / str(batch)).write_text("v1")
    with pytest.raises(InvalidInput, match=r"Batch 2 of file:///c was begun and is not committed.* rescale then"):
        refuse_in_doubt(files, "file:///c")
    (tmp_path / "commits/2").write_text("v1")
    refuse_in_doubt(files, "file:///c")


def test_a_query_that_has_gone_on_meanwhile_is_noticed(tmp_path: Path) -> None:
    """Else two queries of one id go on from here, and their sink holds batches of both."""
    for log in ("offsets", "commits"):
        (tmp_path / log).mkdir()
        (tmp_path / log / "4").write_text("v1")
    files = LocalFiles(tmp_path)
    refuse_gone_on(files, "file:///c", 4)
    (tmp_path / "offsets" / "5").write_text("v1")
    with pytest.raises(InvalidInput, match="Batch 5 of file:///c was begun"):
        refuse_gone_on(files, "file:///c", 4)
    (tmp_path / "commits" / "5").write_text("v1")
    with pytest.raises(InvalidInput, match=r"runs. It was at batch 4, and is at batch 5 by now\. Stop it"):
        refuse_gone_on(files, "file:///c", 4)


def test_a_name_is_no_address() -> None:
    assert is_name("before-upgrade")
    assert not any(map(is_name, ("bk://zk:2181/q", "/checkpoints/q", "file:///q")))


def test_rows_in_another_partition_than_sparks_key_says_are_refused() -> None:
    _check_places({(0, "default"): Fingerprint(9, 1, 0)}, 2)
    with pytest.raises(InvalidInput, match=r"1 of 9 rows of operator 0, store default, lie in another of 2 partitions"):
        _check_places({(0, "default"): Fingerprint(9, 1, 1)}, 2)


@pytest.mark.parametrize("after", [Fingerprint(8, 1, 0), Fingerprint(9, 2, 0), Fingerprint(9, 1, 1)])
def test_what_was_rewritten_must_be_what_was_there(after: Fingerprint) -> None:
    before = {(0, "default"): Fingerprint(9, 1, 0)}
    _compare(before, before, 3)
    with pytest.raises(Damaged, match=r"is not what was there.* The original is as it was"):
        _compare(before, {(0, "default"): after}, 3)


def test_the_sink_is_told_of_all_batches_since_the_last_of_its_own() -> None:
    first = _jumping(Registration("f", "t", 7), 4, 5)
    assert first.jumped == (5, 5)
    assert _jumping(first, 5, 6).jumped == (5, 6), "rescaled again, and no batch in between"
    assert _jumping(first, 9, 10).jumped == (10, 10)


# ---- where a key goes


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def test_each_kind_of_value() -> None:
    assert signed(hash_int(1, 42)) == -559580957
    assert signed(hash_int(0, 42)) == 933211791
    assert signed(hash_long(1, 42)) == -1712319331
    assert signed(hash_bytes(b"Spark", 42)) == 228093765


def row(number: int | None, text: str) -> bytes:
    """An UnsafeRow of a long and a text."""
    data = text.encode()
    nulls = 1 if number is None else 0
    return struct.pack("<Qqii", nulls, number or 0, len(data), 24) + data.ljust(-len(data) // 8 * -8, b"\0")


def test_columns_are_hashed_one_after_the_other_and_nulls_are_left_out() -> None:
    place = partition_of(StructType([StructField("n", LongType()), StructField("t", StringType())]), 1_000)
    assert place(row(1, "Spark")) == signed(hash_bytes(b"Spark", hash_long(1, 42))) % 1_000
    assert place(row(None, "Spark")) == 228093765 % 1_000


@pytest.mark.parametrize("kind", [DoubleType(), ArrayType(LongType())])
def test_other_types_are_refused_by_name(kind: DoubleType | ArrayType) -> None:
    with pytest.raises(InvalidInput, match=rf"key\.k is of the type {kind.simpleString()}"):
        partition_of(StructType([StructField("k", kind)]), 3)
