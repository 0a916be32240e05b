"""The cost of a batch for brokers and bookies, counted on a real broker: the formulas of docs/scale.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from eos.commit.takeover import bound_coordinator
from eos.delivery.row_writer import WriteReport
from eos.pulsar.net.connection import Connection
from eos.pulsar.protocol.topics import partition_name
from eos.pulsar.wire.pulsar_pb2 import BaseCommand
from eos.pulsar.wire.txn import TxnId
from tests.integration.drills.query import Driver, Query, deliver

_TYPE_AT = 9  # of a frame: after two sizes and the tag of the command's type


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Which requests this process sends, and how many."""
    counted: Counter[str] = Counter()
    send = Connection.send

    def counting(self: Connection, buffers: Sequence[Any]) -> None:
        kind = bytes(buffers[0])[_TYPE_AT]
        counted[BaseCommand.Type.Name(kind)] += 1
        send(self, buffers)

    monkeypatch.setattr(Connection, "send", counting)
    return counted


class Entries:
    """Entries that ledgers have taken so far. Every bookie of the quorum writes each of them."""

    def __init__(self, pulsar: Any, topic: str, partitions: int, control: str, coordinator: int) -> None:
        self._url = f"{pulsar.admin_url}/admin"
        self._data = [partition_name(topic, number) for number in range(partitions)]
        self._control, self._coordinator = control, coordinator

    def now(self) -> Counter[str]:
        log = self._get(f"v3/transactions/coordinatorInternalStats/{self._coordinator}")["transactionLogStats"]
        return Counter(
            data=sum(self._of(topic) for topic in self._data),
            control=self._of(self._control),
            coordinator=log["managedLedgerInternalStats"]["entriesAddedCounter"],
        )

    def _of(self, topic: str) -> int:
        return int(self._get(f"v2/{topic.replace('://', '/')}/internalStats")["entriesAddedCounter"])

    def _get(self, path: str) -> Any:
        return httpx.get(f"{self._url}/{path}", timeout=30, follow_redirects=True).raise_for_status().json()


@pytest.mark.parametrize(("tasks", "partitions"), [(1, 1), (1, 4), (4, 1), (3, 5)])
def test_requests_and_entries_of_a_batch(
    pulsar: Any, make_topic: Any, tmp_path: Path, sent: Counter[str], tasks: int, partitions: int
) -> None:
    topic = make_topic("cost", partitions=partitions)
    name = topic.rpartition("/")[2]
    query = Query(pulsar.service_url, topic, name, tmp_path)
    driver = Driver(query)
    rows = pa.record_batch({"value": ["x"] * partitions, "partition": pa.array(range(partitions), pa.int32())})

    def write(txn: TxnId) -> WriteReport:
        report = WriteReport()
        for _ in range(tasks):
            report.merge(deliver(query.task(txn, 1), rows))
        return report

    driver.batch(0, write)  # what is looked up once is known then
    coordinator = bound_coordinator(name, driver.client.coordinators())
    entries = Entries(pulsar, topic, partitions, query.control, coordinator)
    before = entries.now()
    sent.clear()
    driver.batch(1, write)
    requests = Counter(sent)
    # The tasks of Spark are told, and ask once more when all is sent. One question a batch is the driver's.
    del requests["PARTITIONED_METADATA"]
    written = tasks * partitions
    assert requests == {
        "NEW_TXN": 1,
        "ADD_PARTITION_TO_TXN": 1 + tasks,
        "PRODUCER": written,
        "SEND": 2 + written,
        "CLOSE_PRODUCER": written,
        "END_TXN": 1,
    }
    assert entries.now() - before == {"data": written + partitions, "control": 3, "coordinator": 4 + tasks}
