"""A ledger as Pulsar's filesystem offloader writes it: a Hadoop MapFile, a folder of two SequenceFiles.

`data` holds each entry by its number, and at -1 the ledger's metadata (LedgerMetadataFormat). `index` has every 128th
key with its place in `data`. Source: Pulsar's FileSystemManagedLedgerOffloader, and Hadoop's MapFile.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError

from eos.bookkeeper.wire.bookkeeper_pb2 import LedgerMetadataFormat
from eos.history.offload import OffloadDamaged
from eos.history.offload.sequence_file import SequenceFile
from eos.history.offload.stored_object import CHUNK_BYTES, StoredObject

METADATA_KEY = -1
_SIZE = struct.Struct(">i")


class MapFileReader:
    """Reads the entries of one MapFile."""

    def __init__(self, files: Any, folder: str, data: StoredObject, chunk_bytes: int = CHUNK_BYTES) -> None:
        """Read the ledger's metadata. Args: a `pyarrow.fs.FileSystem`; the folder; its open data; bytes of a request.

        Raises OffloadDamaged, OffloadUnknown, OffloadUnavailable.
        """
        self._files, self._index_path = files, f"{folder}/index"
        self._data = SequenceFile(data, "BytesWritable", chunk_bytes)
        key, value = next(self._data.records(self._data.first_record), (0, b""))
        try:
            if key != METADATA_KEY:
                raise OffloadDamaged(f"{data.path} does not begin with the metadata of its ledger")
            self._last = LedgerMetadataFormat.FromString(_bytes(value, data.path)).lastEntryId
        except DecodeError as error:
            raise OffloadDamaged(f"{data.path} has damaged ledger metadata ({error})") from error

    def read(self, first: int, last: int) -> Iterator[tuple[int, bytes, str]]:
        """Yield the entries `first` to `last` in order: number, bytes as the broker wrote them, and where they are.

        Raises as the constructor.
        """
        path = self._data.path
        if last > self._last:
            raise OffloadDamaged(f"{path} ends with entry {self._last}, before entry {last}")
        expected, place = self._begin(first)
        for key, value in self._data.records(place):
            if key != expected:
                raise OffloadDamaged(f"{path} has entry {key} where entry {expected} belongs")
            if key >= first:
                yield key, _bytes(value, f"{path}, entry {key}"), path
            if key == last:
                return
            expected += 1
        raise OffloadDamaged(f"{path} ends before entry {expected}")

    def _begin(self, first: int) -> tuple[int, int]:
        """Return the last key in the index that is not after an entry, and its place in the data."""
        with StoredObject(self._files, self._index_path) as source:
            places = SequenceFile(source, "LongWritable").long_pairs()
        keys = [key for key in places if key <= first]
        if not keys:
            raise OffloadDamaged(f"{self._index_path} does not begin with the metadata of the ledger")
        return max(keys), places[max(keys)]


def _bytes(value: bytes, where: str) -> bytes:
    """Return what a BytesWritable holds."""
    if len(value) < _SIZE.size or _SIZE.unpack_from(value)[0] != len(value) - _SIZE.size:
        raise OffloadDamaged(f"the length of a value is wrong in {where}")
    return value[_SIZE.size :]
