"""Hadoop's SequenceFile, as far as Pulsar's filesystem offloader writes it: keys are LongWritable.

    "SEQ" 6  key class  value class  compressed:u8  in blocks:u8  [codec class]  pairs:u32  texts  sync mark:16
    record  length:i32  key length:i32  key  value          a value is compressed alone
    block   -1:i32  sync mark  records:vint  then lengths of keys, keys, lengths of values, values: each length:vint and
            compressed bytes

Records may have -1 and the sync mark before them. Texts have their length before them, as a vint. Source: Hadoop's
SequenceFile and WritableUtils.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from eos.history.offload import OffloadDamaged, OffloadUnknown
from eos.history.offload.stored_object import CHUNK_BYTES, StoredObject, Window

MAX_VALUE_BYTES = 128 * 1024 * 1024
"""Bytes of a value once it is decompressed: more count as damaged. An entry of Pulsar's is smaller."""

_WORD, _LONG = struct.Struct(">i"), struct.Struct(">q")
_VERSION = b"SEQ\x06"
_KEY_CLASS = "org.apache.hadoop.io.LongWritable"
_CODEC = "org.apache.hadoop.io.compress.DefaultCodec"
_SYNC_BYTES, _ESCAPE = 16, -1
_LARGER = range(-113, -121, -1)
"""First bytes of a positive number that is in the one to eight bytes after them."""


@dataclass(frozen=True, slots=True)
class _Header:
    value_class: str
    compressed: bool
    in_blocks: bool
    sync: bytes
    length: int


class SequenceFile:
    """One SequenceFile.

    Attributes:
        path: of the file.
        first_record: the place of its first record.
    """

    def __init__(self, source: StoredObject, value_class: str, chunk_bytes: int = CHUNK_BYTES) -> None:
        """Read its header. Args: the open file; the class of its values, without its package; bytes of a request.

        Raises OffloadDamaged, OffloadUnknown, and what `StoredObject.read` raises.
        """
        self.path, self._source, self._chunk_bytes = source.path, source, chunk_bytes
        self._header = _header(Window(source, 0, source.size, min(chunk_bytes, 4096)), self.path)
        self.first_record = self._header.length
        if self._header.value_class != f"org.apache.hadoop.io.{value_class}":
            raise OffloadUnknown(f"{self.path} holds values of {self._header.value_class}, not {value_class}")

    def records(self, place: int) -> Iterator[tuple[int, bytes]]:
        """Yield key and value of the records from a place on, at which a record begins.

        Raises OffloadDamaged, OffloadUnknown for records in blocks, and what `StoredObject.read` raises.
        """
        if self._header.in_blocks:
            raise OffloadUnknown(f"{self.path} holds its records in compressed blocks, which is not supported")
        window = Window(self._source, place, self._source.size, self._chunk_bytes)
        while window.at < window.end:
            at = window.at
            (length,) = _WORD.unpack(window.take(4))
            if length == _ESCAPE:
                self._sync(window)
                continue
            (key_length,) = _WORD.unpack(window.take(4))
            if key_length != _LONG.size or length < key_length or length > window.end - window.at:
                raise OffloadDamaged(f"{self.path} has no record at byte {at}")
            record = window.take(length)
            yield _LONG.unpack_from(record)[0], self._value(record[key_length:], at)

    def long_pairs(self) -> dict[int, int]:
        """Return the whole file, whose values are LongWritable too, and whose records are in blocks.

        Raises as `records`.
        """
        if not (self._header.in_blocks and self._header.compressed):
            raise OffloadUnknown(f"{self.path} does not hold its records in compressed blocks")
        window = Window(self._source, self.first_record, self._source.size, self._chunk_bytes)
        found: dict[int, int] = {}
        while window.at < window.end:
            at = window.at
            if _WORD.unpack(window.take(4))[0] != _ESCAPE:
                raise OffloadDamaged(f"{self.path} has no block at byte {at}")
            self._sync(window)
            count = _vint(window, self.path)
            where = f"the block at byte {at} of {self.path}"
            parts = [_inflate(window.take(_vint(window, self.path)), where) for _ in range(4)]
            if len(parts[1]) != count * _LONG.size or len(parts[3]) != count * _LONG.size:
                raise OffloadDamaged(f"{where} does not hold {count} pairs of numbers")
            keys, values = (struct.unpack(f">{count}q", parts[one]) for one in (1, 3))
            found |= dict(zip(keys, values, strict=True))
        return found

    def _value(self, stored: memoryview, at: int) -> bytes:
        return _inflate(stored, f"the record at byte {at} of {self.path}") if self._header.compressed else bytes(stored)

    def _sync(self, window: Window) -> None:
        at = window.at
        if window.take(_SYNC_BYTES) != self._header.sync:
            raise OffloadDamaged(f"{self.path} has another sync mark at byte {at} than at its beginning")


def _header(window: Window, path: str) -> _Header:
    if window.peek(4) != _VERSION:
        raise OffloadDamaged(f"{path} does not begin as a SequenceFile of version 6 does")
    window.take(4)
    key_class, value_class = _text(window, path), _text(window, path)
    if key_class != _KEY_CLASS:
        raise OffloadUnknown(f"{path} holds keys of {key_class}, not of {_KEY_CLASS}")
    compressed, in_blocks = (bool(one) for one in window.take(2))
    if compressed and (codec := _text(window, path)) != _CODEC:
        raise OffloadUnknown(f"{path} was compressed by {codec}, which is not supported")
    (pairs,) = _WORD.unpack(window.take(4))
    for _ in range(2 * pairs):
        _text(window, path)
    return _Header(value_class, compressed, in_blocks, bytes(window.take(_SYNC_BYTES)), window.at)


def _text(window: Window, path: str) -> str:
    return bytes(window.take(_vint(window, path))).decode("utf-8", "replace")


def _vint(window: Window, path: str) -> int:
    """Take a length, written as Hadoop writes numbers of variable length."""
    at = window.at
    (first,) = struct.unpack(">b", window.take(1))
    value: int = first
    if first in _LARGER:
        value = int.from_bytes(window.take(_LARGER.start - first + 1))
    if not 0 <= value <= window.end - window.at:
        raise OffloadDamaged(f"{path} has a wrong length at byte {at}")
    return value


def _inflate(stored: memoryview, where: str) -> bytes:
    try:
        inflating = zlib.decompressobj()
        found = inflating.decompress(stored, MAX_VALUE_BYTES)
    except zlib.error as error:
        raise OffloadDamaged(f"{where} can't be decompressed ({error})") from error
    if not inflating.eof:
        raise OffloadDamaged(f"{where} ends too early, or has more than {MAX_VALUE_BYTES} bytes")
    return found
