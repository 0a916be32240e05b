"""What `statestore verify` answers: would Spark go on from here? Yes, no, or not known."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from statestore.checkpoint import verification
from statestore.checkpoint.findings import CheckpointFinding, Severity
from statestore.cli.app import typer_app


@pytest.mark.parametrize(
    ("severities", "answer", "code"),
    [
        ((), "yes", 0),
        (("warning",), "yes", 0),
        (("warning", "unknown"), "unknown", 3),
        (("unknown", "error", "warning"), "no", 1),
    ],
)
def test_the_answer_is_the_exit_code(
    severities: tuple[Severity, ...], answer: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    findings = tuple(CheckpointFinding(severity, "note", f"found: {severity}", "") for severity in severities)

    def verify(uri: str, *_: Any, **__: Any) -> verification.VerificationReport:
        return verification.VerificationReport(uri, "id", (3,), 1, 10, None, findings)

    monkeypatch.setattr(verification, "verify", verify)
    told = CliRunner().invoke(typer_app, ["verify", "file:///checkpoint"])
    assert told.exit_code == code
    assert ("whether Spark would go on is not known" in told.stderr) == (answer == "unknown")
    as_json = CliRunner().invoke(typer_app, ["verify", "file:///checkpoint", "--json"])
    said = json.loads(as_json.stdout)
    assert (as_json.exit_code, said["answer"], said["ok"]) == (code, answer, answer == "yes")
