from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eos.history.offload import OffloadDamaged, OffloadError, OffloadMissing
from eos.history.offload.ledgers import OffloadedLedgers
from eos.pulsar.wire.stored_entry import body_of
from tests.unit.history.offload.conftest import Storage
from tests.vectors.offloads import TOPIC, UUID, Offloaded, ledgers


def read(reader: OffloadedLedgers, ledger: Offloaded, first: int, last: int) -> Iterator[tuple[int, bytes]]:
    for number, body in reader.read(TOPIC, ledger.ledger, UUID, first, last):
        yield number, bytes(body)


def expected(ledger: Offloaded, first: int, last: int) -> list[tuple[int, bytes]]:
    return [
        (number, bytes(body_of(ledger.entries[number], 0, len(ledger.entries[number]))[0]))
        for number in range(first, last + 1)
    ]


def test_each_range_of_a_small_ledger_comes_whole(small: Storage) -> None:
    reader, count = small.reader(), len(small.ledger.entries)
    for first in range(count):
        for last in range(first, count):
            assert list(read(reader, small.ledger, first, last)) == expected(small.ledger, first, last)


@pytest.mark.parametrize("chunk_bytes", [1, 100, 5_000])
def test_ranges_of_a_large_ledger_come_by_requests_of_any_size(large: Storage, chunk_bytes: int) -> None:
    reader, last = large.reader(chunk_bytes), len(large.ledger.entries) - 1
    for first in (0, 1, 127, 128, 129, 200, last):
        for end in {first, min(first + 1, last), last}:
            assert list(read(reader, large.ledger, first, end)) == expected(large.ledger, first, end)


def unharmed(storage: Storage, whole: list[tuple[int, bytes]]) -> bool:
    """Read a ledger with a damaged object; return whether it came whole. What came must be right in any case."""
    came: list[tuple[int, bytes]] = []
    refused: OffloadError | None = None
    try:
        for one in read(storage.reader(), storage.ledger, 0, len(whole) - 1):
            came.append(one)
    except OffloadError as error:
        refused = error
    assert came == (whole if refused is None else whole[: len(came)])
    assert refused is None or UUID in str(refused), "the error names the object"
    return refused is None


def test_an_object_that_is_cut_at_any_byte_is_an_error_that_names_it(small: Storage) -> None:
    whole = expected(small.ledger, 0, len(small.ledger.entries) - 1)
    for name in small.names:
        content = small.ledger.objects[name]
        for size in range(len(content)):
            small.write(name, content[:size])
            # A MapFile's data may end with a sync mark, and its index may lack entries that are not needed.
            assert not unharmed(small, whole), (name, size)
        small.write(name, content)


def test_a_changed_byte_gives_a_named_error_or_changes_nothing(small: Storage) -> None:
    whole, choose = expected(small.ledger, 0, len(small.ledger.entries) - 1), random.Random(7)
    harmed = 0
    for name in small.names:
        content = small.ledger.objects[name]
        for at in range(len(content)):
            small.write(name, content[:at] + bytes([content[at] ^ 1 << choose.randrange(8)]) + content[at + 1 :])
            harmed += not unharmed(small, whole)
        small.write(name, content)
    assert harmed > sum(map(len, small.ledger.entries))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_bytes_overwritten_taken_out_or_put_in_never_give_a_wrong_entry(small: Storage, data: st.DataObject) -> None:
    whole = expected(small.ledger, 0, len(small.ledger.entries) - 1)
    name = data.draw(st.sampled_from(small.names))
    content = small.ledger.objects[name]
    begin = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(begin, min(len(content), begin + 40)))
    try:
        small.write(name, content[:begin] + data.draw(st.binary(max_size=40)) + content[end:])
        unharmed(small, whole)
    finally:
        small.write(name, content)


@pytest.fixture
def blocks(tmp_path: Path) -> Storage:
    return Storage(tmp_path, ledgers()[7], "blocks")


def test_a_wrong_checksum_is_told_with_object_block_and_entry(blocks: Storage) -> None:
    name = blocks.ledger.data
    content = blocks.ledger.objects[name]
    at = content.index(b"payload 9 ")
    blocks.write(name, content[:at] + b"P" + content[at + 1 :])
    told = rf"entry 7:9 is damaged in the block at byte \d+ of .*{name} \(its checksum is wrong\. It says"
    with pytest.raises(OffloadDamaged, match=told):
        list(read(blocks.reader(), blocks.ledger, 9, 9))
    assert list(read(blocks.reader(), blocks.ledger, 0, 8)) == expected(blocks.ledger, 0, 8)


def test_an_entry_without_a_checksum_is_not_given(blocks: Storage) -> None:
    content = blocks.ledger.objects[blocks.ledger.data]
    at = content.index(blocks.ledger.entries[4])
    blocks.write(blocks.ledger.data, content[:at] + b"\x0e\x00" + content[at + 2 :])
    with pytest.raises(OffloadDamaged, match="entry 7:4 has no checksum"):
        list(read(blocks.reader(), blocks.ledger, 4, 4))


def test_a_ledger_that_is_not_there_is_missing(small: Storage) -> None:
    reader = small.reader()
    assert reader.holds(TOPIC, 7, UUID)
    assert not reader.holds(TOPIC, 9, UUID)
    with pytest.raises(OffloadMissing, match=f"ledger 9 is not in secondary storage. Neither .*{UUID}-ledger-9-index"):
        list(reader.read(TOPIC, 9, UUID, 0, 0))
    for name in small.names:
        small.remove(name)
        with pytest.raises(OffloadMissing, match=UUID):
            list(read(small.reader(), small.ledger, 0, 0))
        small.write(name, small.ledger.objects[name])


def test_entries_after_the_last_one_are_an_error(small: Storage) -> None:
    with pytest.raises(OffloadDamaged, match="ends with entry 11, before entry 12"):
        list(read(small.reader(), small.ledger, 10, 12))
