"""What compaction makes of a topic that transactions write to: which value of a key is left for a table view."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eos.pulsar.net.client import Client
from eos.pulsar.wire.batch import BatchEncoder
from eos.pulsar.wire.txn import TxnId
from tests.compaction import compact, table_view
from tests.conftest import MakeTopic
from tests.contract.conftest import Running
from tests.contract.test_entries import read_all, values
from tests.contract.test_transactions import end, transaction


@pytest.fixture
def topic(make_topic: MakeTopic) -> str:
    return make_topic("p-compaction")


def send(client: Client, topic: str, txn: TxnId | None, **rows: bytes | None) -> None:
    """Write a value of each key, in one batch; None deletes the key."""
    batch = pa.record_batch({"value": pa.array(rows.values(), pa.binary()), "key": list(rows)})
    with client.producer(topic) as producer:
        for chunk in BatchEncoder().chunks(batch):
            producer.send(chunk, txn)
        producer.flush()


def test_compaction_keeps_what_was_committed_before_an_aborted_change(
    pulsar: Running, ours: Client, topic: str, quiet: int
) -> None:
    first = transaction(ours, topic, coordinator_index=quiet)
    send(ours, topic, first, changed=b"1", deleted=b"1", kept=b"1", spared=b"1")
    end(ours, first, commit=True)
    aborted = transaction(ours, topic, coordinator_index=quiet)
    send(ours, topic, aborted, kept=b"aborted", spared=None, new=b"aborted")
    end(ours, aborted, commit=False)
    last = transaction(ours, topic, coordinator_index=quiet)
    send(ours, topic, last, changed=b"2", deleted=None)
    end(ours, last, commit=True)
    wanted = {"changed": "2", "kept": "1", "spared": "1"}
    assert table_view(pulsar.service_url, topic) == wanted
    compact(pulsar.admin_url, topic)
    assert table_view(pulsar.service_url, topic) == wanted


@pytest.mark.parametrize("commit", [True, False])
def test_compaction_stops_before_an_open_transaction_as_readers_do(
    pulsar: Running, ours: Client, topic: str, quiet: int, commit: bool
) -> None:
    send(ours, topic, None, a=b"1", b=b"1")
    first = transaction(ours, topic, coordinator_index=quiet)
    send(ours, topic, first, a=b"2")
    behind = transaction(ours, topic, coordinator_index=quiet)
    send(ours, topic, behind, b=b"2")
    end(ours, behind, commit=True)
    compact(pulsar.admin_url, topic)
    assert table_view(pulsar.service_url, topic) == {"a": "1", "b": "1"}
    end(ours, first, commit=commit)
    wanted = {"a": "2" if commit else "1", "b": "2"}
    assert table_view(pulsar.service_url, topic) == wanted
    compact(pulsar.admin_url, topic)
    assert table_view(pulsar.service_url, topic) == wanted


def test_compaction_drops_what_has_no_key(pulsar: Running, ours: Client, topic: str) -> None:
    with ours.producer(topic) as producer:
        producer.send_record(b"no key", None)
    send(ours, topic, None, key=b"1")
    compact(pulsar.admin_url, topic)
    assert values(read_all(ours, topic, compacted=True)) == [b"1"]
    assert values(read_all(ours, topic)) == [b"no key", b"1"]
