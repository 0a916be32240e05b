"""Ids of entries, and their text."""

from __future__ import annotations

import pytest

from eos.errors import InvalidInput
from eos.pulsar.wire.message_id import EntryId


@pytest.mark.parametrize(("entry", "text"), [(EntryId(5, 3), "5:3"), (EntryId(0, 0), "0:0"), (EntryId(7, -1), "7:-1")])
def test_the_text_of_an_entry_id_and_back(entry: EntryId, text: str) -> None:
    assert str(entry) == text
    assert EntryId.parse(text) == entry


@pytest.mark.parametrize(
    "text", ["", "5", "5:", ":3", "5:3:0", "5:-2", "-1:3", " 5:3", "5:3\n", "a:b", "५:३", f"{2**63}:3", f"5:{2**63}"]
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="not an entry id"):
        EntryId.parse(text)


def test_ids_are_ordered_as_the_entries_are() -> None:
    assert sorted([EntryId(6, 0), EntryId(5, 9), EntryId(5, -1)]) == [EntryId(5, -1), EntryId(5, 9), EntryId(6, 0)]


def test_an_id_goes_over_the_wire_and_back() -> None:
    assert EntryId.read(EntryId(5, 3).written()) == EntryId(5, 3)
    assert not EntryId(5, 3).written().HasField("batch_index")
