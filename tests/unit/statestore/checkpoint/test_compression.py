"""Streams as Spark compresses them, and what damage looks like."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from statestore.checkpoint.compression import COMPRESSED, compress, decompress
from statestore.errors import Damaged


def lz4(content: bytes, block: int = 64, compressed: bool = True) -> bytes:
    """What net.jpountz.lz4.LZ4BlockOutputStream writes."""
    out = b""
    for at in range(0, len(content), block):
        piece = content[at : at + block]
        packed = bytes(pa.compress(piece, codec="lz4_raw", asbytes=True)) if compressed else piece
        check = xxhash.xxh32_intdigest(piece, 0x9747B28C) & 0x0FFFFFFF
        out += (
            struct.pack("<8sBiiI", b"LZ4Block", 0x25 if compressed else 0x15, len(packed), len(piece), check) + packed
        )
    return out + struct.pack("<8sBiiI", b"LZ4Block", 0x15, 0, 0, 0)


@given(st.binary(max_size=400), st.booleans())
def test_lz4_comes_back(content: bytes, compressed: bool) -> None:
    assert decompress(lz4(content, compressed=compressed)) == content


@pytest.mark.parametrize("codec", COMPRESSED)
@given(content=st.binary(max_size=400), times=st.sampled_from([1, 500]))
def test_what_is_compressed_here_comes_back(codec: str, content: bytes, times: int) -> None:
    assert decompress(compress(content * times, codec)) == content * times


@given(st.binary(min_size=1, max_size=200), st.data())
def test_a_flipped_bit_in_a_block_is_found(content: bytes, data: st.DataObject) -> None:
    stream = bytearray(lz4(content, compressed=False))
    at = data.draw(st.integers(21, 20 + min(len(content), 64)))
    stream[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(Damaged):
        decompress(bytes(stream))


@given(st.binary(min_size=1, max_size=200), st.data())
def test_a_stream_cut_short_is_found(content: bytes, data: st.DataObject) -> None:
    stream = lz4(content)
    with pytest.raises(Damaged):
        decompress(stream[: data.draw(st.integers(0, len(stream) - 1))])


def test_what_follows_the_end_is_found() -> None:
    with pytest.raises(Damaged, match="follow the last"):
        decompress(lz4(b"abc") + b"x")


def test_snappy_of_xerial() -> None:
    chunk = bytes(pa.compress(b"abc" * 100, codec="snappy", asbytes=True))
    stream = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + struct.pack(">i", len(chunk)) + chunk
    assert decompress(stream) == b"abc" * 100
    with pytest.raises(Damaged, match="cut short"):
        decompress(stream[:-3])
    endless = b"\xff" * 11 + b"\x01"  # a length of 84 bits
    with pytest.raises(Damaged, match="too large"):
        decompress(stream[:16] + struct.pack(">i", len(endless)) + endless)


def test_zstd() -> None:
    stream = bytes(pa.compress(b"abc" * 100, codec="zstd", asbytes=True))
    assert decompress(stream) == b"abc" * 100
    with pytest.raises(Damaged):
        decompress(b"\x28\xb5\x2f\xfd" + b"\xff" * 30)


def test_lzf_as_spark_writes_it() -> None:
    # 3 literals, then a reference of 297 bytes that repeats them: 7 in three bits and 288 in the next byte is too long
    # for one, so two: 264 and 33.
    chunk = b"\x02abc" + bytes([0xE0, 255, 2]) + bytes([0xE0, 31 - 7, 2])
    length = 3 + (255 + 7 + 2) + (24 + 7 + 2)
    stream = b"ZV\x01" + struct.pack(">HH", len(chunk), length) + chunk
    assert decompress(stream) == (b"abc" * 100)[:length]
    too_far = stream.replace(b"\xe0\xff\x02", b"\xe0\xff\x03")
    for wrong in (stream[:-1], stream[:5] + b"\0" + stream[6:], too_far, stream + b"ZX"):
        with pytest.raises(Damaged):
            decompress(wrong)


def test_rubbish_is_said_to_be_damaged() -> None:
    for rubbish in (b"", b"LZ5Block", b"v1\n{}"):
        with pytest.raises(Damaged, match="begins with"):
            decompress(rubbish)
