"""The rows that the built-in jobs read and write, and the rows that they should write by plain pandas.

Input: CSV files `NNNNN.csv` without a header, one for each micro-batch, with the columns of `INPUT`:

    p int        the partition of the input that the row belongs to
    s bigint     its number there: 0, 1, 2 ... without a gap
    key string   what the stateful job counts by
    amount int   what it sums up
    at bigint    when the row was made, milliseconds since the epoch; the event time of the output

Output: one JSON object a row, and the message's key:

    stateless    {"p": 1, "s": 17, "batch": 4}                        key "p1"
    stateful     {"key": "k3", "count": 12, "sum": 340, "batch": 4}   key "k3"; one row for each key of a batch

The jobs make these with Spark's expressions. The expected rows are computed here, without Spark and without `eos`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from pathlib import Path

import pandas as pd

from statestore.drills.judge.accounting import Expected, OutputRow

INPUT = {"p": "int", "s": "bigint", "key": "string", "amount": "int", "at": "bigint"}
SCHEMA = ", ".join(f"{name} {kind}" for name, kind in INPUT.items())
"""The input's schema in Spark's words."""

_PARTITIONS = 4


def input_file(folder: Path, batch: int) -> Path:
    """Return where the input of a micro-batch is."""
    return folder / f"{batch:05}.csv"


def write_input(folder: Path, batch: int, rows: int, at_ms: int, *, keys: int = 7) -> Path:
    """Write the input of the next micro-batch: a function of its number and `rows`, which is the same for all.

    The file appears whole, and younger than those before it, which is the order in which Spark takes files.
    """
    numbers = range(batch * rows, (batch + 1) * rows)
    lines = (
        f"{number % _PARTITIONS},{number // _PARTITIONS},k{number % keys},{number * 7919 % 1000},{at_ms}\n"
        for number in numbers
    )
    path = input_file(folder, batch)
    # Spark overlooks files whose names begin with an underscore.
    unfinished = folder / f"_{path.name}"
    unfinished.write_text("".join(lines))
    os.utime(unfinished, (1_700_000_000 + batch, 1_700_000_000 + batch))
    return unfinished.rename(path)


def read_input(folder: Path) -> pd.DataFrame:
    """Return the input so far: its columns, and `batch`."""
    files = sorted(folder.glob("[0-9]*.csv"))
    parts = [pd.read_csv(path, names=list(INPUT)).assign(batch=int(path.stem)) for path in files]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*INPUT, "batch"])


def stateless(inputs: pd.DataFrame, committed: Collection[int]) -> Expected:
    """Compute what the stateless job writes."""
    columns = (inputs[name].tolist() for name in ("batch", "p", "s"))
    rows = (OutputRow(batch, f"p{p}", s) for batch, p, s in zip(*columns, strict=True))
    return Expected(frozenset(rows), frozenset(committed))


def stateful(inputs: pd.DataFrame, committed: Collection[int]) -> Expected:
    """Compute what the stateful job writes: after each batch, count and sum so far of each key that the batch had."""
    totals = _totals(inputs, ["batch", "key"]).sort_index().groupby("key").cumsum()
    rows = (
        OutputRow(batch, key, count, f"sum={total}")
        for (batch, key), count, total in zip(totals.index, totals["count"], totals["sum"], strict=True)
    )
    return Expected(frozenset(rows), frozenset(committed), stateful=True)


def state(inputs: pd.DataFrame, committed: Collection[int]) -> dict[str, tuple[int, int]]:
    """Compute the state after the committed batches: count and sum of each key."""
    totals = _totals(inputs[inputs["batch"].isin(list(committed))], ["key"])
    return {str(key): (int(count), int(total)) for key, count, total in totals.itertuples()}


def parse(key: str, data: bytes) -> OutputRow:
    """Read a message as a row of one of the jobs.

    Anything else becomes an unexpected row, of batch -1: the reader judges nothing.
    """
    try:
        value = json.loads(data)
    except ValueError:
        value = None
    match value:
        case {"p": int(p), "s": int(s), "batch": int(batch), **rest} if not rest and key == f"p{p}":
            return OutputRow(batch, key, s)
        case {"key": str(k), "count": int(n), "sum": int(m), "batch": int(batch), **rest} if not rest and key == k:
            return OutputRow(batch, key, n, f"sum={m}")
    return OutputRow(-1, "", 0, f"not a row, but {data[:80]!r} with key {key!r}")


def _totals(inputs: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    return inputs.groupby(by)["amount"].agg(["count", "sum"]).astype("int64")
