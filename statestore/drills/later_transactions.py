"""End later transactions on a topic: what was left open, or was sent too late, shows its harm only then."""

from __future__ import annotations

from eos.config import Cluster
from eos.net.client import Client
from eos.protocol.topics import partition_name

_TTL_MS = 60_000


def end_later_transactions(service_url: str, topic: str, coordinators: int | None = None) -> None:
    """End one empty transaction of each coordinator on each partition of a topic.

    The end carries the coordinator's low watermark, below which the broker aborts what it finds open. `coordinators`:
    how many there are; default: asked for. Raises an `EosError` when one doesn't answer.
    """
    with Client(Cluster(service_url)) as client:
        names = [partition_name(topic, number) for number in range(client.partitions(topic))] or [topic]
        for index in range(client.coordinators() if coordinators is None else coordinators):
            coordinator = client.coordinator(index)
            txn = coordinator.new_transaction(_TTL_MS)
            coordinator.add_partitions(txn, names)
            coordinator.end(txn, commit=True)
