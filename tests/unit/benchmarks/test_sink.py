"""The figures of `make bench-sink` from made-up turns."""

from __future__ import annotations

from tests.benchmarks import results
from tests.benchmarks.rounds import Timed
from tests.benchmarks.table import lines_of

ROWS = 500_000


def timed(seconds: float, cpu: float, broker: float) -> Timed:
    return Timed(ROWS, (seconds,) * 3, (cpu,) * 3, (broker,) * 3)


FOUND = results.throughput(
    {
        "this_sink": timed(1, 0.75, 0.5),
        "tls": timed(1.25, 1, 0.75),
        "metrics": timed(1.5, 0.9, 0.5),
        "java_txn": timed(2, 1, 0.5),
        "pulsar_client": timed(20, 10, 0.5),
        "ceiling": timed(0.5, 0.5, 0),
    }
)


def test_the_cpu_is_that_of_a_million_rows_and_the_sinks_own_is_over_counting() -> None:
    cpu = FOUND["cpu"]
    assert (cpu["sink"], cpu["sink_over_counting"], cpu["java"], cpu["pulsar_client"]) == (1.5, 0.5, 2.0, 20.0)
    assert cpu["ratios"] == {"java": 0.25, "pulsar_client": 0.025, "metrics": 1.2}
    assert cpu["broker"] == 1.0
    assert cpu["broker_of_each"]["tls"]["median"] == 1.5


def test_the_ratios_of_tls_and_metrics_are_what_they_cost() -> None:
    assert FOUND["ratios"] == {"tls": 1.25, "metrics": 1.5, "java_txn": 2.0, "pulsar_client": 20.0, "ceiling": 0.5}
    aims = {name: (ratio, aim) for name, ratio, *_, aim in lines_of(FOUND)}
    assert aims["tls"] == ("1.25", "≤ 1.3")
    assert aims["metrics"] == ("1.5", "≤ 1.02")
    assert aims["ceiling"] == ("0.5", "≥ 0.55")
    assert aims["this_sink"] == ("", "")
