from __future__ import annotations

from typing import Any

from eos.history.segments import segments_of
from eos.pulsar.wire.message_id import EntryId
from tests.vectors.ledgers import METADATA

CLOSED = next(one["printed"] for one in METADATA if one["format"] == 3 and one["state"] == "CLOSED")


class Admin:
    """Tells what a broker would."""

    def __init__(self, stats: dict[str, Any], info: dict[str, Any] | None = None) -> None:
        self._stats, self._info = stats, info

    def internal_stats(self, topic: str, *, metadata: bool = False) -> dict[str, Any]:
        assert metadata
        return self._stats

    def internal_info(self, topic: str) -> dict[str, Any]:
        assert self._info is not None, "asked for nothing"
        return self._info


def ledger(number: int, entries: int, **more: Any) -> dict[str, Any]:
    return {"ledgerId": number, "entries": entries, "size": 10 * entries, "offloaded": False, "metadata": CLOSED} | more


def test_segments_come_in_order_with_their_last_entries() -> None:
    told = {"ledgers": [ledger(9, 0), ledger(4, 5), ledger(6, 0)], "lastConfirmedEntry": "9:3"}
    found = segments_of(Admin(told), "t")  # type: ignore[arg-type]
    assert [(one.ledger, one.last, one.open) for one in found.segments] == [(4, 4, False), (6, -1, False), (9, 3, True)]
    assert found.last_confirmed == EntryId(9, 3)
    assert [one.ledger for one in found.after(EntryId(-1, -1))] == [4, 9]
    assert [one.ledger for one in found.after(EntryId(4, 3))] == [4, 9]
    assert [one.ledger for one in found.after(EntryId(4, 4))] == [9]
    assert found.after(EntryId(9, 3)) == ()


def test_an_offloaded_segment_has_its_uuid_and_one_without_metadata_says_so() -> None:
    told = {
        "ledgers": [ledger(4, 5, offloaded=True), ledger(6, 1, metadata="?"), ledger(7, 0)],
        "lastConfirmedEntry": "6:0",
    }
    info = {"ledgers": [{"ledgerId": 4, "isOffloaded": True, "offloadedContextUuid": "u-4"}, {"ledgerId": 6}]}
    found = segments_of(Admin(told, info), "t")  # type: ignore[arg-type]
    assert [one.offloaded for one in found.segments] == ["u-4", None, None]
    assert [one.metadata is None for one in found.segments] == [False, True, False]
    assert [one.last for one in found.segments] == [4, 0, -1]
