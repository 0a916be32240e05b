"""The memory that a hostile entry costs its reader: bounded by its stored bytes and the size of one message."""

from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eos.config import Compression
from eos.errors import DamagedFrame
from eos.pulsar.wire.compression import TYPES, compress
from eos.pulsar.wire.decoding import decode
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata, SingleMessageMetadata
from eos.source.range_reader import BATCH_BYTES, _groups
from tests.fuzz.run import MEMORY_BYTES, Fuzzer, grown, most

MIB = 2**20
_POOLS: list[Any] = []  # what was taken from them may outlive a test


def taken(action: Callable[[], Any]) -> int:
    """Return the bytes that Python, NumPy and Arrow took meanwhile, at most."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    _POOLS.append(pool)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        action()
        return int(tracemalloc.get_traced_memory()[1] + pool.max_memory())
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)


def stored(payload: bytes, **metadata: Any) -> Entry:
    described = MessageMetadata(producer_name="p", sequence_id=1, publish_time=1, **metadata)
    return Entry(EntryId(3, 4), described, payload, len(payload) + 50, "t")


def refused(entry: Entry, why: str) -> None:
    with pytest.raises(DamagedFrame, match=rf"^entry 3:4 of t can't be read: .*{why}"):
        decode([entry], ["value"])


@pytest.mark.parametrize("compression", ["zlib", "zstd", "lz4", "snappy"])
def test_an_entry_that_says_it_has_4_gib_is_refused_before_any_of_them_is_made(compression: Compression) -> None:
    entry = stored(b"x" * 100, compression=TYPES[compression], uncompressed_size=2**32 - 1)
    assert taken(lambda: refused(entry, "4,294,967,295 bytes once decompressed, by its metadata")) < MIB


@pytest.mark.parametrize("compression", ["zlib", "zstd"])
def test_an_entry_that_becomes_more_than_it_says_is_refused_without_the_rest(compression: Compression) -> None:
    bomb = bytes(compress(bytes(64 * MIB), compression))
    entry = stored(bomb, compression=TYPES[compression], uncompressed_size=1000)
    assert taken(lambda: refused(entry, "")) < MIB


@pytest.mark.parametrize("count", [-(2**31), -1, 3, 2**31 - 1])
def test_a_number_of_messages_that_the_bytes_cannot_hold_is_refused(count: int) -> None:
    batch = b"\0\0\0\2\x18\1a" * 2
    entry = stored(batch, num_messages_in_batch=count)
    assert not entry.credible
    assert taken(lambda: refused(entry, f"it says that it has {count:,} messages")) < MIB


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("byte", [b"\0", b"\0\0\0\2\x18\1"])
def test_a_value_of_whatever_bytes_takes_a_few_times_its_size(batched: bool, byte: bytes) -> None:
    value = byte * (16 * MIB // len(byte))
    header = SingleMessageMetadata(payload_size=len(value)).SerializeToString()
    payload = len(header).to_bytes(4, "big") + header + value if batched else value
    entry = stored(payload, num_messages_in_batch=1) if batched else stored(payload)
    found: list[pa.RecordBatch] = []
    assert taken(lambda: found.append(decode([entry], ["value"]))) < 7 * len(value)
    assert found[0].column("value").to_pylist() == [value]


def test_entries_are_decoded_together_by_what_they_become() -> None:
    packed = zlib.compress(bytes(MIB))
    entries = [stored(packed, compression=TYPES["zlib"], uncompressed_size=MIB) for _ in range(20)]
    assert {len(group) for group in _groups(iter(entries))} == {BATCH_BYTES // MIB}


# ---- some thousand cases


CASES = 6_000


def test_damage_is_named_or_read_as_others_read_it(tmp_path: Path) -> None:
    start = most()
    fuzzer = Fuzzer(tmp_path)
    for seed in range(CASES):
        try:
            fuzzer.case(seed)
        except Exception as error:
            raise AssertionError(f"the case of seed {seed}: {type(error).__name__}: {error}") from error
    assert sum(fuzzer.outcomes.values()) == CASES
    for kind, outcome in (("value", "read"), ("entry", "read"), ("frame", "the same")):
        assert fuzzer.outcomes[kind, outcome] > CASES // 20, "damage that nothing survives tries little"
        assert fuzzer.outcomes[kind, "refused"] > CASES // 20
    assert grown(start) <= MEMORY_BYTES
