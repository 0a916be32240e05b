"""What all verbs of the command line share."""

from __future__ import annotations

import json

import pytest

from statestore import Damaged, InvalidInput, Unavailable
from statestore.checkpoint.findings import CheckpointFinding
from statestore.checkpoint.verification import VerificationReport
from statestore.cli import checkpoint, console


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 40, "5.0 TiB")])
def test_sizes(count: int, text: str) -> None:
    assert console.size(count) == text
    assert console.size(3 << 50) == "3072.0 TiB"


def test_numbers_of_things() -> None:
    assert [console.count(number, "batch") for number in (0, 1, 2_000)] == ["no batches", "1 batch", "2,000 batches"]
    assert console.count(1, "file") == "1 file"
    assert console.count(3, "file") == "3 files"


def test_numbers_in_a_row() -> None:
    assert console.runs([7, 1, 2, 3]) == "1-3 7"
    assert console.runs([]) == ""


@pytest.mark.parametrize(
    ("ago_ms", "text"),
    [(0, "0 s"), (119_000, "119 s"), (120_000, "2 min"), (7_200_000, "2 h"), (3 * 86_400_000, "3 d")],
)
def test_ages(ago_ms: int, text: str) -> None:
    now = 1_800_000_000_000
    assert console.age(now, now - ago_ms) == text


def test_a_moment_that_is_not_known_has_no_age() -> None:
    """As an age since the epoch it would be 20,000 days."""
    assert console.age(1_800_000_000_000, 0) == ""


def test_tables_are_those_of_eos_and_not_cut_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_table(("name", "size"), [("x" * 300, 1), ("y", 20)], right=("size",))
    head, first, second = (line.split() for line in capsys.readouterr().out.splitlines() if line[0] in "┃│")
    assert head == ["┃", "name", "┃", "size", "┃"]
    assert first == ["│", "x" * 300, "│", "1", "│"]
    assert second[-2] == "20"


def test_numbers_are_aligned_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_table(("name", "size"), [("x", 1)], right=("size",))
    assert capsys.readouterr().out.splitlines()[3] == "│ x    │    1 │"


def test_a_name_does_nothing_to_the_terminal_but_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_table(("name",), [("[/red] \x1b[2J \x9b \r.",)])
    console.print_facts({"the_name": "\x1b[2J"})
    console.tell("[red]\x07")
    told = capsys.readouterr()
    *_, row, _bottom, fact = told.out.splitlines()
    assert (row, fact.split(), told.err) == (
        r"│ [/red] \x1b[2J \x9b \r. │",
        ["the", "name", r"\x1b[2J"],
        "[red]\\x07\n",
    )


def test_a_finding_does_nothing_to_the_terminal_but_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    finding = CheckpointFinding("error", "damaged", "\x1b[2J is damaged", "Delete \x9b\r")
    checkpoint._tell(VerificationReport("bk://h/q", "q", (1,), 1, 1, None, (finding,)))
    assert capsys.readouterr().out == "error: \\x1b[2J is damaged\n  Delete \\x9b\\r\n"


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    console.show_json({"a": (1, 2)})
    assert json.loads(capsys.readouterr().out) == {"a": [1, 2]}


@pytest.mark.parametrize(("error", "code"), [(Damaged("x"), 1), (InvalidInput("x"), 2), (Unavailable("x"), 2)])
def test_errors_become_a_line_and_a_code(error: Exception, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> None:
        raise error

    with pytest.raises(SystemExit) as left:
        console.run(command)
    assert left.value.code == code
    assert capsys.readouterr().err == "error: x\n"
