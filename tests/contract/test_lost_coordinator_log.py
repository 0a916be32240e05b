"""What a real broker does without the log of its transaction coordinator: why the sink refuses a number given again."""

from __future__ import annotations

import httpx

from eos.config import Cluster
from eos.local import LocalPulsar
from eos.pulsar.net.client import Client
from eos.pulsar.wire.txn import TxnId
from tests.conftest import START_S

TOPIC = "persistent://public/default/hidden"
SYSTEM = "admin/v2/persistent/pulsar/system"


def write(client: Client, row: bytes, *, commit: bool) -> TxnId:
    coordinator = client.coordinator(0)
    txn = coordinator.new_transaction(60_000)
    coordinator.add_partitions(txn, [TOPIC])
    with client.producer(TOPIC) as producer:
        producer.send_record(row, txn)
    coordinator.end(txn, commit=commit)  # raises where the answer is no success
    return txn


def test_a_coordinator_without_its_log_gives_numbers_again_and_topics_hide_what_is_committed_by_them() -> None:
    with LocalPulsar(start_timeout_s=START_S) as broker:
        with Client(Cluster(broker.service_url)) as client:
            aborted = write(client, b"aborted", commit=False)
        for gone in (
            httpx.delete(f"{broker.admin_url}/{SYSTEM}/__transaction_log_0?force=true", timeout=60),
            httpx.put(f"{broker.admin_url}/{SYSTEM}/transaction_coordinator_assign-partition-0/unload", timeout=60),
        ):
            assert gone.is_success, gone.text
        with Client(Cluster(broker.service_url)) as client:
            assert write(client, b"committed", commit=True) == aborted
            assert write(client, b"of a new number", commit=True) > aborted
            with client.reader(TOPIC) as reader:
                message = reader.read(60)
                assert message is not None
                assert message.data == b"of a new number"
