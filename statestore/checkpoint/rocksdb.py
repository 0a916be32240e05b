"""A RocksDB snapshot: a zip of RocksDB's small files, and the names of the SST files that belong to it.

8.zip or 8_ID.zip    CURRENT, MANIFEST-…, OPTIONS-…, and `metadata`: "v1" or "v2", then JSON
SSTs/NAME-ID.sst     tables, shared by the snapshots that follow each other        logs/NAME-ID.log    archived logs

Spark 4.0 writes the number of `spark.sql.streaming.stateStore.checkpointFormatVersion` where all others write the
version of the metadata, 1 (RocksDBCheckpointMetadata.VERSION). The JSON is the same. Newer Sparks refuse such a v2.
"""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
import zlib
from dataclasses import dataclass

from eos.json_reader import read_json
from statestore.checkpoint.logs import read_version
from statestore.errors import Damaged

METADATA = "metadata"
_FIELDS = {
    "sstFiles",
    "logFiles",
    "numKeys",
    "numInternalKeys",
    "columnFamilyMapping",
    "columnFamilyTypeMap",
    "maxColumnFamilyId",
}
"""Of the metadata, in Spark 4.0 as in 4.3."""
# What zipfile raises where a bit of a zip is flipped: a name is not UTF-8, a member is said to be encrypted, or to be
# compressed by another method.
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)
# The last eight bytes of a table: block-based, as Spark writes it, and the older form without a version.
_MAGICS = (0x88E241B785F4CFF7.to_bytes(8, "little"), 0xDB4775248B80FB57.to_bytes(8, "little"))


@dataclass(frozen=True, slots=True)
class SstTable:
    """A file beside the zip that the snapshot needs.

    Attributes:
        path: relative to the store's folder: SSTs/… or logs/….
        length: bytes.
    """

    path: str
    length: int


@dataclass(frozen=True, slots=True)
class RocksDbSnapshot:
    """The content of a zip.

    Attributes:
        tables: SST files and archived logs.
        keys: how many keys the state has; None if Spark didn't count them.
    """

    tables: tuple[SstTable, ...]
    keys: int | None


def read_snapshot(data: bytes) -> RocksDbSnapshot:
    """Read a zip, each of its members with its CRC.

    Raises:
        Damaged: it is cut short, a member is not what was written, or it is not such a zip.
        UnknownVersion: a newer Spark wrote it.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except _UNREADABLE as error:
        raise Damaged(f"the zip is cut short or damaged: {error}") from error
    if METADATA not in members:
        raise Damaged(f"the zip has no {METADATA}. It has {', '.join(sorted(members)) or 'nothing'}")
    version, _, text = members[METADATA].partition(b"\n")
    known = 2 if version != b"v1" and _is_of_spark_4_0(text) else 1
    read_version(f"the zip's {METADATA}", version, known)
    try:
        said = read_json(text)
        tables = [
            SstTable(f"SSTs/{sst['dfsSstFileName']}", int(sst["sizeBytes"])) for sst in said.get("sstFiles") or ()
        ]
        tables += [
            SstTable(f"logs/{log['dfsLogFileName']}", int(log["sizeBytes"])) for log in said.get("logFiles") or ()
        ]
        keys = int(said.get("numKeys", -1))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(f"the zip's {METADATA} can't be read: {error}") from error
    return RocksDbSnapshot(tuple(tables), keys if keys >= 0 else None)


def _is_of_spark_4_0(text: bytes) -> bool:
    """Return whether metadata have no field but those of Spark 4.0: what a later v2 has may need other files, too."""
    try:
        said = read_json(text)
    except ValueError:
        return False
    return isinstance(said, dict) and "sstFiles" in said and said.keys() <= _FIELDS


def check_table(path: str, data: bytes) -> None:
    """Look at what every SST file ends with. Its blocks are RocksDB's own to check.

    Raises:
        Damaged: not an SST file, or cut short.
    """
    if path.endswith(".sst") and data[-8:] not in _MAGICS:
        raise Damaged("it doesn't end as an SST file does. It is cut short, or something else")
