from __future__ import annotations

import random
import zlib

import pytest

from eos.config import COMPRESSIONS, Compression
from eos.errors import DamagedFrame
from eos.pulsar.wire.compression import TYPES, compress, decompress, shrunk

DATA = b"the same again and again. " * 50
NOISE = random.Random(1).randbytes(80_000)


@pytest.mark.parametrize("data", [b"", b"x", DATA, memoryview(DATA)], ids=["empty", "one", "much", "view"])
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_what_is_compressed_comes_back(compression: Compression, data: bytes) -> None:
    packed = compress(data, compression)
    assert bytes(decompress(packed, TYPES[compression], len(data))) == bytes(data)


@pytest.mark.parametrize("compression", [name for name in COMPRESSIONS if name != "none"])
def test_repetition_shrinks(compression: Compression) -> None:
    assert len(compress(DATA, compression)) < len(DATA) // 4


def test_lz4_is_a_bare_block() -> None:
    # A token of four literals, then the literals; the frame format would start with 04 22 4d 18.
    assert bytes(compress(b"abcd", "lz4")) == b"\x40abcd"


def test_zlib_is_not_gzip() -> None:
    assert zlib.decompress(bytes(compress(DATA, "zlib"))) == DATA


@pytest.mark.parametrize(
    ("packed", "plain"),
    [
        ("789cecc4a10d00000803b06b492696f0bfe30a5c2b9a6937922449922449923e3b000000ffff", b"hello" * 1000),
        ("789caa00000000ffff", b"x"),
        ("", b""),
    ],
)
def test_zlib_of_java_has_no_end(packed: str, plain: bytes) -> None:
    """What CompressionCodecZLib of Pulsar 4.2.4 makes, which flushes and does not finish."""
    assert decompress(bytes.fromhex(packed), TYPES["zlib"], len(plain)) == plain
    with pytest.raises(DamagedFrame, match="Its metadata says"):
        decompress(bytes.fromhex(packed)[:-8], TYPES["zlib"], len(plain) + 1)


def test_the_checksum_of_zlib_counts() -> None:
    packed = bytearray(compress(DATA, "zlib"))
    packed[-1] ^= 1
    with pytest.raises(DamagedFrame, match="incorrect data check"):
        decompress(packed, TYPES["zlib"], len(DATA))


@pytest.mark.parametrize("compression", [name for name in COMPRESSIONS if name != "none"])
def test_damage_is_noticed(compression: Compression) -> None:
    packed = bytes(compress(DATA, compression))
    with pytest.raises(DamagedFrame, match=compression):
        decompress(b"\xff" * len(packed), TYPES[compression], len(DATA))


@pytest.mark.parametrize("compression", [name for name in COMPRESSIONS if name != "none"])
@pytest.mark.parametrize("size", [0, 1, len(DATA) - 1, len(DATA) + 1, 2 * len(DATA)])
def test_no_byte_comes_out_that_was_not_compressed(compression: Compression, size: int) -> None:
    with pytest.raises(DamagedFrame):
        decompress(compress(DATA, compression), TYPES[compression], size)


def test_another_size_than_the_metadata_says_is_noticed() -> None:
    with pytest.raises(DamagedFrame, match=r"6 bytes or more once decompressed. Its metadata says 5"):
        decompress(compress(DATA, "zlib"), TYPES["zlib"], 5)


def test_an_unknown_compression_is_named() -> None:
    with pytest.raises(DamagedFrame, match="compression 9"):
        decompress(b"", 9, 0)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (DATA, "zstd"),
        (b"", "none"),
        (NOISE, "none"),
        (NOISE[: 64 * 1024] + DATA * 1_000, "none"),
        ((DATA * 60)[: 64 * 1024] + NOISE, "zstd"),
    ],
    ids=["repetition", "nothing", "noise", "noise at the beginning", "noise at the end"],
)
def test_auto_decides_by_a_sample(data: bytes, expected: str) -> None:
    assert shrunk(memoryview(data), "auto")[1] == expected


@pytest.mark.parametrize(("saved", "expected"), [(0.2, "zstd"), (0.05, "none")])
def test_auto_compresses_what_is_worth_it(saved: float, expected: str) -> None:
    mixed = NOISE[: int(60_000 * (1 - saved))] + bytes(int(60_000 * saved))
    assert shrunk(memoryview(mixed), "auto")[1] == expected


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_compression_that_is_named_is_not_doubted(compression: Compression) -> None:
    little = bytes(3_000) + NOISE[:57_000]
    assert shrunk(memoryview(little), compression)[1] == compression
    assert shrunk(memoryview(NOISE), compression) == (NOISE, "none")


@pytest.mark.parametrize("times", [1, 100], ids=["all of it was the sample", "the sample was a part"])
def test_auto_compresses_the_whole(times: int) -> None:
    packed, _ = shrunk(DATA * times, "auto")
    assert bytes(decompress(packed, TYPES["zstd"], len(DATA * times))) == DATA * times
