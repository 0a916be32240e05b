"""What must be true of queries that were killed: their results, their state, their checkpoints, and the ledgers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import statestore
from eos.spark.capabilities import Capability, has
from statestore.bk import tree as names
from statestore.hadoop.file_systems import Hadoop
from tests.soak.queries import ROWS, START
from tests.waiting import until

Pairs = Sequence[tuple[str, str]]
SESSION_MS = 6_000  # how soon ZooKeeper takes a killed driver for dead
NO_METADATA = "has no operator metadata"  # that came with Spark 4.0, as the source that reads state by them


def tree(zookeeper: str, name: str) -> tuple[str, dict[str, str]]:
    """An address with a tree of names of its own, bk://NAME/, and its options."""
    return f"bk://{name}/", {
        f"fs.bk.{name}.metadata-service-uri": f"zk://{zookeeper}/ledgers",
        "fs.bk.root": f"/{name}",
        "fs.bk.session.timeout.ms": str(SESSION_MS),
    }


def check_results(out: Path, pairs: Pairs, batches: int) -> None:
    """Each batch gave what a computation from all rows gives, each time that it ran."""
    for provider, query in pairs:
        folder = out / f"{provider}-{query}"
        assert not list(folder.glob("*.differs")), f"{folder.name}: a batch that ran again gave something else"
        for batch in range(batches):
            given = [tuple(row) for row in json.loads((folder / f"{batch}.json").read_text())]
            assert given == results(query, batch), f"{folder.name}: batch {batch} is wrong"


def check_states(states: Mapping[str, object], others: Mapping[str, object], pairs: Pairs) -> None:
    """The state is there, and the same in both places."""
    for provider, query in pairs:
        name = f"{provider}-{query}"
        assert states[name], f"{name} has no state"
        assert states[name] == others[name], f"{name}: the state is not that of the query that ran undisturbed"


def check_checkpoints(root: str, options: Mapping[str, str], pairs: Pairs) -> int:
    """Nothing is found by `verify`; return how many files were read."""
    files = 0
    for provider, query in pairs:
        report = statestore.verify(f"{root}{provider}-{query}", options=options, operators=1)
        wrong = [one for one in report.findings if has(Capability.READS_STATE) or NO_METADATA not in one.message]
        assert not wrong, wrong
        assert len(report.batches) == 2
        assert report.copies is None or report.copies > 0
        files += report.files
    return files


def check_ledgers(root: str, options: Mapping[str, str]) -> tuple[int, int]:
    """After a sweep without grace no ledger is left that nothing needs, and none is gone that something needs.

    Returns:
        How many ledgers were freed, and how many are left.
    """
    hadoop = Hadoop.of(options={**options, "fs.bk.grace.ms": "0"})
    fs = hadoop.file_system(root)
    address = statestore.BkAddress.parse(root, options)
    of_drivers = names.ledgers(hadoop, address).keys()
    freed = 0

    def sweep() -> bool:
        """Whether the drivers' ledgers are closed: those of a killed one once ZooKeeper has ended its session."""
        nonlocal freed
        freed += len(hadoop.jvm.eos.bk.Maintenance.sweep(fs))
        return all(ledger.sealed for ledger in names.ledgers(hadoop, address).values() if ledger.id in of_drivers)

    until(sweep, "a ledger of a driver that is gone stays open", pause_s=0.2)
    # What the first round compacts, and what it saw without references for the first time, the next ones free.
    for _ in range(2):
        sweep()
    assert list(hadoop.jvm.eos.bk.Maintenance.orphans(fs)) == []
    ledgers = names.ledgers(hadoop, address)
    assert [ledger.id for ledger in ledgers.values() if not ledger.references] == []
    for path, record in names.files(hadoop, address).items():
        if record.length:
            assert record.write in ledgers[record.ledger].references, path
    return freed, len(ledgers)


Rows = list[tuple[int, ...]]


def results(query: str, batch: int) -> Rows:
    """What a batch of a query must output, sorted."""
    return sorted(_OUTPUTS[query](batch))


def _values(first: int, last: int) -> range:
    return range(first * ROWS, (last + 1) * ROWS)


def _aggregation(batch: int) -> Iterator[tuple[int, ...]]:
    """Update mode: each group that the batch touches, with all rows of its window so far."""
    opened = batch - batch % 5
    for k in range(7):
        group = [value for value in _values(opened, batch) if value % 7 == k]
        yield START + opened, k, len(group), sum(group)


def _deduplication(batch: int) -> Iterator[tuple[int, ...]]:
    """A key is let through in the batch that its first value comes in."""
    return ((value // 3,) for value in _values(batch, batch) if value % 3 == 0)


def _join(batch: int) -> Iterator[tuple[int, ...]]:
    """Each row but the first thirty has a partner, which came before it."""
    return ((value,) for value in _values(batch, batch) if value >= 30)


def _transform(batch: int) -> Iterator[tuple[int, ...]]:
    return ((k, sum(value for value in _values(0, batch) if value % 5 == k)) for k in range(5))


_OUTPUTS: dict[str, Callable[[int], Iterator[tuple[int, ...]]]] = {
    "aggregation": _aggregation,
    "deduplication": _deduplication,
    "join": _join,
    "transform": _transform,
}
