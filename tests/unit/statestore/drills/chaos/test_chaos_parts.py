"""The parts of a chaos drill that need neither Spark nor Pulsar."""

from __future__ import annotations

import json
import pickle
import threading
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from eos.steps import Step
from statestore.cli import app as cli
from statestore.drills.chaos.driver_events import DriverEvents, Watch, Word, held_by, order_of, say
from statestore.drills.chaos.faults import FAULTS
from statestore.drills.chaos.feed import KEYS, ROWS, Feeder
from statestore.drills.chaos.plan import KINDS
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
