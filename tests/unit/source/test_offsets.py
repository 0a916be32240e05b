"""Where a query stands, as Spark's checkpoint keeps it."""

from __future__ import annotations

import json

import pytest

from eos.errors import InvalidInput
from eos.pulsar.wire.message_id import EntryId
from eos.source.offsets import BEGINNING, Offsets, Position, before

ONE, TWO = "persistent://public/default/t-partition-0", "persistent://public/default/t-partition-1"


def test_the_checkpoint_is_readable_and_says_its_version() -> None:
    offsets = Offsets({TWO: Position(EntryId(9, -1), delivered=False), ONE: Position(EntryId(8, 13))})
    assert json.dumps(offsets.as_json()) == (
        '{"version": 1, "topics": {"persistent://public/default/t-partition-0": "8:13", '
        '"persistent://public/default/t-partition-1": "pinned 9:-1"}}'
    )


def test_the_end_of_the_first_batch_holds_its_start_too() -> None:
    offsets = Offsets({ONE: Position(EntryId(8, 13))}, {ONE: Position(EntryId(8, 11), delivered=False)})
    written = json.dumps(offsets.as_json())
    assert written == json.dumps({"version": 1, "topics": {ONE: "8:13"}, "start": {ONE: "pinned 8:11"}})
    assert Offsets.from_json(json.loads(written)) == offsets


@pytest.mark.parametrize(
    "position", [Position(EntryId(8, 13)), Position(EntryId(8, -1), delivered=False), BEGINNING], ids=str
)
def test_what_is_written_is_read_again(position: Position) -> None:
    offsets = Offsets({ONE: position})
    assert Offsets.from_json(json.loads(json.dumps(offsets.as_json()))) == offsets


def test_reading_from_an_entry_begins_behind_the_one_before_it() -> None:
    assert before(EntryId(8, 5)) == Position(EntryId(8, 4), delivered=False)
    assert before(EntryId(8, 0)) == Position(EntryId(8, -1), delivered=False)


@pytest.mark.parametrize(
    "foreign",
    [
        {},
        {"version": 2, "topics": {}},
        {"version": True, "topics": {}},
        {"version": 1},
        {"version": 1, "topics": "8:13"},
        {"t": {"0": 5}},
        *({"version": 1, "topics": {ONE: place}} for place in (None, 5, ["8:13"])),
        *({"version": 1, "topics": {ONE: "8:13"}, "start": start} for start in (None, ["8:13"], "8:13", {ONE: None})),
    ],
    ids=str,
)
def test_the_offset_of_another_source_or_version_is_refused(foreign: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=r"not an offset of this source. It writes version 1.*Was the checkpoint"):
        Offsets.from_json(foreign)


@pytest.mark.parametrize("text", ["8", "8:", "x:1", "pinned", "pinned 8", "latest"])
def test_a_damaged_position_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="LEDGER:ENTRY"):
        Offsets.from_json({"version": 1, "topics": {ONE: text}})


def test_a_message_before_the_first_entry_of_a_ledger_is_refused() -> None:
    """Each batch after it would take the first message of the ledger for the proof."""
    for offset in ({"topics": {ONE: "8:-1"}}, {"topics": {ONE: "8:13"}, "start": {ONE: "8:-1"}}):
        with pytest.raises(InvalidInput, match='"8:-1" holds no message'):
            Offsets.from_json({"version": 1, **offset})
