"""What `eos sink list`, `eos sink show` and `eos sink verify` print, as docs/how-to/runbook.md shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import eos.doctor.sinks
import eos.inspect.audit
from eos.cli import app as cli
from eos.commit.control_log import Intent, Marker, OwnerRecord
from eos.doctor.sinks import EMPTY_LOG, SinkState, SinkStatus, WrittenBatch
from eos.inspect.audit import Audit, AuditVerdict, Discrepancy
from eos.pulsar.wire.txn import TxnId

PAGE = (Path(__file__).resolve().parents[3] / "docs/how-to/runbook.md").read_text()
QUERY, RUN = "6f1c", "a07e"
FLIGHTS = "persistent://public/default/flights"
NOON = 1_795_521_600_000  # of 2026-11-24, in UTC
BEGUN = Intent(9, QUERY, RUN, 813, 1, TxnId(3, 1207), None)
SINKS = [
    SinkState("counts", SinkStatus.COMMITTED, "94b2", "11d0", 40, 512, committed_ms=NOON - 3_600_000),
    SinkState("delays", SinkStatus.NEW, "c3aa", "e801"),
    SinkState("flights", SinkStatus.UNFINISHED, QUERY, RUN, 812, 20_000, BEGUN, open=True, committed_ms=NOON),
    SinkState(
        "routes",
        SinkStatus.UNREADABLE,
        problem="the control topic contains a record that eos did not write: b'hello'. Something else writes to this "
        "topic",
    ),
]
MARKER = Marker(9, QUERY, RUN, 812, 1, TxnId(3, 1206), None, {FLIGHTS: 20_000}, {FLIGHTS: 1_900_000}, "offsets")
RECORDS = [
    WrittenBatch(OwnerRecord(7, QUERY, RUN, 3, 5), NOON - 61_000),
    WrittenBatch(Intent(8, QUERY, RUN, 812, 1, TxnId(3, 1206), None), NOON - 2_250),
    WrittenBatch(MARKER, NOON),
    WrittenBatch(Intent(10, QUERY, RUN, 813, 1, TxnId(3, 1207), None), NOON + 125),
]
PROMISED = Audit(813, 16_260_000, (FLIGHTS,), ())
WRONG = (
    Discrepancy(AuditVerdict.UNKNOWN, 0, FLIGHTS, TxnId(3, 4), 20_000, 0),
    Discrepancy(AuditVerdict.MISSING, 700, FLIGHTS, TxnId(3, 1090), 20_000, 19_771),
    Discrepancy(AuditVerdict.ABORTED, 701, FLIGHTS, TxnId(3, 1091), 0, 229),
)


def run(monkeypatch: pytest.MonkeyPatch, command: str, answer: Any, *words: str) -> Result:
    """Run a command whose question is answered so; the client connects to nothing before it is asked."""
    place, name = {
        "list": (eos.doctor.sinks, "sinks"),
        "show": (eos.doctor.sinks, "records"),
        "verify": (eos.inspect.audit, "audit"),
    }[command]
    monkeypatch.setattr(place, name, lambda *asked: answer)
    return CliRunner().invoke(cli.typer_app, ["sink", command, *words])


@pytest.mark.parametrize(
    ("command", "answer", "words", "code"),
    [
        ("list", SINKS, (), 1),
        ("show", RECORDS, ("flights", "--last", "4"), 0),
        ("verify", PROMISED, ("flights",), 0),
        ("verify", Audit(813, 16_260_000, (FLIGHTS,), WRONG), ("flights",), 1),
    ],
)
def test_the_page_shows_what_is_printed(
    command: str, answer: Any, words: tuple[str, ...], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run(monkeypatch, command, answer, *words)
    assert done.exit_code == code
    assert done.output.strip() in PAGE, done.output


@pytest.mark.parametrize(("wrong", "code"), [(WRONG[:1], 3), (WRONG[1:2], 1), (WRONG, 1), ((), 0)])
def test_what_cant_be_known_has_an_exit_code_of_its_own(
    wrong: tuple[Discrepancy, ...], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(monkeypatch, "verify", Audit(2, 2, (FLIGHTS,), wrong), "flights").exit_code == code


def test_a_log_that_tells_nothing_is_not_told_as_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(monkeypatch, "verify", Audit(0, 0, (), (), problem=EMPTY_LOG), "flights")
    assert done.exit_code == 3
    assert EMPTY_LOG in done.stderr
    assert "as promised" not in done.output
    assert EMPTY_LOG in run(monkeypatch, "show", [], "flights").stderr


def test_entries_that_were_not_delivered_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(monkeypatch, "verify", Audit(2, 2, (FLIGHTS,), (), ("the entries are lost",)), "flights")
    assert "The entries are lost.\n" in done.stderr


def test_the_command_that_frees_readers_names_the_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        "eos sink abort flights --namespace public/etl\n"
        in run(monkeypatch, "list", SINKS, "--namespace", "public/etl").stderr
    )


def test_a_role_that_may_not_ask_for_transactions_does_not_read_that_nobody_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = [SinkState("flights", SinkStatus.UNFINISHED, QUERY, RUN, 812, 20_000, BEGUN)]
    asked = ("--service-url", "pulsar://nowhere", "--admin-url", "http://nowhere")
    assert "transaction (3,1207), not known whether open" in run(monkeypatch, "list", found, *asked).stdout
    assert "known" not in run(monkeypatch, "list", found).stdout


def test_a_namespace_without_sinks_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(monkeypatch, "list", [])
    assert (done.exit_code, "public/default has no sinks" in done.output) == (0, True)
    done = run(monkeypatch, "list", [], "--json")
    assert (done.stdout, "or does not exist" in done.stderr) == ("[]\n", True)
