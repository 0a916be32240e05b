"""A record before the abort, on each topic where a frame may be under way; against a scripted broker."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest

from eos.config import Cluster
from eos.delivery import abort_record
from eos.delivery.abort_record import added_partitions, physical_topics, seal
from eos.errors import InvalidInput, NetworkError, Unreachable
from eos.pulsar.net.client import Client
from eos.pulsar.net.in_flight import InFlight
from eos.pulsar.net.producer_group import AT_ONCE, give_up_producers, open_producers
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.batch import Chunk
from eos.pulsar.wire.pulsar_pb2 import ServerError
from eos.pulsar.wire.txn import TxnId
from tests.unit.pulsar.net.fake_broker import FakeBroker, refusing, silent
from tests.waiting import PATIENCE_S, until

TXN = TxnId(0, 7)
TERMINATED = ServerError.TopicTerminatedError
CHUNK = Chunk(messages=1, payload=b"x", uncompressed_size=1, rows_bytes=1, compression="none")


def test_a_record_of_the_transaction_is_stored_on_each_topic_that_was_added_first(
    broker: FakeBroker, client: Client
) -> None:
    assert seal(client, TXN, {"a", "b"}, None) == set()
    sends = [command.send for command in broker.commands(Type.SEND)]
    assert [(send.txnid_most_bits, send.txnid_least_bits) for send in sends] == [(TXN.most, TXN.least)] * 2
    records = [entry for frame in broker.received if frame.command.type == Type.SEND for entry in frame.entries]
    assert [list(entry.metadata.replicate_to) for entry in records] == [["__local__"]] * 2, (
        "of no use in another region"
    )
    added = {
        topic
        for command in broker.commands(Type.ADD_PARTITION_TO_TXN)
        for topic in command.add_partition_to_txn.partitions
    }
    assert added == {"persistent://public/default/a", "persistent://public/default/b"}


def test_a_transaction_that_has_ended_leaves_every_topic_to_be_freed(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.ADD_PARTITION_TO_TXN] = refusing(ServerError.TransactionNotFound)
    assert seal(client, TXN, {"a", "b"}, None) == {"a", "b"}
    assert broker.commands(Type.SEND) == [], "nothing is sent where the partition could not be added"


@pytest.mark.parametrize("code", [ServerError.TopicTerminatedError, ServerError.TopicNotFound])
def test_a_topic_that_takes_no_messages_is_left_alone(broker: FakeBroker, client: Client, code: Any) -> None:
    """An empty transaction there could never end, and would hold its coordinator's low watermark."""
    broker.handlers[Type.PRODUCER] = refusing(code)
    assert seal(client, TXN, {"a"}, None) == set()
    assert broker.commands(Type.ADD_PARTITION_TO_TXN) == []


@pytest.mark.parametrize("code", sorted(set(ServerError.values()) - {ServerError.TopicNotFound, TERMINATED}))
def test_a_topic_that_takes_none_from_this_role_now_is_left_to_be_freed(broker: FakeBroker, code: Any) -> None:
    """Frames that were sent before the refusal, as by a token that has expired since, may come later."""
    broker.handlers[Type.PRODUCER] = refusing(code, "Exception: so it is")
    with broker.client(0.2) as client:
        assert seal(client, TXN, {"a"}, None) == {"a"}


def test_a_broker_that_is_silent_is_waited_for_some_seconds_only(
    broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(abort_record, "PATIENCE_S", 0.2)
    broker.handlers[Type.SEND] = silent
    assert seal(client, TXN, {"a"}, None) == {"a"}


def test_an_abort_waits_no_longer_for_the_records_than_their_topics_are_waited_for(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A coordinator that does not answer would hold a query up that is stopped, once for each topic."""
    monkeypatch.setattr(abort_record, "PATIENCE_S", 0.2)
    broker.handlers[Type.ADD_PARTITION_TO_TXN] = silent
    with broker.client(10 * PATIENCE_S) as client:
        assert seal(client, TXN, {"a", "b", "c"}, None) == {"a", "b", "c"}
        ended = threading.Thread(target=client.coordinator(0).end, args=(TXN, False))
        ended.start()
        ended.join(PATIENCE_S)
        assert not ended.is_alive()


def test_topics_whose_producers_do_not_open_in_time_are_left_to_be_freed(
    broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those further down the queue are not tried any more: the abort has followed by then."""
    monkeypatch.setattr(abort_record, "PATIENCE_S", 0.2)
    opens, opened = threading.Event(), []

    def open_late(client: Client, topics: list[str], *given: object, **named: object) -> list[Any]:
        opened.extend(topics)
        assert opens.wait(PATIENCE_S), "nobody waits for it"
        raise Unreachable("late")

    monkeypatch.setattr(abort_record, "open_producers", open_late)
    topics = {f"t{number:02}" for number in range(AT_ONCE + 1)}
    try:
        assert seal(client, TXN, topics, None) == topics
    finally:
        opens.set()
    for thread in threading.enumerate():
        if thread.name.startswith("eos-seal"):
            thread.join()
    assert sorted(opened) == sorted(topics)[:AT_ONCE]


def test_partitions_are_those_that_are_known_and_else_asked_for(broker: FakeBroker, client: Client) -> None:
    assert physical_topics(client, {"persistent://public/default/t"}, {"persistent://public/default/t": 2}) == {
        "persistent://public/default/t-partition-0",
        "persistent://public/default/t-partition-1",
    }
    assert physical_topics(client, {"persistent://public/default/u"}, {}) == {"persistent://public/default/u"}


def test_a_producer_is_closed_with_the_brokers_confirmation_or_given_up(broker: FakeBroker, client: Client) -> None:
    budget = InFlight()
    kept = open_producers(client, ["a"], budget)
    kept[0].send(CHUNK, TXN)
    assert give_up_producers(kept, inf) == []
    broker.handlers[Type.SEND] = silent
    (late,) = open_producers(client, ["b"], budget)
    late.send(CHUNK, TXN)
    assert give_up_producers([late], time.monotonic() + 0.2) == [late]


def test_producers_are_given_up_where_no_thread_can_be_started(
    broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that has used up its processes, and while Python is ending."""
    kept = open_producers(client, ["a", "b"], InFlight())

    def submit(*given: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit)
    assert give_up_producers(kept, inf) == kept
    until(lambda: len(broker.commands(Type.CLOSE_PRODUCER)) == 2, "the broker keeps a producer")


def test_a_cluster_out_of_reach_names_no_topic(broker: FakeBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abort_record, "PATIENCE_S", 0.0)
    with Client(Cluster("pulsar://127.0.0.1:1", connect_timeout_s=0.1, request_timeout_s=0.1)) as nowhere:
        assert physical_topics(nowhere, {"persistent://public/default/t"}, {}) == set()


def test_the_admin_api_is_waited_for_some_seconds_only() -> None:
    answer = threading.Event()

    def ask(txn: TxnId) -> set[str]:
        answer.wait(PATIENCE_S)
        return {f"late in {txn}"}

    with pytest.raises(NetworkError, match="in time"):
        added_partitions(ask, TXN, time.monotonic())
    answer.set()
    assert added_partitions(ask, TXN, time.monotonic() + PATIENCE_S) == {f"late in {TXN}"}


@pytest.mark.parametrize("failure", [Unreachable("refused"), InvalidInput("no token"), KeyError("txnId"), None])
def test_a_question_that_fails_is_a_failure_of_the_network_whatever_it_was(failure: Exception | None) -> None:
    """An abort follows: nothing else may leave the question."""

    def ask(txn: TxnId) -> set[str] | None:
        if failure is not None:
            raise failure
        return None

    with pytest.raises(NetworkError, match=str(failure) if failure is not None else "has ended"):
        added_partitions(ask, TXN, time.monotonic() + PATIENCE_S)


def test_topics_are_asked_for_sixteen_at_a_time() -> None:
    """One by one, thousands of topics that rows name took longer than is waited, and were not sealed."""
    gate = threading.Barrier(16)

    def partitions(topic: str) -> int:
        gate.wait(PATIENCE_S)
        return 0

    client: Any = SimpleNamespace(partitions=partitions)
    topics = {f"persistent://public/default/t-{number}" for number in range(32)}
    assert physical_topics(client, topics, {}) == topics
