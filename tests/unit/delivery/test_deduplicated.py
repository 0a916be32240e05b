"""A batch that is begun once and replayed as it was begun: by which ways, over which partitions, compared with what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from eos.delivery import deduplicated
from eos.delivery.begun import Planned
from eos.delivery.deduplicated import DeduplicatedDelivery, topics_of
from eos.delivery.delivery import Care, Write
from eos.delivery.numbering import Kept, Numbering
from eos.delivery.paths import ByDriver
from eos.delivery.stored import Found
from eos.delivery.writer import BatchTransaction, Report
from eos.errors import InvalidInput
from eos.pulsar.wire.txn import TxnId
from eos.steps import unobserved

TOPIC, OTHER = "persistent://public/default/t", "persistent://public/default/u"
ROWS = pa.table({"value": ["a"]})
KEPT = Kept(1, "abc")


class Frame:
    """A DataFrame that can be computed once."""

    def __init__(self, name: str) -> None:
        self.name = name

    def localCheckpoint(self) -> Frame:  # noqa: N802  Spark's name
        return Frame(f"{self.name}, computed")


@dataclass
class Scripted:
    """A run's delivery, whose ways note what they are asked for."""

    log: list[str] = field(default_factory=list)
    ran: set[str] = field(default_factory=lambda: {"0", "1"})
    sent: list[BatchTransaction] = field(default_factory=list)

    def transaction(
        self, txn: TxnId | None, batch_id: int, partitions: Mapping[str, int], numbering: Numbering
    ) -> BatchTransaction:
        return BatchTransaction(txn, batch_id, unobserved, partitions, numbering=numbering)

    def prepare(self, write: Write, rows: pa.Table | None) -> Any:
        return self._path(rows if rows is not None or write.topic == TOPIC else ROWS, {str(write.topic): 2})

    def prepare_by(self, write: Write, rows: pa.Table | None, partitions: Mapping[str, int]) -> Any:
        df: Any = write.df
        self.log.append(f"{df.name}: {'tasks' if rows is None else 'driver'} over {dict(partitions)}")
        return self._path(rows, partitions)

    def _path(self, rows: pa.Table | None, partitions: Mapping[str, int]) -> Any:
        if rows is not None:
            return Driver(self, partitions)
        return SimpleNamespace(partitions=partitions, places=self.ran, send=self.send)

    def send(self, to: BatchTransaction) -> Report:
        self.sent.append(to)
        return Report()


class Driver(ByDriver):
    """The driver's way, which sends nothing."""

    def __init__(self, of: Scripted, partitions: Mapping[str, int]) -> None:
        super().__init__(ROWS, settings=None, producers=None, partitions=partitions)  # type: ignore[arg-type]
        self.of = of

    def send(self, transaction: BatchTransaction) -> Report:
        return self.of.send(transaction)


@pytest.fixture
def run() -> Scripted:
    return Scripted()


@pytest.fixture
def batch(run: Scripted) -> DeduplicatedDelivery:
    given: Any = run
    tasks, driver = (Write(Frame(name), topic) for name, topic in (("many", TOPIC), ("few", OTHER)))  # type: ignore[arg-type]
    return DeduplicatedDelivery(given, 3, [tasks, driver], "flights", 1_000)


BEGUN = (Planned(TOPIC, 2, None), Planned(OTHER, 0, 500))


def test_what_is_begun_is_how_each_write_is_sent(batch: DeduplicatedDelivery, run: Scripted) -> None:
    batch.prepare()
    assert batch.planned == (Planned(TOPIC, 2, None), Planned(OTHER, 2, 1_000))
    batch.send(None)
    assert [to.numbering for to in run.sent] == [
        Numbering("flights", 3, 0, {}),
        Numbering("flights", 3, 1, {}),
    ]


def test_the_physical_topics_of_writes_are_named_once() -> None:
    assert topics_of([*BEGUN, BEGUN[0]]) == [f"{TOPIC}-partition-0", f"{TOPIC}-partition-1", OTHER]


@pytest.mark.parametrize("stored", [True, False])
def test_a_replay_goes_the_ways_of_then_and_computes_once_what_is_compared(
    batch: DeduplicatedDelivery, run: Scripted, monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    collected: list[tuple[str, int, Care]] = []

    def collect(df: Any, limit: int, care: Care) -> pa.Table:
        collected.append((df.name, limit, care))
        return ROWS

    monkeypatch.setattr(deduplicated, "collect_small", collect)
    found = Found({(0, "1", TOPIC): KEPT}) if stored else Found()
    for _ in range(2):
        batch.prepare_again(BEGUN, found)
    assert collected == [("few", 500, Care.ROWS)], "the limit of then, and once"
    many = "many, computed" if stored else "many"
    assert run.log == [f"{many}: tasks over {{'{TOPIC}': 2}}", f"few: driver over {{'{OTHER}': 0}}"] * 2
    batch.compare()
    batch.send(None)
    compared = [Numbering("flights", 3, 0, {"1": {TOPIC: KEPT}}, compares=True)] if stored else []
    last = [Numbering("flights", 3, 0, found.of(0)), Numbering("flights", 3, 1, {})]
    assert [to.numbering for to in run.sent] == [*compared, *last]


def test_a_batch_that_has_become_too_much_for_the_driver_is_another_one(
    batch: DeduplicatedDelivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deduplicated, "collect_small", lambda *_: None)
    with pytest.raises(InvalidInput, match=f"it had 500 rows at most for {OTHER}, and now it has more"):
        batch.prepare_again(BEGUN, Found())


def test_rows_of_a_writer_that_is_not_there_any_more_are_not_forgotten(
    batch: DeduplicatedDelivery, run: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deduplicated, "collect_small", lambda *_: ROWS)
    batch.prepare_again(BEGUN, Found({(0, "2", TOPIC): KEPT}))
    with pytest.raises(InvalidInput, match=r"the task of Spark's partition 2 had sent.* now it has no such writer"):
        batch.compare()
    run.ran = {"0", "1", "2"}
    batch.prepare_again(BEGUN, Found({(0, "2", TOPIC): KEPT}))
    batch.compare()
