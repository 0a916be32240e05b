"""Compaction of a topic that transactions write to: the value of a key that is left for a table view."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from eos.delivery.encryption import encryptor_of
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.producer import ProducerIdentity
from eos.pulsar.wire.batch import BatchEncoder
from eos.pulsar.wire.encryption import decryptor_of
from eos.pulsar.wire.encryption_keys import public_keys
from eos.pulsar.wire.txn import TxnId
from tests.clients import end, transaction
from tests.conftest import MakeTopic
from tests.contract.conftest import Running
from tests.contract.test_entries import read_all, values
from tests.topic_commands import compact, table_view


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


def test_compaction_drops_encrypted_batches_unless_their_metadata_names_a_key(
    pulsar: Running, ours: Client, topic: str, tmp_path: Path
) -> None:
    """It can't look into them, and what has no key is left out. An ordering key takes the place of the key there."""
    from tests.encryption import key_pair  # the other tests need no library for it

    public, private = key_pair().write(tmp_path, "k")
    encryptor = encryptor_of(public_keys({"k": f"file:{public}"}))
    decrypt = decryptor_of((("k", str(private)),))
    sent: list[tuple[bool, dict[str, list[bytes]]]] = [
        (False, {"key": [b"a", b"b"], "value": [b"1", b"2"]}),
        (True, {"key": [b"c"], "value": [b"3"]}),
        (True, {"key": [b"c"], "value": [b"4"]}),
        (True, {"key": [b"d"], "value": [b"5"], "ordering_key": [b"o"]}),
        (True, {"key": [b"e", b"e"], "value": [b"6", b"7"]}),
    ]
    with ours.producer(topic, introduction=ProducerIdentity("p", encrypted=True)) as producer:
        for keyed, rows in sent:
            for chunk in BatchEncoder(keyed=keyed).chunks(pa.record_batch(rows)):
                producer.send(encryptor.encrypted(chunk), None)
        producer.flush()
    compact(pulsar.admin_url, topic)
    left, stored = read_all(ours, topic, compacted=True), read_all(ours, topic)
    assert values([decrypt(entry) for entry in left]) == [b"4", b"6", b"7"]
    assert values([decrypt(entry) for entry in stored]) == [b"1", b"2", b"3", b"4", b"5", b"6", b"7"]


def test_compaction_loses_a_message_in_chunks_and_the_value_that_its_key_had_before(
    pulsar: Running, ours: Client, topic: str
) -> None:
    """Each chunk carries the key, and counts as its newest value: the last one is left, and nobody can read it."""
    send(ours, topic, None, chunked=b"before", small=b"1")
    large = pa.record_batch({"value": [b"x" * 3_000], "key": ["chunked"]})
    with ours.producer(topic) as producer:
        for chunk in BatchEncoder(cut_above=1_000).chunks(large):
            producer.send(chunk, None)
        producer.flush()
    stored = [entry for entry in read_all(ours, topic) if entry.chunked]
    compact(pulsar.admin_url, topic)
    left = read_all(ours, topic, compacted=True)
    assert [entry.id for entry in left if entry.chunked] == [stored[-1].id], "of several chunks"
    assert values([entry for entry in left if not entry.chunked]) == [b"1"]
    assert len(stored) > 1
