"""What the sink counts, and the line that it tells of each batch."""

from __future__ import annotations

import re

import pytest

from eos.commit.control_log import Marker
from eos.commit.decision import Identity
from eos.errors import CommitUnknown, Fenced, InvalidInput, NotCommitted, ReplayFailed, Unacknowledged
from eos.pulsar.wire.txn import TxnId
from eos.sinks.metrics import Metrics
from eos.steps import Step

FLIGHTS, DELAYS = "persistent://public/default/flights", "persistent://public/default/delays"


def marker(**rows: int) -> Marker:
    by_topic = {f"persistent://public/default/{topic}": number for topic, number in rows.items()}
    sizes = {topic: 10 * number for topic, number in by_topic.items()}
    return Marker(3, "query", "run", 812, 2, TxnId(3, 1206), None, by_topic, sizes, "offsets")


def test_rows_and_bytes_are_counted_by_topic() -> None:
    metrics = Metrics()
    for one in (marker(flights=2_000, delays=5), marker(flights=1), marker()):
        metrics.committed(one, {})
    seen = metrics.snapshot()
    assert (seen.committed, seen.rows, seen.bytes) == (3, 2_006, 20_060)
    assert seen.rows_by_topic == {FLIGHTS: 2_001, DELAYS: 5}
    assert seen.bytes_by_topic == {FLIGHTS: 20_010, DELAYS: 50}


def test_a_batch_is_told_in_one_line() -> None:
    metrics = Metrics()
    for step in (Step.OPEN, Step.MARKER, Step.END_SENT, Step.END_ANSWERED):
        metrics.see(step, "before")
        metrics.see(step, "after")
    told = metrics.story(marker(flights=2_000, delays=5))
    assert re.fullmatch(
        r"batch 812: committed 2,005 rows, 20,050 bytes to delays, flights in \d\.\d{3} s, "
        r"\d\.\d{3} s of it for the commit; transaction \(3,1206\), attempt 2",
        told,
    )


def test_a_batch_without_a_transaction_is_told_in_one_line_with_its_tries() -> None:
    metrics = begun()
    metrics.tries()
    metrics.tries()
    metrics.committed(marker(flights=2_000, delays=5), {FLIGHTS: 2})
    told = metrics.plain_story()
    assert re.fullmatch(
        r"batch 812: wrote 2,005 rows, 20,050 bytes to delays, flights in \d\.\d{3} s, without a transaction; "
        r"attempt 2",
        told,
    )
    assert (metrics.finished(None).transaction, metrics.snapshot().attempts) == (None, 2)


@pytest.mark.parametrize("error", [InvalidInput("row 7"), Unacknowledged("no receipt")])
def test_of_a_batch_whose_rows_were_sent_without_a_transaction_nobody_knows_what_is_visible(error: Exception) -> None:
    metrics = begun()
    metrics.sends()
    assert metrics.finished(error).outcome == "unknown"


def test_of_many_topics_the_number_is_told_and_of_no_rows_no_topic() -> None:
    assert " bytes to 4 topics in " in Metrics().story(marker(a=1, b=1, c=1, d=1))
    assert "committed 0 rows, 0 bytes in " in Metrics().story(marker())


def begun(batch_id: int = 812) -> Metrics:
    metrics = Metrics("flights")
    metrics.begin(batch_id)
    metrics.identified(Identity("query", "run", "offsets"))
    return metrics


def test_a_committed_batch_is_told_with_what_it_wrote() -> None:
    metrics = begun()
    metrics.delivered(0.5)
    metrics.committed(marker(flights=2_000, delays=5), {FLIGHTS: 2, DELAYS: 1}, TxnId(3, 1206))
    batch = metrics.finished(None)
    assert (batch.sink, batch.job, batch.batch_id, batch.query_id, batch.run_id) == (
        "flights",
        False,
        812,
        "query",
        "run",
    )
    assert (batch.outcome, batch.error, batch.transaction) == ("committed", None, "(3,1206)")
    assert (batch.rows, batch.bytes) == ({FLIGHTS: 2_000, DELAYS: 5}, {FLIGHTS: 20_000, DELAYS: 50})
    assert (batch.frames, batch.delivery_s) == ({FLIGHTS: 2, DELAYS: 1}, 0.5)
    assert batch.duration_s >= 0


def test_attempts_and_steps_are_those_of_the_batch_over_all_its_tries() -> None:
    metrics = begun(811)
    metrics.see(Step.TAKEOVER, "after")
    metrics.begin(812)
    for _ in range(2):
        for step in (Step.OPEN, Step.MARKER):
            metrics._began[step] = 0.0  # long ago
            metrics.see(step, "after")
    batch, snapshot = metrics.finished(None), metrics.snapshot()
    assert (batch.attempts, snapshot.attempts) == (2, 2)
    assert set(batch.step_s) == {"open", "marker"}
    assert batch.step_s["open"] > 1.5 * snapshot.step_s["open"], "both tries together, and the latest alone"


def test_a_replay_has_written_nothing_and_names_the_transaction_that_did() -> None:
    metrics = begun()
    metrics.skipped(marker(flights=1))
    batch = metrics.finished(None)
    assert (batch.outcome, batch.rows, batch.bytes, batch.frames) == ("replayed", {}, {}, {})
    assert batch.transaction == "(3,1206)"


@pytest.mark.parametrize("newest", [None, marker(flights=1)], ids=["a shadow", "older than the newest"])
def test_a_replay_whose_transaction_is_not_known_names_none(newest: Marker | None) -> None:
    metrics = begun(811)
    metrics.skipped(newest)
    assert metrics.finished(None).transaction is None


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (InvalidInput("row 3"), "failed"),
        (NotCommitted("aborted"), "failed"),
        (ReplayFailed("no memory"), "failed"),
        (CommitUnknown("no answer"), "unknown"),
        (Fenced("another driver"), "unknown"),
        (KeyboardInterrupt(), "unknown"),
    ],
)
def test_what_is_not_known_of_a_batch_is_not_told_as_a_failure(error: BaseException, outcome: str) -> None:
    batch = begun().finished(error)
    assert (batch.outcome, batch.error, batch.transaction) == (outcome, type(error).__name__, None)


def test_before_it_is_known_whose_batch_it_is_nothing_can_have_been_written() -> None:
    metrics = Metrics("flights")
    metrics.begin(3)
    batch = metrics.finished(LookupError("in the block"))
    assert (batch.outcome, batch.error, batch.query_id, batch.run_id) == ("failed", "LookupError", None, None)


def test_a_batch_that_is_committed_stays_so_whatever_comes_after() -> None:
    metrics = begun()
    metrics.committed(marker(flights=1), {FLIGHTS: 1})
    assert metrics.finished(KeyboardInterrupt()).outcome == "committed"
