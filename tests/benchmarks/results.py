"""From raw figures to `sink.json`: ratios of medians, percentiles, spreads."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil

from eos.local.jars import PULSAR_VERSION
from tests.benchmarks.micro_batches import Latency, Pair, added_p50
from tests.benchmarks.rounds import Timed

Json = dict[str, Any]

AIMS = {
    "pulsar_client": ("≥", 20.0),
    "java_txn": ("≥", 3.0),
    "ceiling": ("≥", 0.55),
    "tls": ("≤", 1.3),
    "metrics": ("≤", 1.02),
}
"""The sink's rows a second divided by those of each. Of TLS and metrics it is what they cost: 1.3 is 30 % more time."""

CPU_AIMS = {"java": ("≤", 0.35), "pulsar_client": ("≤", 0.05), "metrics": ("≤", 1.02)}
"""The sink's CPU over counting divided by the CPU of each; of metrics, its CPU with them divided by that without."""


def machine() -> Json:
    """The machine and the versions that the figures were measured with."""
    java = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr
    return {
        "cpu": _cpu(),
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "load_before": round(psutil.getloadavg()[0], 2),
        "python": platform.python_version(),
        "java": java.split('"')[1] if '"' in java else java,
        "pulsar": PULSAR_VERSION,
        **{package: version(package) for package in ("pyspark", "pyarrow", "numpy", "pulsar-client")},
    }


def throughput(timed: Mapping[str, Timed]) -> Json:
    """One kind of rows: every round, and the ratios of the medians with those of the single rounds."""
    sink = timed["this_sink"]
    others = {name: other for name, other in timed.items() if name in AIMS}
    return {
        "rounds": {
            name: {"rows": one.amount, "seconds": [round(seconds, 4) for seconds in one.seconds]}
            for name, one in timed.items()
        },
        "rows_per_s": {name: spread(one.rates, digits=0) for name, one in timed.items()},
        "ratios": {name: round(sink.rate / other.rate, 3) for name, other in others.items()},
        "ratios_of_rounds": {
            name: spread([ours / theirs for ours, theirs in zip(sink.rates, other.rates, strict=True)])
            for name, other in others.items()
        },
        "cpu": _cpu_of(timed),
    }


def _cpu_of(timed: Mapping[str, Timed]) -> Json:
    """Seconds of CPU for a million rows: of the contenders' own processes, and of the broker's in their turns."""
    clients = {name: _for_a_million(one.cpu_seconds, one.amount) for name, one in timed.items()}
    brokers = {name: _for_a_million(one.broker_cpu_seconds, one.amount) for name, one in timed.items()}
    middle = {name: median(seconds) for name, seconds in clients.items()}
    over_counting = middle["this_sink"] - middle["ceiling"]
    found: Json = {
        "sink": round(middle["this_sink"], 3),
        "sink_over_counting": round(over_counting, 3),
        "java": round(middle["java_txn"], 3),
        "pulsar_client": round(middle["pulsar_client"], 3),
        "ratios": {
            "java": round(over_counting / middle["java_txn"], 3),
            "pulsar_client": round(over_counting / middle["pulsar_client"], 3),
            "metrics": round(middle["metrics"] / middle["this_sink"], 3),
        },
        "of_each": {name: spread(seconds) for name, seconds in clients.items()},
    }
    if brokers["this_sink"]:
        found["broker"] = round(median(brokers["this_sink"]), 3)
        found["broker_of_each"] = {name: spread(seconds) for name, seconds in brokers.items()}
    return found


def _for_a_million(seconds: Sequence[float], rows: int) -> list[float]:
    return [1e6 * used / rows for used in seconds]


def batch_ms(latency: Latency) -> Json:
    """Milliseconds that the sink adds to a micro-batch."""
    added = [pair.added for pair in latency.driver]
    p50, p99 = np.percentile(added, [50, 99])
    return {
        "p50": round(float(p50), 2),
        "p99": round(float(p99), 2),
        "task_p50_over_count": round(added_p50(latency.tasks), 2),
        "partitions_64_over_1": _growth(latency.one_row),
        "partitions_64_over_1_all_written": _growth(latency.all_partitions),
        "spreads": {
            "driver": _three(latency.driver),
            "tasks": _three(latency.tasks),
            "one_row_1_partition": _three(latency.one_row[0]),
            "one_row_64_partitions": _three(latency.one_row[1]),
            "all_written_1_partition": _three(latency.all_partitions[0]),
            "all_written_64_partitions": _three(latency.all_partitions[1]),
        },
        "batches": {
            "driver": _raw(latency.driver),
            "tasks": _raw(latency.tasks),
            "one_row": [_raw(pairs) for pairs in latency.one_row],
            "all_written": [_raw(pairs) for pairs in latency.all_partitions],
        },
    }


def worker_memory(peaks: Mapping[int, Sequence[int]]) -> Json:
    """{rows: peak bytes of the largest worker, of each process}, smaller number of rows first."""
    few, many = (median(peaks[rows]) for rows in sorted(peaks))
    return {
        "worker_rss_10m_over_1m": round(many / few, 3),
        "worker_rss_mib": {str(rows): [round(peak / 2**20, 1) for peak in taken] for rows, taken in peaks.items()},
    }


def _growth(pairs: list[list[Pair]]) -> float:
    one, many = pairs
    return round(added_p50(many) / added_p50(one), 3)


def _three(pairs: list[Pair]) -> Json:
    return {
        "added": spread([pair.added for pair in pairs]),
        "sink": spread([pair.sink for pair in pairs]),
        "baseline": spread([pair.baseline for pair in pairs]),
    }


def _raw(pairs: list[Pair]) -> list[list[float]]:
    return [[round(pair.baseline, 2), round(pair.sink, 2)] for pair in pairs]


def spread(values: Sequence[float], digits: int = 3) -> dict[str, float]:
    """Return the least, the median and the largest of them."""
    return {
        "min": round(min(values), digits),
        "median": round(median(values), digits),
        "max": round(max(values), digits),
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()
