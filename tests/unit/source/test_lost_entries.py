"""Entries that did not come between two messages: asked for where the broker may have passed over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from eos.errors import InvalidInput, Refused, Unreachable
from eos.pulsar.net.admin import Admin, EntryKind
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.source import lost_entries
from eos.source.offsets import Position
from eos.source.range_reader import BATCH_BYTES, read_range
from eos.source.ranges import Range
from tests.unit.source.fake_brokers import at
from tests.unit.source.test_range_reader import Script, behind, fail


@dataclass
class Told(Script):
    """A topic of which the admin API tells what each entry is: a marker, unless said otherwise.

    Attributes:
        others: what other entries are; None: the admin API does not answer.
        looked_at: the entries that were asked for.
    """

    others: dict[str, EntryKind | None] = field(default_factory=dict)
    looked_at: list[str] = field(default_factory=list)

    def kind(self, topic: str, entry: EntryId) -> EntryKind:
        self.looked_at.append(str(entry))
        kind = self.others.get(str(entry), "marker")
        if kind is None:
            raise Unreachable("the admin API does not answer")
        return kind


def passes_over() -> bool:
    return True


def read(
    part: Range, script: Told, lose: Callable[[str], None] = fail, may: Callable[[], bool | None] = passes_over
) -> list[str]:
    groups = read_range(part, script.open, lose, kind_of=script.kind, may_pass_over=may)
    return [str(entry.id) for group in groups for entry in group]


WHERE = {
    "within a ledger": (["5:3", "5:7"], ("5:9", "6:9"), "5:6", "5:4 to 5:6"),
    "within the last ledger": (["5:3", "5:7"], ("5:9",), "5:6", "5:4 to 5:6"),
    "at the end of a ledger": (["5:3", "6:0"], ("5:5", "6:9"), "5:5", "5:4 to 5:5"),
    "at the beginning of a ledger": (["5:3", "6:2"], ("5:3", "6:9"), "6:1", "6:0 to 6:1"),
    "in a ledger that begins with a marker": (["5:3", "7:0"], ("5:3", "6:4", "7:9"), "6:3", "6:0 to 6:4"),
}


@pytest.mark.parametrize(("came", "ledgers", "lost", "gap"), WHERE.values(), ids=WHERE.keys())
@pytest.mark.parametrize(("kind", "words"), [("gone", "can no longer be read"), ("message", "is stored and is a mess")])
def test_an_entry_that_did_not_come_and_is_gone_or_a_message_is_a_loss(
    came: list[str], ledgers: tuple[str, ...], lost: str, gap: str, kind: EntryKind, words: str
) -> None:
    def script() -> Told:
        return Told([[came]], last=ledgers[-1], ledgers=ledgers, others={lost: kind})

    with pytest.raises(InvalidInput, match=f"data of t was lost: none of the entries {gap} came, and {lost} {words}"):
        read(behind("5:3", came[-1]), script())
    told: list[str] = []
    assert read(behind("5:3", came[-1]), script(), told.append) == came[1:]
    assert len(told) == 1


@pytest.mark.parametrize(("came", "ledgers", "lost", "gap"), WHERE.values(), ids=WHERE.keys())
def test_markers_and_aborted_messages_are_no_loss(
    came: list[str], ledgers: tuple[str, ...], lost: str, gap: str
) -> None:
    script = Told([[came]], ledgers=ledgers, others={lost: "aborted"})
    assert read(behind("5:3", came[-1]), script) == came[1:]
    assert lost in script.looked_at


def test_nothing_is_asked_for_where_the_broker_passes_over_nothing_or_everything_came() -> None:
    script = Told([[["5:3", "5:7", "6:2"]]], ledgers=("5:9", "6:9"), others={"5:5": "gone"})
    asked: list[bool] = []

    def may() -> bool:
        asked.append(False)
        return False

    assert read(behind("5:3", "6:2"), script, may=may) == ["5:7", "6:2"]
    assert (script.looked_at, len(asked)) == ([], 1)
    script = Told([[["5:3", "5:4", "5:5"]]])
    assert read(behind("5:3", "5:5"), script, may=may) == ["5:4", "5:5"]
    assert len(asked) == 1, "what the broker does is not asked either"


def unknown() -> None:
    """Answer as where no admin API was given."""


@dataclass
class Written(Told):
    """A topic some of whose messages belong to transactions.

    Attributes:
        of_transactions: these.
    """

    of_transactions: tuple[str, ...] = ()

    def entry(self, text: str) -> Entry:
        entry = super().entry(text)
        if text in self.of_transactions:
            entry.metadata.txnid_most_bits = 0
        return entry


@pytest.mark.parametrize(("came", "ledgers", "lost", "gap"), WHERE.values(), ids=WHERE.keys())
def test_without_an_admin_api_a_gap_next_to_no_transaction_is_told_once(
    caplog: pytest.LogCaptureFixture, came: list[str], ledgers: tuple[str, ...], lost: str, gap: str
) -> None:
    more = ["9:0", "9:2", "9:4"]
    script = Told([[[*came, *more]]], last="9:9", ledgers=(*ledgers[:-1], "8:9", "9:9"))
    assert read(behind("5:3", more[-1]), script, may=unknown) == [*came[1:], *more]
    told = [one for one in caplog.messages if "belong to no transaction" in one]
    assert len(told) == 1
    assert f"The entries {gap} of t did not come" in told[0]
    assert lost not in script.looked_at


@pytest.mark.parametrize("of_transactions", [("5:7",), ("5:5", "5:7"), ("5:5", "5:9")])
def test_without_an_admin_api_a_gap_next_to_a_transaction_is_taken_for_its_marker(
    caplog: pytest.LogCaptureFixture, of_transactions: tuple[str, ...]
) -> None:
    script = Written([[["5:3", "5:4", "5:5", "5:7", "5:9"]]], ledgers=("5:9",), of_transactions=of_transactions)
    assert read(behind("5:3", "5:9"), script, may=unknown) == ["5:4", "5:5", "5:7", "5:9"]
    assert not caplog.messages


def test_a_broker_that_passes_over_nothing_is_believed(caplog: pytest.LogCaptureFixture) -> None:
    script = Told([[["5:3", "5:7"]]], ledgers=("5:9",))
    assert read(behind("5:3", "5:7"), script, may=lambda: False) == ["5:7"]
    assert not caplog.messages


def test_entries_are_asked_for_where_it_is_not_known_what_the_broker_does() -> None:
    def silent() -> bool:
        raise Unreachable("no admin API")

    script = Told([[["5:3", "5:5"]]], last="5:9", ledgers=("5:9",), others={"5:4": "gone"})
    with pytest.raises(InvalidInput, match="5:4 can no longer be read"):
        read(behind("5:3", "5:5"), script, may=silent)


def test_what_lies_outside_of_the_range_is_not_asked_for() -> None:
    part = Range("t", Position.parse("pinned 5:3"), at("5:6"), end_delivered=False, first=at("5:5"))
    for came, ledgers in ((["5:5", "5:9"], ("5:9",)), (["5:5", "6:0"], ("5:9", "6:0"))):
        script = Told([[came]], ledgers=ledgers)
        assert read(part, script) == ["5:5"]
        assert script.looked_at == ["5:4", "5:6"]


def test_a_ledger_that_retention_has_deleted_meanwhile_is_no_loss() -> None:
    script = Told([[["5:3", "5:5", "6:0"]]], last="6:9", ledgers=("5:5", "6:9"), others={"5:4": "gone"})

    def may() -> bool:
        script.ledgers = ("6:9",)
        return True

    assert read(behind("5:3", "6:0"), script, may=may) == ["5:5", "6:0"]
    assert script.looked_at == ["5:4"]


def test_that_nobody_can_tell_is_said_once_and_ends_the_questions(caplog: pytest.LogCaptureFixture) -> None:
    script = Told([[["5:3", "5:5", "5:7", "5:9"]]], ledgers=("5:9",), others={"5:4": None, "5:6": "gone"})
    assert read(behind("5:3", "5:9"), script) == ["5:5", "5:7", "5:9"]
    assert script.looked_at == ["5:4"]
    assert len(caplog.messages) == 1
    assert "The entries 5:4 to 5:4 of t did not come" in caplog.messages[0]
    assert "cannot know which" in caplog.messages[0]


def test_questions_are_bounded_and_asked_some_at_a_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lost_entries, "MOST_ASKED", 5)
    monkeypatch.setattr(lost_entries, "_TOGETHER", 3)
    script = Told([[["5:3", "5:6", "5:8"], ["5:12", "5:15"]]], ledgers=("5:99",), others={"5:13": "gone"})
    script.size = BATCH_BYTES  # each entry comes alone
    groups = read_range(behind("5:3", "5:15"), script.open, fail, kind_of=script.kind, may_pass_over=passes_over)
    asked_by_then = [len(script.looked_at) for _ in groups]
    assert asked_by_then[0] == 3, "it does not wait for the end"
    assert sorted(script.looked_at) == ["5:10", "5:4", "5:5", "5:7", "5:9"]
    assert "The entries 5:9 to 5:11 of t did not come" in caplog.messages[0]
    assert "It has asked for 2 of these 3 entries, since a read asks for 5 at most" in caplog.messages[0]


@pytest.mark.parametrize("lost", ["5:4", "5:7", "5:13"])
def test_a_gap_of_more_entries_than_are_asked_for_is_looked_at_all_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, lost: str
) -> None:
    monkeypatch.setattr(lost_entries, "MOST_ASKED", 4)
    script = Told([[["5:3", "5:16"]]], ledgers=("5:99",), others={lost: "gone"})
    with pytest.raises(InvalidInput, match=f"none of the entries 5:4 to 5:15 came, and {lost} can no longer be read"):
        read(behind("5:3", "5:16"), script)
    told: list[str] = []
    script = Told([[["5:3", "5:16", "5:18"]]], ledgers=("5:99",), others={lost: "gone"})
    assert read(behind("5:3", "5:18"), script, told.append) == ["5:16", "5:18"]
    assert len(told) == 1
    assert "The entries 5:17 to 5:17 of t did not come" in caplog.messages[0], "what it no longer asks for"


@pytest.mark.parametrize("kind", ["gone", "message"])
def test_a_window_of_lost_entries_alone_is_a_loss(kind: EntryKind) -> None:
    part = Range("t", Position.parse("pinned 5:3"), at("5:6"), end_delivered=False, first=at("5:9"))
    script = Told([[["5:9"]]], last="5:9", ledgers=("5:9",), others={"5:5": kind})
    with pytest.raises(InvalidInput, match="none of the entries 5:4 to 5:6 came, and 5:5"):
        read(part, script)
    script = Told([[["5:9"]]], last="5:9", ledgers=("5:9",))
    assert read(part, script) == []
    assert sorted(script.looked_at) == ["5:4", "5:5", "5:6"]


@pytest.mark.parametrize(("told", "may"), [("true", True), ("false", False), (None, False), ("403", True)])
def test_a_broker_may_pass_over_entries_also_where_nobody_may_read_its_settings(told: str | None, may: bool) -> None:
    class Api(Admin):
        def setting(self, name: str) -> str | None:
            if told == "403":
                raise Refused("GET settings", told, "superusers only")
            return told if name == "autoSkipNonRecoverableData" else None

    with Api("http://localhost:1") as admin:
        assert admin.may_pass_over() is may
