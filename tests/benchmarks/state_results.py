"""From raw figures to `state.json`: medians, percentiles, spreads, and what ours are to those of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np

from tests.benchmarks.large_file import RAW, READ, WRITE
from tests.benchmarks.results import Json, spread
from tests.benchmarks.rounds import Timed
from tests.benchmarks.state_plan import BK, FEW, FILE, HDFS, MANY
from tests.benchmarks.stateful import Turn

Taken = Mapping[str, Sequence[Turn]]
"""The turns that count of each file system."""

AIMS = {"hdfs_200": 1.0, "file_8": 1.5}
"""The p50 of commits on bk:// divided by that of each: at most this."""
RAW_AIMS = {"raw_write": 0.6, "raw_read": 0.6}
"""The bytes a second of bk:// divided by those of BookKeeper's client: at least this."""

_COMPARED = {"hdfs_200": (MANY, HDFS), "file_8": (FEW, FILE)}


def large_file(timed: Mapping[str, Mapping[str, Timed]]) -> Json:
    """The large file: every round, MB/s, and the ratios of the medians to BookKeeper's client."""
    rounds, rates, ratios = {}, {}, {}
    for verb in (WRITE, READ):
        by_name = timed[verb]
        rounds[f"large_file_{verb}"] = {
            name: {"bytes": one.amount, "seconds": [round(seconds, 6) for seconds in one.seconds]}
            for name, one in by_name.items()
        }
        rates[verb] = {name: spread([rate / 1e6 for rate in one.rates], digits=1) for name, one in by_name.items()}
        ratios[f"raw_{verb}"] = round(by_name[BK].rate / by_name[RAW].rate, 3)
    return {"rounds": rounds, "mb_per_s": rates, "ratios": ratios}


def stateful(turns: Mapping[int, Taken]) -> Json:
    """The stateful query by its number of state partitions, where every file system has had a turn that counts."""
    whole = {partitions: taken for partitions, taken in turns.items() if all(taken.values())}
    idle = _writes_per_s_without_bk(list(whole.values()))
    compared = {
        name: (whole[partitions][BK], whole[partitions][other])
        for name, (partitions, other) in _COMPARED.items()
        if partitions in whole and other in whole[partitions]
    }
    return {
        "rounds": {f"state_{partitions}": _raw(taken) for partitions, taken in turns.items()},
        "ratios": {name: round(p50(ours) / p50(theirs), 3) for name, (ours, theirs) in compared.items()},
        "ratios_of_rounds": {
            name: spread([p50([mine]) / p50([other]) for mine, other in zip(ours, theirs, strict=False)])
            for name, (ours, theirs) in compared.items()
        },
        "zookeeper_writes_per_s_without_bk": round(idle, 2),
        **{f"state_{partitions}": _figures(taken, idle) for partitions, taken in whole.items()},
    }


def p50(turns: Sequence[Turn]) -> float:
    """The median commit of all batches, in milliseconds."""
    return median(batch.commit for turn in turns for batch in turn.batches)


def _figures(taken: Taken, idle: float) -> Json:
    ours = taken[BK]
    written = sum(turn.written for turn in ours)
    writes = sum(turn.zookeeper_writes - idle * turn.seconds for turn in ours)
    return {
        "commit_ms": {name: _commits(turns) for name, turns in taken.items()},
        "batch_ms": {
            name: round(median(batch.whole for turn in turns for batch in turn.batches), 1)
            for name, turns in taken.items()
        },
        "restart_s": {name: spread([turn.restart_s for turn in turns]) for name, turns in taken.items()},
        "zookeeper_writes_per_batch": round(writes / written, 1),
        "ledgers_per_batch": round(sum(turn.ledgers for turn in ours) / written, 3),
    }


def _commits(turns: Sequence[Turn]) -> Json:
    batches = [batch for turn in turns for batch in turn.batches]
    middle, high = np.percentile([batch.commit for batch in batches], [50, 99])
    return {
        "p50": round(float(middle), 1),
        "p99": round(float(high), 1),
        "p50_of_rounds": spread([p50([turn]) for turn in turns], digits=1),
        "batches": len(batches),
        "wal_p50": median(batch.wal for batch in batches),
        "state_p50": median(batch.state for batch in batches),
        "log_p50": median(batch.log for batch in batches),
    }


def _writes_per_s_without_bk(all_taken: Sequence[Taken]) -> float:
    """The writes of the broker and of the sessions to ZooKeeper meanwhile: seen while others had their turn."""
    others = [turn for taken in all_taken for name, turns in taken.items() if name != BK for turn in turns]
    return sum(turn.zookeeper_writes for turn in others) / sum(turn.seconds for turn in others) if others else 0.0


def _raw(taken: Taken) -> Json:
    return {
        name: [
            {
                "batches": [[batch.wal, batch.state, batch.log, batch.whole] for batch in turn.batches],
                "restart_s": round(turn.restart_s, 3),
                "state_rows": turn.rows,
                "seconds": round(turn.seconds, 3),
                "batches_in_those_seconds": turn.written,
                "zookeeper_writes": turn.zookeeper_writes,
                "ledgers": turn.ledgers,
            }
            for turn in turns
        ]
        for name, turns in taken.items()
    }
