from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos.bookkeeper.wire.digest import Digest, StoredEntries
from tests.vectors.ledgers import LEDGER, PASSWORD, STORED


@pytest.mark.parametrize(("digest", "stored"), STORED.items(), ids=str)
def test_an_entry_is_stored_and_read_as_bookkeeper_does(digest: Digest, stored: bytes) -> None:
    entries = StoredEntries(LEDGER, digest, PASSWORD)
    assert entries.stored(6, 5, 77, b"the payload") == stored
    assert entries.payload(6, stored) == b"the payload"


@pytest.mark.parametrize("digest", [Digest.CRC32C, Digest.CRC32, Digest.HMAC])
@given(data=st.data(), payload=st.binary(max_size=50))
def test_a_changed_bit_is_noticed(digest: Digest, data: st.DataObject, payload: bytes) -> None:
    entries = StoredEntries(LEDGER, digest, PASSWORD)
    stored = bytearray(entries.stored(6, 5, 77, payload))
    stored[data.draw(st.integers(0, len(stored) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert entries.payload(6, bytes(stored)) is None


@pytest.mark.parametrize("digest", Digest)
def test_another_entry_and_a_cut_one_are_refused(digest: Digest) -> None:
    entries = StoredEntries(LEDGER, digest)
    stored = entries.stored(6, 5, 77, b"")
    assert entries.payload(6, stored) == b""
    assert entries.payload(7, stored) is None
    assert StoredEntries(LEDGER + 1, digest).payload(6, stored) is None
    assert all(entries.payload(6, stored[:size]) is None for size in range(len(stored)))
