from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest
from pyarrow import fs

from eos.history.offload import OffloadDamaged, OffloadError, OffloadUnknown, sequence_file
from eos.history.offload.sequence_file import SequenceFile
from eos.history.offload.stored_object import StoredObject

SYNC = bytes(range(16))


def text(word: str) -> bytes:
    return bytes([len(word)]) + word.encode()


def header(
    *, key: str = "LongWritable", value: str = "BytesWritable", codec: str | None = None, blocks: bool = False
) -> bytes:
    names = text(f"org.apache.hadoop.io.{key}") + text(f"org.apache.hadoop.io.{value}")
    compressed = b"" if codec is None else text(f"org.apache.hadoop.io.compress.{codec}")
    pairs = struct.pack(">i", 1) + text("name") + text("value")
    return b"SEQ\x06" + names + bytes([codec is not None, blocks]) + compressed + pairs + SYNC


def record(key: int, value: bytes) -> bytes:
    return struct.pack(">iiq", 8 + len(value), 8, key) + value


def opened(tmp_path: Path, content: bytes) -> SequenceFile:
    (tmp_path / "file").write_bytes(content)
    return SequenceFile(StoredObject(fs.LocalFileSystem(), str(tmp_path / "file")), "BytesWritable", 32)


def test_plain_and_compressed_records_and_sync_marks_are_read(tmp_path: Path) -> None:
    mark = b"\xff\xff\xff\xff" + SYNC
    plain = opened(tmp_path, header() + record(-1, b"a") + mark + record(0, b"bc") + mark)
    assert list(plain.records(plain.first_record)) == [(-1, b"a"), (0, b"bc")]
    packed = opened(tmp_path, header(codec="DefaultCodec") + record(0, zlib.compress(b"bc")))
    assert list(packed.records(packed.first_record)) == [(0, b"bc")]


@pytest.mark.parametrize(
    ("content", "kind", "said"),
    [
        (b"SEQ\x05" + header()[4:], OffloadDamaged, "as a SequenceFile of version 6"),
        (header(key="Text"), OffloadUnknown, "holds keys of org.apache.hadoop.io.Text"),
        (header(value="Text"), OffloadUnknown, "holds values of org.apache.hadoop.io.Text"),
        (header(codec="SnappyCodec"), OffloadUnknown, "compressed by org.apache.hadoop.io.compress.SnappyCodec"),
        (header(blocks=True) + record(0, b"a"), OffloadUnknown, "in compressed blocks"),
        (header() + b"\xff\xff\xff\xff" + SYNC[::-1], OffloadDamaged, "another sync mark"),
        (header() + struct.pack(">iiq", 7, 8, 0), OffloadDamaged, "no record at byte"),
        (header() + struct.pack(">iiq", 2**31 - 1, 8, 0), OffloadDamaged, "no record at byte"),
        (header(codec="DefaultCodec") + record(0, b"not zlib"), OffloadDamaged, "can't be decompressed"),
        (header(codec="DefaultCodec") + record(0, zlib.compress(b"abc")[:-1]), OffloadDamaged, "ends too early"),
    ],
)
def test_other_forms_and_damage_are_told_apart(
    tmp_path: Path, content: bytes, kind: type[OffloadError], said: str
) -> None:
    def read() -> None:
        found = opened(tmp_path, content)
        list(found.records(found.first_record))

    with pytest.raises(kind, match=said):
        read()


def test_a_value_that_grows_without_end_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence_file, "MAX_VALUE_BYTES", 1_000)
    found = opened(tmp_path, header(codec="DefaultCodec") + record(0, zlib.compress(b"\0" * 1_001)))
    with pytest.raises(OffloadDamaged, match="more than 1000 bytes"):
        list(found.records(found.first_record))
