"""What lies on a topic, entry by entry, and what its broker logged: for a test that has found a wrong count."""

from __future__ import annotations

from eos.config import Cluster
from eos.local import LocalPulsar
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.topics import partition_name

_SILENCE_S = 5.0
_LINES = 80
_WORDS = ("TransactionBuffer", "TransactionMetadataStore", "snapshot", "recover")


def evidence(broker: LocalPulsar, topic: str, partitions: int) -> str:
    """Return a line for each entry that readers get, with its transaction, and what the log says of transactions."""
    lines = []
    with Client(Cluster(broker.service_url)) as client:
        for partition in range(partitions):
            name = partition_name(topic, partition)
            with client.entry_reader(name, None) as reader:
                while found := reader.read(_SILENCE_S):
                    for entry in found:
                        of = entry.metadata
                        txn = (of.txnid_most_bits, of.txnid_least_bits) if of.HasField("txnid_most_bits") else None
                        what = f"{entry.num_messages} of {of.producer_name} {of.sequence_id}, transaction {txn}"
                        lines.append(f"partition {partition}, entry {entry.id}: {what}, sent {of.publish_time}")
    logged = broker.log.read_text(errors="replace").splitlines()
    told = [line for line in logged if any(word in line for word in _WORDS) and ("rows-" in line or "WARN" in line)]
    return "\n".join([*lines, *told[-_LINES:]])
