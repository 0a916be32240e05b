"""The compressed streams that Spark writes state with: lz4 (its default), zstd, snappy and lzf.

Their first bytes tell them apart. Only framing is done here; pyarrow decompresses, but for lzf, which it doesn't know.
Each block of lz4 carries a checksum of its content, which is checked: where nothing else guards the bytes, it is what
finds a flipped one.
"""

from __future__ import annotations

import struct

import pyarrow as pa
import xxhash

from statestore.errors import Damaged

# net.jpountz.lz4.LZ4BlockOutputStream: magic, token (method and level), compressed, original length, checksum
_LZ4 = b"LZ4Block"
_LZ4_HEADER = struct.Struct("<8sBiiI")
_LZ4_RAW, _LZ4_COMPRESSED = 0x10, 0x20
_LZ4_SEED = 0x9747B28C
_ZSTD = b"\x28\xb5\x2f\xfd"
# org.xerial.snappy.SnappyOutputStream: magic, version, compatible version, then chunks: length, raw snappy
_SNAPPY = b"\x82SNAPPY\x00"
_SNAPPY_HEADER_BYTES = 16
_SNAPPY_VERSIONS = struct.pack(">ii", 1, 1)
# com.ning.compress.lzf.LZFChunk: magic, kind, length of what follows, and of what is compressed its original length
_LZF = b"ZV"
_LZF_PLAIN, _LZF_COMPRESSED = 0, 1
_LZF_BLOCK = 0xFFFF  # bytes of a chunk, at most
_LZF_LITERALS = 32  # a control byte below is the number of bytes that follow, less 1
_LZF_LONG = 7  # a reference of at least so many bytes has its length in one byte more
_LZ4_BLOCK = 1 << 15  # bytes, as Spark's default
_LZ4_LEVEL = 0x05  # of blocks of that length: its logarithm, less 10
COMPRESSED = ("lz4", "lzf", "snappy", "zstd")
"""Spark's codecs. All of them are read and written here."""


def decompress(data: bytes) -> bytes:
    """Return the content of a compressed stream.

    Raises:
        Damaged: cut short, a block that is not what was compressed, or no such stream at all.
    """
    try:
        if data.startswith(_LZ4):
            return _lz4(data)
        if data.startswith(_ZSTD):
            with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
                return bytes(stream.read())
        if data.startswith(_SNAPPY):
            return _snappy(data)
        if data.startswith(_LZF):
            return _lzf(data)
    except (struct.error, pa.ArrowException, OSError, OverflowError) as error:
        raise Damaged(f"the compressed stream is cut short or damaged: {error}") from error
    raise Damaged(f"no stream of lz4, zstd, snappy or lzf begins with {data[:8].hex(' ') or 'nothing'}")


def compress(content: bytes, codec: str) -> bytes:
    """Return a stream as Spark writes it; `codec` is one of `COMPRESSED`."""
    if codec == "zstd":
        return bytes(pa.compress(content, codec="zstd", asbytes=True))
    if codec == "snappy":
        chunks = [bytes(pa.compress(block, codec="snappy", asbytes=True)) for block in _cut(content, _LZ4_BLOCK)]
        return b"".join([_SNAPPY, _SNAPPY_VERSIONS, *(struct.pack(">i", len(chunk)) + chunk for chunk in chunks)])
    if codec == "lzf":  # as its own encoder writes what doesn't become smaller
        chunks = _cut(content, _LZF_BLOCK) or [b""]
        return b"".join(_LZF + bytes([_LZF_PLAIN]) + struct.pack(">H", len(chunk)) + chunk for chunk in chunks)
    blocks = []
    for block in _cut(content, _LZ4_BLOCK):
        packed, method = bytes(pa.compress(block, codec="lz4_raw", asbytes=True)), _LZ4_COMPRESSED
        if len(packed) >= len(block):
            packed, method = block, _LZ4_RAW
        checksum = xxhash.xxh32_intdigest(block, _LZ4_SEED) & 0x0FFFFFFF
        blocks.append(_LZ4_HEADER.pack(_LZ4, method | _LZ4_LEVEL, len(packed), len(block), checksum) + packed)
    return b"".join([*blocks, _LZ4_HEADER.pack(_LZ4, _LZ4_RAW | _LZ4_LEVEL, 0, 0, 0)])


def _cut(content: bytes, length: int) -> list[bytes]:
    return [content[at : at + length] for at in range(0, len(content), length)]


def _lz4(data: bytes) -> bytes:
    blocks: list[bytes] = []
    at = 0
    while True:
        if at == len(data):
            raise Damaged("the lz4 stream ends without its last block. It was cut short")
        magic, token, compressed, original, checksum = _LZ4_HEADER.unpack_from(data, at)
        at += _LZ4_HEADER.size
        if magic != _LZ4 or compressed < 0 or original < 0:
            raise Damaged(f"no lz4 block begins at byte {at - _LZ4_HEADER.size}")
        if original == 0:
            if at != len(data):
                raise Damaged(f"{len(data) - at} bytes follow the last lz4 block")
            return b"".join(blocks)
        block = data[at : at + compressed]
        if len(block) < compressed:
            raise Damaged(f"the lz4 block at byte {at} should have {compressed} bytes, but {len(block)} are left")
        if token & 0xF0 == _LZ4_COMPRESSED:
            block = bytes(pa.decompress(block, original, codec="lz4_raw"))
        elif token & 0xF0 != _LZ4_RAW:
            raise Damaged(f"the lz4 block at byte {at} has the unknown method {token:#x}")
        # The writer keeps 28 bits of the checksum.
        if len(block) != original or xxhash.xxh32_intdigest(block, _LZ4_SEED) & 0x0FFFFFFF != checksum:
            raise Damaged(f"the lz4 block at byte {at} doesn't match its checksum")
        blocks.append(block)
        at += compressed


def _snappy(data: bytes) -> bytes:
    codec = pa.Codec("snappy")
    blocks: list[bytes] = []
    at = _SNAPPY_HEADER_BYTES
    while at < len(data):
        if data.startswith(_SNAPPY, at):  # streams may be joined
            at += _SNAPPY_HEADER_BYTES
            continue
        (length,) = struct.unpack_from(">i", data, at)
        block = data[at + 4 : at + 4 + length]
        if length < 0 or len(block) < length:
            raise Damaged(f"the snappy chunk at byte {at} is cut short")
        blocks.append(bytes(codec.decompress(block, _snappy_length(block))))
        at += 4 + length
    return b"".join(blocks)


def _lzf(data: bytes) -> bytes:
    blocks: list[bytes] = []
    at = 0
    while at < len(data):
        if not data.startswith(_LZF, at):
            raise Damaged(f"no lzf chunk begins at byte {at}")
        kind, length = struct.unpack_from(">BH", data, at + 2)
        at += 5
        original = length
        if kind == _LZF_COMPRESSED:
            (original,) = struct.unpack_from(">H", data, at)
            at += 2
        block = data[at : at + length]
        if kind not in (_LZF_PLAIN, _LZF_COMPRESSED) or len(block) < length:
            raise Damaged(f"the lzf chunk at byte {at} is cut short or damaged")
        blocks.append(_lzf_block(block) if kind == _LZF_COMPRESSED else block)
        if len(blocks[-1]) != original:
            raise Damaged(f"the lzf chunk at byte {at} has {len(blocks[-1])} bytes in place of {original}")
        at += length
    return b"".join(blocks)


def _lzf_block(block: bytes) -> bytes:
    """Runs of literal bytes, and references: 3 bits of length, 13 bits of how far back."""
    out = bytearray()
    at = 0
    while at < len(block):
        control, at = block[at], at + 1
        if control < _LZF_LITERALS:
            out += block[at : at + control + 1]
            at += control + 1
            continue
        length = control >> 5
        more = length == _LZF_LONG
        if at + more >= len(block):
            raise Damaged("an lzf chunk ends inside a reference")
        length += (block[at] if more else 0) + 2
        back = ((control & 0x1F) << 8 | block[at + more]) + 1
        at += more + 1
        if back > len(out):
            raise Damaged("an lzf chunk refers to bytes before its beginning")
        for _ in range(length):  # it may refer to what it is about to write
            out.append(out[-back])
    return bytes(out)


def _snappy_length(block: bytes) -> int:
    """Snappy writes the original length first, seven bits a byte."""
    length = shift = 0
    for byte in block:
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            return length
        shift += 7
    raise Damaged("a snappy chunk has no length")
