from __future__ import annotations

import struct

import pytest

from eos.bookkeeper.wire.bookkeeper_pb2 import LedgerMetadataFormat
from eos.history.offload import OffloadDamaged, OffloadUnknown
from eos.history.offload.block_index import STREAMING_MAGIC, OffloadBlock, parse_index
from tests.vectors.offloads import ledgers


def index(*places: tuple[int, int], last: int = 9, data_bytes: int = 900) -> bytes:
    """Return an index object. Args: first entry and offset of each block."""
    metadata = LedgerMetadataFormat(
        quorumSize=1, ensembleSize=1, length=5, lastEntryId=last, state=LedgerMetadataFormat.CLOSED
    ).SerializeToString()
    length = 32 + len(metadata) + 20 * len(places)
    head = struct.pack(">IIqqII", 0xDE47DE47, length, data_bytes, 128, len(places), len(metadata))
    return head + metadata + b"".join(struct.pack(">qIq", first, 1, offset) for first, offset in places)


def test_the_index_of_pulsars_own_offloader_is_read() -> None:
    for ledger in ledgers().values():
        found = parse_index(ledger.objects[f"{ledger.data}-index"], "i")
        assert found.last_entry == len(ledger.entries) - 1
        assert found.data_bytes == len(ledger.objects[ledger.data]) == sum(one.length for one in found.blocks)
        assert [one.first for one in found.blocks[1:]] == [one.last + 1 for one in found.blocks[:-1]]
        assert len(found.blocks) > 1


def test_blocks_are_told_with_their_ends() -> None:
    assert parse_index(index((0, 0), (4, 500)), "i").blocks == (
        OffloadBlock(0, 3, 0, 500),
        OffloadBlock(4, 9, 500, 400),
    )


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "the index i has only 0 bytes"),
        (b"\0" * 32, "begins with 0x00000000"),
        (index(), "which . blocks and its head do not make"),
        (index((0, 0)) + b"\0", "which . blocks and its head do not make"),
        (index((1, 0)), "out of order"),
        (index((0, 1)), "out of order"),
        (index((0, 0), (4, 500), (4, 700)), "out of order"),
        (index((0, 0), (4, 500), (6, 400)), "out of order"),
        (index((0, 0), (4, 500), (6, 600)), "out of order"),
        (index((0, 0), (11, 500)), "out of order"),
        (index((0, 0), (4, 901)), "out of order"),
    ],
)
def test_an_index_that_no_offloader_writes_is_damaged(data: bytes, said: str) -> None:
    with pytest.raises(OffloadDamaged, match=said):
        parse_index(data, "i")


def test_the_streaming_offloaders_index_is_refused_by_name() -> None:
    with pytest.raises(OffloadUnknown, match="streaming offloader"):
        parse_index(STREAMING_MAGIC.to_bytes(4) + index((0, 0))[4:], "i")
