"""The answers of a real broker about transactions. The protocol leans on each of these facts."""

from __future__ import annotations

import threading
from collections.abc import Callable

import httpx
import pyarrow as pa
import pytest

from eos.errors import ConnectionLost, EosError, Refused, Unreachable
from eos.preflight.retention import written_partitions
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.admin_requests import path_of
from eos.pulsar.net.client import Client
from eos.pulsar.net.in_flight import InFlight
from eos.pulsar.net.producer_group import open_producers
from eos.pulsar.net.transaction_stats import OpenTransaction
from eos.pulsar.protocol.producer import ProducerIdentity
from eos.pulsar.wire.batch import BatchEncoder
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.txn import TxnId
from tests.clients import end as end
from tests.clients import transaction as transaction
from tests.conftest import MakeTopic
from tests.contract.conftest import Produce, Running
from tests.contract.official import read_until, readable_now
from tests.topic_commands import deduplicate
from tests.waiting import PATIENCE_S, until

TTL_MS = 60_000


def code_of(work: Callable[[], object]) -> str:
    """Return "OK" or the code of the refusal."""
    try:
        work()
    except Refused as refused:
        return refused.code
    return "OK"


def last_word(client: Client, topic: str) -> bytes:
    """Write a plain message, after which nothing of interest comes."""
    with client.producer(topic) as producer:
        producer.send_record(b"last", None)
    return b"last"


def test_nothing_is_readable_before_the_commit_and_all_of_it_after(
    pulsar: Running, ours: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("p-commit")
    txn = transaction(ours, topic)
    reader = ours.reader(topic)
    with ours.producer(topic) as producer:
        first = producer.send_record(b"1", txn)
        second = producer.send_record(b"2", txn)
    assert reader.last_message_id() == MessageId(-1, -1)
    end(ours, txn, commit=True)
    read = [reader.read(PATIENCE_S), reader.read(PATIENCE_S)]
    assert [(one.data, one.message_id, one.txn) for one in read if one is not None] == [
        (b"1", first, txn),
        (b"2", second, txn),
    ]
    assert reader.last_message_id() == second
    assert read_until(pulsar.service_url, topic, last_word(ours, topic)) == [b"1", b"2", b"last"]


def test_what_was_aborted_is_never_readable(pulsar: Running, ours: Client, make_topic: MakeTopic) -> None:
    topic = make_topic("p-abort")
    txn = transaction(ours, topic)
    with ours.producer(topic) as producer:
        before = producer.send_record(b"before", None)
        producer.send_record(b"aborted", txn)
    end(ours, txn, commit=False)
    assert ours.reader(topic).last_message_id() == before
    assert read_until(pulsar.service_url, topic, last_word(ours, topic)) == [b"before", b"last"]


@pytest.mark.parametrize("asks_for_commit", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("was", ["committed", "aborted", "timed out", "never there"])
def test_the_outcome_of_a_finished_transaction_cannot_be_asked_for(
    make_client: Callable[[], Client], admin: Admin, make_topic: MakeTopic, was: str, asks_for_commit: bool
) -> None:
    ours = make_client()
    txn = transaction(ours, make_topic("p-finished"), ttl_ms=500 if was == "timed out" else TTL_MS)
    if was == "never there":
        end(ours, txn, commit=False)
        txn = TxnId(txn.most, txn.least + 1_000_000)
    elif was == "timed out":
        until(lambda: admin.transaction(txn) is None, "a ttl of 500 did not mean milliseconds")
    else:
        end(ours, txn, commit=was == "committed")
    assert code_of(lambda: end(make_client(), txn, commit=asks_for_commit)) == "TransactionNotFound"


def test_an_open_transaction_is_known_while_no_broker_has_its_topic_loaded(
    pulsar: Running, ours: Client, admin: Admin, make_topic: MakeTopic
) -> None:
    """As after a restart: the broker answers 500 to what asks for it, and to the list of all open ones."""
    topic = make_topic()
    txn = transaction(ours, topic)
    ways: tuple[Callable[[], OpenTransaction | None], ...] = (
        lambda: admin.transaction(txn),
        lambda: next((one for one in admin.open_transactions() if one.txn == txn), None),
    )
    for known in ways:
        httpx.put(f"{pulsar.admin_url}/admin/v2/{path_of(topic)}/unload", timeout=30).raise_for_status()
        found = known()
        assert found is not None
        assert (found.status, found.partitions) == ("OPEN", (topic,))
    end(ours, txn, commit=False)
    until(lambda: admin.transaction(txn) is None)


def test_the_ttl_is_in_milliseconds(ours: Client, admin: Admin) -> None:
    txn = transaction(ours, ttl_ms=TTL_MS)
    known = admin.transaction(txn)
    assert known is not None
    assert known.ttl_ms == TTL_MS
    end(ours, txn, commit=False)


def test_of_concurrent_commits_one_is_answered_and_the_others_prove_nothing(
    make_client: Callable[[], Client], make_topic: MakeTopic
) -> None:
    topic = make_topic("p-concurrent")
    clients = [make_client() for _ in range(4)]
    txn = transaction(clients[0], topic)
    for client in clients:
        client.coordinator(0)
    together = threading.Barrier(4)
    codes: list[str] = []

    def commit(client: Client) -> None:
        together.wait()
        codes.append(code_of(lambda: end(client, txn, commit=True)))

    threads = [threading.Thread(target=commit, args=[client]) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes.count("OK") == 1
    assert set(codes) <= {"OK", "InvalidTxnStatus", "TransactionNotFound"}


@pytest.mark.parametrize("commit", [True, False], ids=["committed", "aborted"])
def test_a_finished_transaction_takes_no_new_partition(
    make_client: Callable[[], Client], make_topic: MakeTopic, commit: bool
) -> None:
    txn = transaction(make_client(), make_topic("p-add"))
    end(make_client(), txn, commit=commit)
    late = make_client().coordinator(0)
    topic = make_topic("p-add-late")
    assert code_of(lambda: late.add_partitions(txn, [topic])) in ("TransactionNotFound", "InvalidTxnStatus")


@pytest.mark.parametrize("commit", [True, False], ids=["committed", "aborted"])
def test_a_partition_that_was_added_and_got_no_message_does_no_harm(
    pulsar: Running, ours: Client, make_topic: MakeTopic, commit: bool
) -> None:
    written, untouched = make_topic("p-written"), make_topic("p-untouched")
    gone = make_topic("p-gone", partitions=2) + "-partition-7"
    txn = transaction(ours, written, untouched, gone)
    with ours.producer(written) as producer:
        producer.send_record(b"row", txn)
    assert code_of(lambda: end(ours, txn, commit=commit)) == "OK"
    rows = [b"row"] if commit else []
    assert read_until(pulsar.service_url, written, last_word(ours, written)) == [*rows, b"last"]
    assert read_until(pulsar.service_url, untouched, last_word(ours, untouched)) == [b"last"]


def test_a_producer_that_stays_open_serves_one_transaction_after_another(
    pulsar: Running, ours: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("p-stays-open")
    with ours.producer(topic) as producer:
        for number in range(4):
            txn = transaction(ours, topic)
            producer.send_record(b"row %d" % number, txn)
            end(ours, txn, commit=number != 2)
    assert read_until(pulsar.service_url, topic, last_word(ours, topic)) == [b"row 0", b"row 1", b"row 3", b"last"]


def test_a_send_on_a_closed_producer_is_refused_by_closing_the_connection(
    pulsar: Running, ours: Client, make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic("p-closed")
    txn = transaction(ours, topic)
    zombie = produce(topic)
    zombie.send(b"in time", txn, 0)
    assert isinstance(zombie.event(), MessageId)
    zombie.close_producer()
    zombie.send(b"late", txn, 1)
    assert isinstance(zombie.event(), ConnectionLost)
    end(ours, txn, commit=True)
    assert read_until(pulsar.service_url, topic, last_word(ours, topic)) == [b"in time", b"last"]


def test_without_add_partition_the_commit_is_answered_and_the_message_is_lost(
    pulsar: Running, ours: Client, admin: Admin, quiet: int, make_topic: MakeTopic
) -> None:
    topic = make_topic("p-not-added")
    txn = transaction(ours, coordinator_index=quiet)
    with ours.producer(topic) as producer:
        producer.send_record(b"lost", txn)
    end(ours, txn, commit=True)
    assert admin.buffer(topic).held_up
    assert readable_now(pulsar.service_url, topic) == []
    heal_at_last(ours, admin, topic, quiet)
    assert read_until(pulsar.service_url, topic, last_word(ours, topic)) == [b"last"]


def test_without_the_id_in_the_metadata_what_was_aborted_is_readable(
    pulsar: Running, ours: Client, make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic("p-metadata")
    txn = transaction(ours, topic)
    wrong = produce(topic)
    wrong.send(b"aborted", txn, 0, txn_in_metadata=False)
    assert isinstance(wrong.event(), MessageId)
    end(ours, txn, commit=False)
    assert read_until(pulsar.service_url, topic, last_word(ours, topic)) == [b"aborted", b"last"]


def test_with_deduplication_a_name_used_again_after_an_abort_loses_the_message(
    pulsar: Running, ours: Client, make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic("p-dedup")
    deduplicate(pulsar.admin_url, topic)
    events = []
    for attempt, commit in enumerate([False, True]):
        txn = transaction(ours, topic)
        producer = produce(topic, name="same")
        producer.send(b"attempt %d" % attempt, txn, 0)
        events.append(producer.event())
        producer.close_producer()
        end(ours, txn, commit=commit)
    first, second = events
    assert isinstance(first, MessageId)
    assert first.ledger >= 0
    assert isinstance(second, MessageId)
    assert (second.ledger, second.entry) == (-1, -1)
    assert read_until(pulsar.service_url, topic, last_word(ours, topic)) == [b"last"]


def test_with_deduplication_a_writer_that_writes_again_after_an_abort_loses_nothing(
    pulsar: Running, ours: Client, make_topic: MakeTopic
) -> None:
    """The same introduction makes another name each time."""
    topic = make_topic("p-dedup-again")
    deduplicate(pulsar.admin_url, topic)
    who = ProducerIdentity("flights").part("batch-8-task-3")
    (row,) = BatchEncoder().chunks(pa.record_batch({"value": [b"row"]}))
    for commit in (False, True):
        txn = transaction(ours, topic)
        (producer,) = open_producers(ours, [topic], InFlight(), introduction=who)
        producer.send(row, txn)
        producer.close()
        end(ours, txn, commit=commit)
    assert read_until(pulsar.service_url, topic, last_word(ours, topic)) == [b"row", b"last"]


def test_a_partition_frozen_by_a_late_send_into_an_aborted_transaction_is_healed_by_a_later_one(
    pulsar: Running, ours: Client, admin: Admin, quiet: int, make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic("p-frozen")
    txn = transaction(ours, topic, coordinator_index=quiet)
    zombie = produce(topic)
    end(ours, txn, commit=False)
    zombie.send(b"late", txn, 0)
    assert isinstance(zombie.event(), MessageId), "the broker takes a send into an ended transaction"
    last = last_word(ours, topic)
    assert admin.buffer(topic).held_up
    assert readable_now(pulsar.service_url, topic) == []
    heal_at_last(ours, admin, topic, quiet)
    assert read_until(pulsar.service_url, topic, last) == [b"last"]


def test_an_open_transaction_of_the_same_coordinator_delays_the_healing(
    ours: Client, admin: Admin, quiet: int, make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic("p-delayed")
    open_elsewhere = transaction(ours, make_topic("p-elsewhere"), coordinator_index=quiet)
    txn = transaction(ours, topic, coordinator_index=quiet)
    zombie = produce(topic)
    end(ours, txn, commit=False)
    zombie.send(b"late", txn, 0)
    assert isinstance(zombie.event(), MessageId)
    heal(ours, topic, quiet)
    assert admin.buffer(topic).held_up
    end(ours, open_elsewhere, commit=False)
    heal_at_last(ours, admin, topic, quiet)


def test_asking_for_partitions_creates_no_topic(ours: Client, pulsar: Running) -> None:
    name = "persistent://public/default/p-never-created"
    with pytest.raises(EosError, match="does not exist"):
        ours.partitions(name)
    assert name not in httpx.get(f"{pulsar.admin_url}/admin/v2/persistent/public/default", timeout=30).json()


def test_the_topics_of_an_open_transaction_are_told_without_the_control_topic(
    pulsar: Running, ours: Client, make_topic: MakeTopic
) -> None:
    """By the admin API: a sink seals them before it aborts a batch."""
    topic, other, control = make_topic("rows", 2), make_topic("rows"), make_topic("control")
    given = (pulsar.admin_url, ours.cluster, control, PATIENCE_S)
    txn = transaction(ours, control)
    assert written_partitions(*given, txn) == set()
    ours.coordinator(txn.coordinator).add_partitions(txn, [f"{topic}-partition-1", other])
    assert written_partitions(*given, txn) == {f"{topic}-partition-1", other}
    end(ours, txn, commit=False)
    assert written_partitions(*given, txn) is None
    with pytest.raises(Unreachable):
        written_partitions("http://localhost:1", *given[1:], txn)


def heal(client: Client, topic: str, coordinator_index: int) -> None:
    """End an empty transaction on the topic, as the sink's next batch would."""
    end(client, transaction(client, topic, coordinator_index=coordinator_index), commit=True)


def heal_at_last(client: Client, admin: Admin, topic: str, coordinator_index: int) -> None:
    """Heal until it works: transactions of other tests on the same broker may delay it."""

    def healed() -> bool:
        heal(client, topic, coordinator_index)
        return not admin.buffer(topic).held_up

    until(healed, lambda: f"held up by one of {admin.open_transactions()}", pause_s=0.2)
