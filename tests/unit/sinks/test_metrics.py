"""What the sink counts, and the line that it tells of each batch."""

from __future__ import annotations

import re

from eos.commit.control_log import Marker
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
        metrics.committed(one.rows, one.bytes)
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


def test_of_many_topics_the_number_is_told_and_of_no_rows_no_topic() -> None:
    assert " bytes to 4 topics in " in Metrics().story(marker(a=1, b=1, c=1, d=1))
    assert "committed 0 rows, 0 bytes in " in Metrics().story(marker())
