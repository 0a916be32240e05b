from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import get_args

import pytest

from statestore.drills.journal import (
    AccountEvent,
    Began,
    Ended,
    Event,
    Fault,
    JobEvent,
    Journal,
    PlannedFault,
    Sample,
    read,
)
from statestore.drills.judge.findings import Verdict
from statestore.errors import InvalidInput, NotFound
from tests.unit.statestore.drills.journals import to_plain

BEGAN = Began(
    drill="chaos",
    at="2026-11-21T20:00:00+00:00",
    rerun="statestore drill --seed 7",
    seed=7,
    versions={"pulsar": "5.0.0"},
    machine={"cores": 2, "memory_gb": 7.5, "cpu": "slow"},
    plan=(PlannedFault(1, "kill-driver", "driver"), PlannedFault(2, "cut", "network")),
)
ACCOUNT = AccountEvent(
    job="flights",
    attempted=9,
    committed=8,
    found=7,
    lost=1,
    duplicated=0,
    unexpected=0,
    out_of_order=0,
    torn=1,
    state_equal=None,
    offenders={"lost": ("0:3",)},
    verdict=Verdict.FAIL,
    reason="1 row was lost.",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "drills" / "journal.jsonl"


def test_events_come_back_as_they_were_written(path: Path) -> None:
    with Journal.create(path, BEGAN) as open_journal:
        written = [open_journal.write(event) for event in (Fault(1, "cut", "network", "port 1"), ACCOUNT, Ended())]
    began, *others = read(path)
    assert others == written
    assert isinstance(began, Began)
    assert (began.plan, began.machine, began.targets) == (BEGAN.plan, BEGAN.machine, BEGAN.targets)
    assert [event.t for event in others] == sorted(event.t for event in others)


def test_each_line_is_there_before_the_next_thing_happens(path: Path) -> None:
    with Journal.create(path, BEGAN) as open_journal:
        open_journal.write(Fault(1, "kill-driver", "driver"))
        assert [json.loads(line)["event"] for line in path.read_text().splitlines()] == ["began", "fault"]


def test_a_last_line_that_was_cut_off_is_left_out(path: Path) -> None:
    with Journal.create(path, BEGAN) as open_journal:
        fault = open_journal.write(Fault(1, "kill-driver", "driver"))
        open_journal.write(Ended())
    path.write_bytes(path.read_bytes()[:-5])
    assert read(path)[1:] == [fault]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"t": 1, "event": "fault", "n": "many", "kind": "k", "family": "f"}', "fault.n"),
        ('{"t": 1, "event": "fault", "n": 1}', "fault.kind"),
        ('{"t": 1, "event": "quake"}', "quake"),
        ("not JSON", "Line 2"),
    ],
)
def test_a_line_that_is_no_event_is_named(path: Path, line: str, what: str) -> None:
    Journal.create(path, BEGAN).close()
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(InvalidInput, match=f"Line 2 of .*{what}|{what} of"):
        read(path)


@pytest.mark.parametrize("text", ["", '{"t": 0, "event": "ended"}\n', '{"t": 0, "event": "began", "drill"'])
def test_a_journal_begins_with_its_beginning(tmp_path: Path, text: str) -> None:
    (tmp_path / "journal").write_text(text)
    with pytest.raises(InvalidInput, match="began"):
        read(tmp_path / "journal")


def test_a_journal_is_never_written_over(path: Path) -> None:
    Journal.create(path, BEGAN).close()
    with pytest.raises(InvalidInput, match="there already"):
        Journal.create(path, BEGAN)


def test_a_journal_that_is_not_there_is_not_found(path: Path) -> None:
    with pytest.raises(NotFound, match="no journal"):
        read(path)


def test_threads_dont_mix_their_lines(path: Path) -> None:
    with Journal.create(path, BEGAN) as open_journal:

        def write(number: int) -> None:
            for row in range(50):
                open_journal.write(Sample(f"job {number}", row, row))

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    samples = [event for event in read(path) if isinstance(event, Sample)]
    assert len(samples) == 200
    for number in range(4):
        assert [one.rows_in for one in samples if one.job == f"job {number}"] == list(range(50))


def test_every_event_has_a_name_of_its_own() -> None:
    names = [kind.__dataclass_fields__["event"].default for kind in get_args(Event)]
    assert len(set(names)) == len(names) == 16


def test_plain_events_are_the_objects_of_the_file(path: Path) -> None:
    with Journal.create(path, BEGAN):
        pass
    assert to_plain(read(path)[0]) == json.loads(path.read_text())


@pytest.mark.parametrize("scheme", ["ftp://", "s3a://", "jdbc:mysql://", "a+b://"])
def test_the_password_in_the_address_of_a_checkpoint_is_not_written(path: Path, scheme: str) -> None:
    with Journal.create(path, BEGAN) as journal:
        journal.write(JobEvent("j", stateful=True, topic="t", checkpoint=f"{scheme}me:s3cret@host/q"))
        journal.write(JobEvent("j", stateful=True, topic="t", checkpoint=f"{scheme}host:1/q@2"))
    assert [one.checkpoint for one in read(path) if isinstance(one, JobEvent)] == [
        f"{scheme}…@host/q",
        f"{scheme}host:1/q@2",
    ]
    assert "s3cret" not in path.read_text()
