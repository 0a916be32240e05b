"""What all verbs of the command line share."""

from __future__ import annotations

import json

import pytest

from statestore import Damaged, InvalidInput, Unavailable
from statestore.cli import console


def test_options_are_read_and_checked() -> None:
    assert console.parse_options(None) == {}
    assert console.parse_options(["fs.bk.password=a=b"]) == {"fs.bk.password": "a=b"}
    with pytest.raises(InvalidInput, match="NAME=VALUE"):
        console.parse_options(["fs.bk.root"])
    with pytest.raises(InvalidInput, match=r"Did you mean fs\.bk\.root"):
        console.parse_options(["fs.bk.rot=/x"])


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 40, "5.0 TiB")])
def test_sizes(count: int, text: str) -> None:
    assert console.size(count) == text
    assert console.size(3 << 50) == "3072.0 TiB"


def test_moments() -> None:
    assert console.moment(1_700_000_000_999) == "2023-11-14 22:13:20"


def test_tables_are_not_cut_when_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    console.show_table(("name", "size"), [("x" * 300, 1), ("y", 20)], right=("size",))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "x" * 300 + "     1"
    assert lines[2].endswith("    20")


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
