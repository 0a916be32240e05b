"""Compaction of a topic that transactions write to: the value of a key that is left for a table view."""

from __future__ import annotations

import time
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest

from eos.by_name.data_source import PulsarDataSource
from eos.delivery.encryption import encryptor_of
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.producer import ProducerIdentity
from eos.pulsar.wire.batch import BatchEncoder
from eos.pulsar.wire.encryption import decryptor_of
from eos.pulsar.wire.encryption_keys import public_keys
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.txn import TxnId
from eos.source.batch import PulsarReader
from eos.source.errors import DataLost
from tests.clients import end, transaction
from tests.conftest import MakeTopic
from tests.contract.conftest import Running
from tests.contract.test_entries import read_all, unload, values
from tests.topic_commands import MOVES, Move, compact, delete_ledgers, move_positions, table_view
from tests.waiting import PATIENCE_S


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


LARGE = b"x" * 3_000


def send_in_chunks(client: Client, topic: str) -> None:
    """Write a small value of each key, and then a large one of one of them."""
    send(client, topic, None, chunked=b"before", small=b"1")
    large = pa.record_batch({"value": [LARGE], "key": ["chunked"]})
    with client.producer(topic) as producer:
        for chunk in BatchEncoder(cut_above=1_000).chunks(large):
            producer.send(chunk, None)
        producer.flush()


def test_compaction_loses_a_message_in_chunks_and_the_value_that_its_key_had_before(
    pulsar: Running, ours: Client, topic: str
) -> None:
    """Each chunk carries the key, and counts as its newest value: the last one is left, and nobody can read it."""
    send_in_chunks(ours, topic)
    stored = [entry for entry in read_all(ours, topic) if entry.chunked]
    compact(pulsar.admin_url, topic)
    left = read_all(ours, topic, compacted=True)
    assert [entry.id for entry in left if entry.chunked] == [stored[-1].id], "of several chunks"
    assert values([entry for entry in left if not entry.chunked]) == [b"1"]
    assert len(stored) > 1


@pytest.mark.parametrize("then", ["nothing", "messages", "a marker", "aborted messages"])
def test_what_compaction_left_is_read_whole_once_the_ledgers_it_came_from_are_deleted(
    pulsar: Running, ours: Client, topic: str, quiet: int, then: str
) -> None:
    """Also from between its messages on, as after a lost connection, and again right after another compaction."""
    keys = [f"k{number}" for number in range(30)]
    for key in keys:
        send(ours, topic, None, **{key: b"1"})
    last = transaction(ours, topic, coordinator_index=quiet) if then == "a marker" else None
    send(ours, topic, last, k29=b"2")
    if last is not None:
        unload(pulsar, topic)
        end(ours, last, commit=True)
    if then == "aborted messages":
        unload(pulsar, topic)
        aborted = transaction(ours, topic, coordinator_index=quiet)
        send(ours, topic, aborted, k0=b"aborted")
        end(ours, aborted, commit=False)
    compact(pulsar.admin_url, topic)
    delete_ledgers(pulsar.admin_url, topic, 1 if then in ("a marker", "aborted messages") else None)
    wanted = [b"1"] * 29 + [b"2"]
    assert values(read_all(ours, topic, compacted=True)) == wanted
    if then != "nothing":
        send(ours, topic, None, k1=b"3")
        wanted += [b"3"]
    left = read_all(ours, topic, compacted=True)
    assert values(left) == wanted
    for at in range(0, len(left), 7):
        assert values(read_all(ours, topic, left[at].id, compacted=True)) == wanted[at:]
    with ours.entry_reader(topic, None, compacted=True, permits=5) as reader:
        came: list[Entry] = []
        while len(came) < len(left):
            came += reader.read(PATIENCE_S)
            reader.begin_again()
        assert values(came) == wanted
        if then in ("a marker", "aborted messages"):  # the broker moves the reader past them, each time
            assert reader.read(3) == []
    if then != "nothing":  # otherwise there is nothing to compact
        compact(pulsar.admin_url, topic)
        assert values(read_all(ours, topic, compacted=True)) == [b"1", *wanted[2:]]


@pytest.mark.parametrize("deleted", [False, True])
def test_where_nothing_was_compacted_a_reader_of_what_compaction_left_reads_all_that_is_stored(
    pulsar: Running, ours: Client, topic: str, deleted: bool
) -> None:
    send(ours, topic, None, a=b"1")
    if deleted:
        delete_ledgers(pulsar.admin_url, topic)
        assert read_all(ours, topic, compacted=True) == []
    send(ours, topic, None, a=b"2")
    send(ours, topic, None, a=b"3")
    assert values(read_all(ours, topic, compacted=True)) == [*([] if deleted else [b"1"]), b"2", b"3"]


def test_a_topic_whose_keys_are_all_deleted_is_empty_once_it_is_compacted(
    pulsar: Running, ours: Client, topic: str
) -> None:
    send(ours, topic, None, a=b"1", b=b"1")
    send(ours, topic, None, a=None, b=None)
    compact(pulsar.admin_url, topic)
    assert values(read_all(ours, topic, compacted=True)) == []
    delete_ledgers(pulsar.admin_url, topic)
    assert read_all(ours, topic, compacted=True) == []
    send(ours, topic, None, c=b"1")
    assert values(read_all(ours, topic, compacted=True)) == [b"1"]


@pytest.mark.parametrize("how", MOVES)
def test_a_command_that_moves_positions_takes_nothing_from_a_reader_of_what_compaction_left(
    pulsar: Running, ours: Client, topic: str, how: Move
) -> None:
    for number in range(30):
        send(ours, topic, None, **{f"k{number}": b"1"})
    compact(pulsar.admin_url, topic)
    with ours.entry_reader(topic, None, compacted=True, permits=5) as reader:
        came = reader.read(PATIENCE_S)
        assert len(came) <= 5
        if how == "expire":
            time.sleep(2)
        move_positions(pulsar.admin_url, topic, how)
        while len(came) < 30:
            came += reader.read(PATIENCE_S)
    assert len({entry.id for entry in came}) == 30


@pytest.mark.parametrize("then", ["nothing", "a message", "an aborted message"])
def test_the_source_takes_the_other_chunks_from_the_topic_as_long_as_it_has_them(
    pulsar: Running, ours: Client, topic: str, quiet: int, then: str
) -> None:
    """Afterwards the row is lost, which is said at once, whatever is stored after it."""

    def rows() -> list[bytes]:
        given = {"service.url": pulsar.service_url, "topic": topic, "readCompacted": "true"}
        source = PulsarDataSource(given)
        reader = cast(PulsarReader, source.reader(source.schema()))
        read = [batch for task in reader.partitions() for batch in reader.read(task)]
        return [row["value"] for batch in read for row in batch.to_pylist()]

    send_in_chunks(ours, topic)
    compact(pulsar.admin_url, topic)
    assert rows() == [b"1", LARGE]
    delete_ledgers(pulsar.admin_url, topic)
    if then != "nothing":
        txn = transaction(ours, topic, coordinator_index=quiet) if then == "an aborted message" else None
        send(ours, topic, txn, more=b"1")
        if txn is not None:
            end(ours, txn, commit=False)
    began = time.monotonic()
    with pytest.raises(DataLost, match=r"is the last of 3 chunks .* Compaction keeps only the last chunk"):
        rows()
    assert time.monotonic() - began < PATIENCE_S
