"""The parts of a chaos drill that need neither Spark nor Pulsar."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pulsar
import pytest
from typer.testing import CliRunner, Result

from eos.steps import Step
from statestore.cli import app as cli
from statestore.drills.chaos import plain_writer
from statestore.drills.chaos.driver_events import DriverEvents, Watch, Word, held_by, order_of, say
from statestore.drills.chaos.faults import FAULTS
from statestore.drills.chaos.feed import KEYS, ROWS, Feeder
from statestore.drills.chaos.plan import KINDS
from statestore.drills.judge.copies import key_of, value_of
from statestore.drills.judge.rows import read_input
from tests.waiting import PATIENCE_S, until


def test_every_kind_of_fault_can_be_done() -> None:
    assert FAULTS.keys() == {kind.name for kind in KINDS}


def test_the_input_grows_until_enough_is_waiting(tmp_path: Path) -> None:
    done = 0
    feeder = Feeder(tmp_path / "input", lambda: done, 0.001, 3)
    feeder.start()
    until(lambda: feeder.files == 3)
    done = 2
    until(lambda: feeder.files == 5)
    feeder.pause()
    done = 5
    before = feeder.files
    time.sleep(0.05)
    assert feeder.files == before
    feeder.resume()
    until(lambda: feeder.files == 8)
    feeder.stop()
    found = read_input(tmp_path / "input")
    assert len(found) == feeder.files * ROWS
    assert (found.groupby("batch")["key"].nunique() == KEYS).all()


def test_what_a_driver_says_is_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    told = DriverEvents(Word.STATE, "sums", 3, "text\nof two lines", 7, True, (("k1", 1, 2),))
    say(told)
    line = capsys.readouterr().out
    assert DriverEvents.parse(line) == told
    assert DriverEvents.parse("WARN Utils: …") is None
    assert DriverEvents.parse("{}") is None
    assert DriverEvents.parse("[1]") is None
    assert DriverEvents.parse(json.dumps(json.loads(line) | {"word": "sung"})) is None


def test_a_batch_is_held_at_the_step_that_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    order = tmp_path / "rows"
    watch = pickle.loads(pickle.dumps(Watch("rows", str(order))))
    watch(Step.TAKEOVER, "after", None)
    watch(Step.OPEN, "after", 4)
    order.write_text(order_of(Step.END_SENT, "after"))
    watch(Step.END_SENT, "before", 4)
    assert order.exists(), "another step is not held"
    batch = threading.Thread(target=watch, args=(Step.END_SENT, "after", 4))
    batch.start()
    until(lambda: held_by(order).exists())
    assert not order.exists(), "the next batch is not held"
    assert batch.is_alive()
    held_by(order).unlink()
    batch.join(PATIENCE_S)
    assert not batch.is_alive()
    watch(Step.END_ANSWERED, "after", 4)
    told = [DriverEvents.parse(line) for line in capsys.readouterr().out.splitlines()]
    words = [(Word.FENCED, -1), *((word, 4) for word in (Word.OPENED, Word.SENT, Word.HELD, Word.ANSWERED))]
    assert told == [DriverEvents(word, "rows", batch) for word, batch in words]


def drill(*words: str) -> Result:
    return CliRunner().invoke(cli.typer_app, ["drill", *words])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--faults", "brokers"], "There is no fault family and no kind brokers"),
        (["--kills", "0"], "--kills is 0"),
        (["--minutes", "0"], "--minutes is 0"),
        (["--standalone", "--rounds", "0"], "--rounds is 0"),
        (["--standalone", "--kills", "9"], "--kills doesn't go with --standalone"),
        (["--pulsar", "3.3.0"], "Pulsar 3.3.0 was not tried here. These were: 4.0.0, 4.2.4, 5.0.0-M1"),
        (["--from-bookies"], "--from-bookies is about the job of --end-to-end"),
        (["--standalone", "--end-to-end"], "--end-to-end doesn't go with --standalone"),
        (["--rounds", "2"], "--rounds belongs to --standalone"),
    ],
)
def test_bad_input_is_refused_before_anything_starts(words: list[str], why: str, tmp_path: Path) -> None:
    answer = drill(*words, "--report", str(tmp_path / "report"))
    assert why in str(answer.exception)
    assert not (tmp_path / "report").exists()


def test_a_journal_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text("precious")
    answer = drill("--kills", "1", "--report", str(tmp_path))
    assert "journal" in str(answer.exception)
    assert (tmp_path / "journal.jsonl").read_text() == "precious"


def test_the_docs_have_each_kind_of_fault() -> None:
    page = Path(__file__).parents[5].joinpath("docs", "chaos-drill.md").read_text()
    rows = [f"| {kind.family} | `{kind.name}` | {kind.does} |" for kind in KINDS]
    assert "\n".join(rows) in page


# ---- what a driver tells


DRIVER = """
import subprocess, sys
from statestore.drills.chaos.driver_events import DriverEvents, Word, keep_standard_output, say
keep_standard_output()
for batch in range(3):
    subprocess.run([sys.executable, "-c", "print('half a line', end='')"], check=True)
    say(DriverEvents(Word.COMMITTED, "rows", batch))
"""


def test_what_a_child_prints_does_not_spoil_a_line() -> None:
    done = subprocess.run([sys.executable, "-c", DRIVER], check=True, capture_output=True, text=True)
    assert [DriverEvents.parse(line) for line in done.stdout.splitlines()] == [
        DriverEvents(Word.COMMITTED, "rows", batch) for batch in range(3)
    ]
    assert done.stderr == "half a line" * 3


# ---- the plain writer


class FakeProducer:
    """Gives receipts for all but some rows, at the flush."""

    def __init__(self, *refused: int, error: bool = False) -> None:
        self.sent: list[tuple[bytes, str]] = []
        self._refused, self._error = refused, error
        self._takers: list[Any] = []

    def send_async(self, value: bytes, take: Any, partition_key: str, event_timestamp: int) -> None:
        assert event_timestamp > 1_700_000_000_000
        self.sent.append((value, partition_key))
        self._takers.append(take)

    def flush(self) -> None:
        for place, take in enumerate(self._takers):
            take(pulsar.Result.Timeout if place in self._refused else pulsar.Result.Ok, SimpleNamespace())
        if self._error:
            raise pulsar.PulsarException("gone")


@pytest.mark.parametrize("error", [False, True])
def test_rows_without_a_receipt_are_in_doubt(error: bool) -> None:
    producer = FakeProducer(3, 4, 9, error=error)
    assert plain_writer._send(producer, 100, 110) == [
        ("committed", 100, 103),
        ("in-doubt", 103, 105),
        ("committed", 105, 109),
        ("in-doubt", 109, 110),
    ]
    keys = [key_of("plain", number) for number in range(100, 110)]
    assert producer.sent == [(value_of(key, number), key) for key, number in zip(keys, range(100, 110), strict=True)]
