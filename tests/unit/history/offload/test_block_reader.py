from __future__ import annotations

from pathlib import Path

import pytest

from eos.history.offload import OffloadDamaged
from tests.unit.history.offload.conftest import Storage
from tests.vectors.offloads import TOPIC, UUID, ledgers


@pytest.fixture
def blocks(tmp_path: Path) -> Storage:
    return Storage(tmp_path, ledgers()[7], "blocks")


def test_an_object_of_another_length_than_its_index_says_is_damaged(blocks: Storage) -> None:
    content = blocks.ledger.objects[blocks.ledger.data]
    blocks.write(blocks.ledger.data, content + b"\0")
    with pytest.raises(OffloadDamaged, match=f"has {len(content) + 1} bytes, but its index says {len(content)}"):
        list(blocks.reader().read(TOPIC, 7, UUID, 0, 0))


@pytest.mark.parametrize(("at", "field"), [(0, "magic"), (11, "header length"), (19, "block length"), (27, "entry")])
def test_a_block_with_another_header_is_damaged_though_its_entries_are_whole(
    blocks: Storage, at: int, field: str
) -> None:
    content = blocks.ledger.objects[blocks.ledger.data]
    blocks.write(blocks.ledger.data, content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    with pytest.raises(OffloadDamaged, match=r"the block at byte 0 of .* has another header than its index says"):
        list(blocks.reader().read(TOPIC, 7, UUID, 0, 0))
