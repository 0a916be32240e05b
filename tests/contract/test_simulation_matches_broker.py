"""The simulated cluster answers as the real one: each scenario runs on both, against the same expectation.

The property tests are worth as much as this file: a rule of the broker that is simulated wrongly makes them
prove the wrong thing.
"""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any

import pytest

from eos.commit.attempt import attempt
from eos.commit.control_topic import control_topic
from eos.commit.decision import Identity
from eos.commit.owner import Owner
from eos.commit.retry import OwnerSettings
from eos.delivery.row_writer import WriteReport
from eos.errors import Fenced
from eos.pulsar.wire.message_id import EARLIEST
from eos.pulsar.wire.txn import TxnId
from tests.contract.bench import SILENCE_S, Bench, Writer, answer, assert_read, prime
from tests.contract.bench import bench as bench
from tests.simulation.job import Sends
from tests.waiting import PATIENCE_S

# ---- what END_TXN answers


@pytest.mark.parametrize("first", [True, False])
def test_a_finished_transaction_is_not_found_however_it_ended(bench: Bench, first: bool) -> None:
    txn = bench.begin(bench.topic())
    assert answer(lambda: bench.end(txn, first)) == "ok"
    assert [answer(partial(bench.end, txn, again)) for again in (True, False)] == ["TransactionNotFound"] * 2


def test_a_transaction_that_never_was_is_not_found(bench: Bench) -> None:
    assert answer(lambda: bench.end(TxnId(2, 1 << 40), True)) == "TransactionNotFound"


def test_a_transaction_that_timed_out_is_not_found_and_its_records_are_gone(bench: Bench) -> None:
    topic = bench.topic()
    txn = bench.coordinator().new_transaction(1000)

    def add() -> str:
        return answer(lambda: bench.coordinator().add_partitions(txn, [topic]))

    add()
    Writer(bench, topic).send(b"late", txn)
    give_up = bench.clock() + PATIENCE_S
    while add() != "TransactionNotFound" and bench.clock() < give_up:
        bench.sleep(0.5)
    assert answer(lambda: bench.end(txn, True)) == "TransactionNotFound"
    assert_read(bench, topic, [])


def test_nothing_can_be_added_to_a_finished_transaction(bench: Bench) -> None:
    txn = bench.begin()
    bench.end(txn, True)
    assert answer(lambda: bench.coordinator().add_partitions(txn, [bench.topic()])) == "TransactionNotFound"


def test_each_coordinator_numbers_its_own_transactions(bench: Bench) -> None:
    assert [bench.begin(which=which).coordinator for which in (0, 1)] == [2, 3]


# ---- what readers see


@pytest.mark.parametrize(("commit", "seen"), [(True, [b"a", b"in", b"b"]), (False, [b"a", b"b"])])
def test_records_behind_an_open_transaction_wait_for_its_end(bench: Bench, commit: bool, seen: list[bytes]) -> None:
    topic = bench.topic()
    writer = Writer(bench, topic)
    writer.send(b"a")
    txn = bench.begin(topic)
    writer.send(b"in", txn)
    writer.send(b"b")
    assert_read(bench, topic, [b"a"])
    bench.end(txn, commit)
    assert_read(bench, topic, seen)


def test_a_record_in_a_transaction_that_was_not_told_of_its_topic_is_lost(bench: Bench) -> None:
    topic = bench.topic()
    txn = bench.begin()
    writer = Writer(bench, topic)
    writer.send(b"in", txn)
    writer.send(b"behind")
    assert answer(lambda: bench.end(txn, True)) == "ok"
    assert_read(bench, topic, [])
    bench.end_an_empty_one(topic, True)
    assert_read(bench, topic, [b"behind"])


def test_the_last_message_id_is_of_the_last_readable_record(bench: Bench) -> None:
    topic = bench.topic()
    assert bench.client().reader(topic).last_message_id() == EARLIEST
    writer = Writer(bench, topic)
    writer.send(b"a")
    txn = bench.begin(topic)
    writer.send(b"in", txn)
    writer.send(b"b")
    reader = bench.client().reader(topic)
    hidden = reader.last_message_id()
    first = reader.read(PATIENCE_S)
    assert first is not None
    assert hidden == first.message_id
    bench.end(txn, False)
    second = reader.read(PATIENCE_S)
    assert second is not None
    assert second.data == b"b"
    assert reader.last_message_id() == second.message_id


# ---- late records


def test_a_late_record_destroys_a_committed_batch(bench: Bench) -> None:
    topic = bench.topic()
    writer = Writer(bench, topic)
    txn = bench.begin(topic)
    writer.send(b"batch", txn)
    bench.end(txn, True)
    assert_read(bench, topic, [b"batch"])
    assert answer(lambda: writer.send(b"late", txn)) == "ok"
    writer.send(b"behind")
    assert_read(bench, topic, [b"batch"])
    bench.end_an_empty_one(topic, True)
    assert_read(bench, topic, [b"behind"])


def test_a_late_record_of_an_aborted_transaction_is_filtered_where_the_abort_arrived(bench: Bench) -> None:
    topic = bench.topic()
    prime(bench, topic)
    writer = Writer(bench, topic)
    txn = bench.begin(topic)
    bench.end(txn, False)
    assert answer(lambda: writer.send(b"late", txn)) == "ok"
    writer.send(b"behind")
    assert_read(bench, topic, [b"behind"])


def test_a_topic_without_a_transaction_forgets_aborts(bench: Bench) -> None:
    topic = bench.topic()
    writer = Writer(bench, topic)
    txn = bench.begin(topic)
    bench.end(txn, False)
    writer.send(b"late", txn)
    writer.send(b"behind")
    assert_read(bench, topic, [])
    bench.end_an_empty_one(topic, True)
    assert_read(bench, topic, [b"behind"])


@pytest.mark.parametrize("commit", [True, False])
def test_an_empty_transaction_frees_what_several_abandoned_ones_hold(bench: Bench, commit: bool) -> None:
    topic = bench.topic()
    writer = Writer(bench, topic)
    for data in (b"one", b"two"):
        txn = bench.begin()
        writer.send(data, txn)
        bench.end(txn, False)
    writer.send(b"behind")
    assert_read(bench, topic, [])
    bench.end_an_empty_one(topic, commit)
    assert_read(bench, topic, [b"behind"])


def test_an_older_open_transaction_delays_the_freeing(bench: Bench) -> None:
    topic = bench.topic()
    writer = Writer(bench, topic)
    older = bench.begin()
    abandoned = bench.begin()
    writer.send(b"late", abandoned)
    bench.end(abandoned, False)
    writer.send(b"behind")
    bench.end_an_empty_one(topic, True)
    assert_read(bench, topic, [])
    bench.end(older, False)
    bench.end_an_empty_one(topic, True)
    assert_read(bench, topic, [b"behind"])


def test_another_coordinator_frees_nothing(bench: Bench) -> None:
    topic = bench.topic()
    writer = Writer(bench, topic)
    abandoned = bench.begin()
    writer.send(b"late", abandoned)
    bench.end(abandoned, False)
    writer.send(b"behind")
    bench.end_an_empty_one(topic, which=1)
    assert_read(bench, topic, [])
    bench.end_an_empty_one(topic)
    assert_read(bench, topic, [b"behind"])


# ---- producers


# The broker closes the producer. A send that gets there before it is closed whole is answered in words.
CLOSED = ("no receipt", "PersistenceError")


def fencing(bench: Bench, topic: str, epoch: int | None = None) -> Any:
    """Open the only producer of a topic, in a process of its own."""
    return bench.client().producer(topic, access="exclusive-with-fencing", topic_epoch=epoch)


def test_taking_over_moves_the_epoch_and_reopening_does_not(bench: Bench) -> None:
    topic = bench.topic()
    first = fencing(bench, topic).topic_epoch
    assert [fencing(bench, topic, first).topic_epoch, fencing(bench, topic).topic_epoch] == [first, first + 1]


def test_a_producer_that_was_fenced_cannot_send_nor_come_back(bench: Bench) -> None:
    topic = bench.topic()
    former = fencing(bench, topic)
    former.send_record(b"former", None)
    present = fencing(bench, topic)
    assert answer(lambda: former.send_record(b"zombie", None)) in CLOSED
    assert answer(lambda: present.send_record(b"present", None)) == "ok"
    assert answer(lambda: fencing(bench, topic, former.topic_epoch)) == "Fenced"
    assert_read(bench, topic, [b"former", b"present"])


def test_a_former_owner_that_is_refused_throws_the_present_one_out_all_the_same(bench: Bench) -> None:
    topic = bench.topic()
    former, present = fencing(bench, topic), fencing(bench, topic)
    assert answer(lambda: fencing(bench, topic, former.topic_epoch)) == "Fenced"
    assert answer(lambda: present.send_record(b"lost", None)) in CLOSED
    back = fencing(bench, topic, present.topic_epoch)
    assert answer(lambda: back.send_record(b"back", None)) == "ok"
    assert_read(bench, topic, [b"back"])


def test_an_exclusive_producer_shuts_out_every_other(bench: Bench) -> None:
    topic = bench.topic()
    owner = fencing(bench, topic)
    assert answer(lambda: bench.client().producer(topic)) in ("ProducerFenced", "ProducerBusy", "Fenced")
    assert answer(lambda: owner.send_record(b"owner", None)) == "ok"


# ---- the whole protocol


class Killed(BaseException):
    """The driver's process is gone."""


@pytest.mark.parametrize(("asks", "survives"), [(False, [b"0"]), (True, [b"0", b"1"])])
def test_a_driver_dies_around_its_commit(bench: Bench, asks: bool, survives: list[bytes]) -> None:
    """One run commits batch 0 and dies just before, or just after, asking for the commit of batch 1."""
    name, data = f"s{uuid.uuid4().hex}", bench.topic()
    control = control_topic(name, data)
    bench.create(control)
    waits = OwnerSettings(read_timeout_s=SILENCE_S, patience_s=30)

    def write(txn: TxnId) -> WriteReport:
        clients[-1].coordinator(txn.coordinator).add_partitions(txn, [data])
        producer = clients[-1].producer(data)
        producer.send_record(str(batch).encode(), txn)
        producer.close()
        return WriteReport({data: 1}, {data: 1})

    class Dies:
        def __call__(self, step: str, phase: str, batch_id: int | None) -> None:
            if batch_id == 1 and (step, phase) == (("end-answered", "after") if asks else ("end-sent", "before")):
                raise Killed

    clients = [bench.client()]
    first = Owner(clients[0], name, control, waits, observer=Dies(), sleep=bench.sleep, clock=bench.clock)
    first.take_over("query", "run-1")
    batch = 0
    attempt(first, 0, Identity("query", "run-1", "offsets 0"), Sends(write))
    batch = 1
    with pytest.raises(Killed):
        attempt(first, 1, Identity("query", "run-1", "offsets 1"), Sends(write))

    clients.append(bench.client())
    second = Owner(clients[1], name, control, waits, sleep=bench.sleep, clock=bench.clock)
    second.take_over("query", "run-2", first.registration)
    assert list(second.view.markers) == ([0, 1] if asks else [0])
    assert_read(bench, data, survives)
    replayed = Identity("query", "run-2", "offsets 1")
    assert second.decide(1, replayed).value == ("skip" if asks else "write")
    attempt(second, 1, replayed, Sends(write))
    assert_read(bench, data, [b"0", b"1"])
    with pytest.raises(Fenced):
        first.settle()
    second.close()
