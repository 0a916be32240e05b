"""Rewriting the state of Spark's default provider, HDFSBackedStateStoreProvider, which Spark itself can't.

It keeps the state of a partition in memory, and so is it done here, in that of the driver, one operator after the
other. A snapshot of a version is enough for Spark to begin with (HDFSBackedStateStoreProvider.loadMap). Like Spark's
own repartitioning it is a batch that reads nothing: the offsets of the last with another number of partitions, state of
the next version, and a commit as the last.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import google_crc32c

from statestore.checkpoint.changes import changes_in, snapshot_of
from statestore.checkpoint.compression import COMPRESSED, compress
from statestore.checkpoint.files import Files, HadoopFiles, join
from statestore.checkpoint.logs import COMMITS, OFFSETS
from statestore.checkpoint.operators import DEFAULT_STORE, PARTITIONS
from statestore.checkpoint.raw_state import BatchState
from statestore.checkpoint.stores import chain, store_files
from statestore.errors import CutFailed, Damaged, InvalidInput
from statestore.hadoop.file_systems import Hadoop
from statestore.rewriting.partitioning import partition_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

# Those whose state is partitioned by the whole key.
OPERATORS = ("stateStoreSave", "dedupe", "dedupeWithinWatermark")
_CODEC = "spark.sql.streaming.stateStore.compression.codec"
_ROW_CHECKSUM = struct.Struct("<I")  # CRC32C
_ROW_CHECKSUMS = "spark.sql.streaming.stateStore.rowChecksum.enabled"


def check_format(kept: BatchState) -> None:
    """Refuse files that are not written here.

    Raises:
        InvalidInput: it names the setting.
    """
    codec = kept.offsets.conf.get(_CODEC, "lz4")
    if codec not in COMPRESSED:
        raise InvalidInput(f"The state is compressed with {codec}. Only {', '.join(COMPRESSED)} are written here")


def rewrite(
    hadoop: Hadoop, files: HadoopFiles, kept: BatchState, partitions: int, keys: Mapping[int, StructType]
) -> None:
    """Write the state after a batch into so many partitions, as the batch after it.

    Args:
        keys: the schema of each operator's keys.

    Raises:
        InvalidInput: keys are of a type whose hash is not known.
        CutFailed: a file of the state is missing.
        Damaged: one can't be read.
    """
    new = kept.batch + 1
    codec = kept.offsets.conf.get(_CODEC, "lz4")
    places = {operator.id: partition_of(keys[operator.id], partitions) for operator in kept.operators}
    hadoop.write(files.uri(join(OFFSETS, str(new))), _planned(files.read(join(OFFSETS, str(kept.batch))), partitions))
    checksums = kept.offsets.conf.get(_ROW_CHECKSUMS, "false") == "true"
    for operator in kept.operators:
        place = places[operator.id]
        state: list[dict[bytes, bytes]] = [{} for _ in range(partitions)]
        for partition in range(kept.partitions or 0):
            folder = operator.folder(partition, DEFAULT_STORE)
            for key, value in load(files, folder, kept.batch + 1, checksums).items():
                state[place(key)][key] = value
        for partition, rows in enumerate(state):
            path = join(operator.folder(partition, DEFAULT_STORE), f"{new + 1}.snapshot")
            hadoop.write(files.uri(path), compress(snapshot_of(rows.items()), codec))
    hadoop.write(files.uri(join(COMMITS, str(new))), files.read(join(COMMITS, str(kept.batch))))


def _planned(offsets: bytes, partitions: int) -> bytes:
    version, said, *sources = offsets.split(b"\n")
    metadata = json.loads(said)
    metadata["conf"][PARTITIONS] = str(partitions)
    return b"\n".join([version, json.dumps(metadata, separators=(",", ":")).encode(), *sources])


def load(files: Files, folder: str, version: int, checksums: bool) -> dict[bytes, bytes]:
    """Return the keys and values of a store, as they are stored.

    Args:
        checksums: each row has one; it stays before its value.

    Raises:
        CutFailed: a file of the state is missing.
        Damaged: one can't be read, or a row does not have its checksum.
    """
    made_of = chain(folder, store_files(files, folder), version)
    for gap in made_of.gaps[:1]:
        raise CutFailed(f"The state can't be read: {gap.path}: {gap.reason}")
    state: dict[bytes, bytes] = {}
    for file in made_of.files:
        _apply(state, changes_in(files.read(file.path)), file.path if checksums else None)
    return state


def _apply(state: dict[bytes, bytes], changes: Iterable[tuple[bytes, bytes | None]], checked: str | None) -> None:
    """Apply changes; `checked` is the file's path where its rows have checksums, which move with their rows.

    The checksum of a row is over its key and its value, and lies before the value; that of a deletion is over its key,
    and lies before the key (KeyValueChecksumEncoder).
    """
    for key, value in changes:
        if value is None:
            state.pop(key if checked is None else _checked(key, b"", checked), None)
        else:
            if checked is not None:
                _checked(value, key, checked)
            state[key] = value


def _checked(data: bytes, before: bytes, path: str) -> bytes:
    """Return data without the checksum before it. Raises Damaged: it isn't that of the row."""
    content = data[_ROW_CHECKSUM.size :]
    wrong = len(data) < _ROW_CHECKSUM.size
    if wrong or _ROW_CHECKSUM.unpack_from(data)[0] != google_crc32c.value(before + content):
        raise Damaged(f"A row of {path} does not have its checksum")
    return content
