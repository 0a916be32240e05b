"""What `eos plan` prints, with the Pulsar faked."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from eos.cli.app import typer_app
from eos.errors import InvalidInput
from eos.inspect import segments
from eos.inspect.segments import SegmentReader, Storage, TopicSegment

BASE = "persistent://public/default"


def test_a_plan_names_segments_that_may_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        TopicSegment(f"{BASE}/a", 7, 3, 90, Storage(kind), (), SegmentReader.BROKERS)
        for kind in ("unknown", "offloaded")
    ]
    monkeypatch.setattr(segments, "segments", lambda *_: iter(found))
    said = CliRunner().invoke(typer_app, ["plan", "a"]).output
    assert said.count("may be lost") == 1
    assert f"Ledger 7 of {BASE}/a has no metadata in BookKeeper that the broker can read. Its 3 entries" in said


def test_a_plan_says_once_why_bookies_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        TopicSegment(f"{BASE}/a", ledger, 3, 90, Storage.BOOKIES, ("bk0",), SegmentReader.BROKERS, why)
        for ledger, why in ((7, "No id of bk0 names"), (8, "No id of bk0 names"), (9, ""))
    ]
    monkeypatch.setattr(segments, "segments", lambda *_: iter(found))
    assert CliRunner().invoke(typer_app, ["plan", "a"]).output.count("No id of bk0 names") == 1


def test_credentials_for_no_storage_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "segments", lambda *_: pytest.fail("it was asked"))
    error = CliRunner().invoke(typer_app, ["plan", "a", "--offload-credentials", "file:keys.json"]).exception
    assert isinstance(error, InvalidInput)
    assert "--offload-credentials is for the storage that --offload-url names" in str(error)
