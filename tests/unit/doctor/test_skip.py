"""No batch of a job of `eos.write` is skipped. The other commands, too, know that it has no query and no next batch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eos.commit.control_log import Record
from eos.commit.decision import JOB
from eos.errors import InvalidInput
from tests.unit.doctor.cluster import BEGINS, INTENT, MARKER, FakeAdmin, FakeClient, refused, run

BEGUN: list[Record] = [replace(BEGINS, query_id=f"{JOB}rows"), replace(INTENT, query_id=f"{JOB}rows", batch_id=0)]
DONE = replace(MARKER, query_id=f"{JOB}rows", batch_id=0)
NEXT_CALL = "The next call of eos.write"


@pytest.mark.parametrize("log", [BEGUN, [*BEGUN, DONE]])
@pytest.mark.parametrize("batch", ["0", "7"])
def test_no_batch_of_a_job_is_skipped(log: list[Record], batch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its MARKER would not say what was written, and each later call of the job would be refused."""
    client = FakeClient(log)
    error = run(monkeypatch, client, FakeAdmin({}), "sink", "skip", "rows", "--batch", batch, "--yes").exception
    assert isinstance(error, InvalidInput)
    assert "is a job of eos.write" in str(error)
    assert "`eos sink abort rows`" in str(error)
    assert client.asked == []


@pytest.mark.parametrize("ends", [[], ["TransactionNotFound"]])
def test_after_an_abort_the_next_call_writes_the_job(ends: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    client = FakeClient(BEGUN, ends=[refused(code) for code in ends])
    done = run(monkeypatch, client, FakeAdmin({}), "sink", "abort", "rows", "--yes")
    assert f"{NEXT_CALL} writes the job." in done.output
    assert "query writes" not in done.output


def test_a_job_that_starts_over_is_written_by_its_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("sink", "reset", "rows", "--admin-url", "http://localhost:1", "--service-url", "pulsar://localhost")
    done = run(monkeypatch, FakeClient([*BEGUN, DONE]), FakeAdmin({}), *words, said="n\n")
    assert f"{NEXT_CALL} with this job_id writes all of its rows, once more." in done.output
    assert "checkpoint" not in done.output
