"""Readers that a dead or a late writer holds up: found, explained and freed, on a real broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import Result

from eos.commit.control_topic import control_topic
from eos.commit.owner import Owner
from eos.config import Cluster
from eos.pulsar.net.client import Client
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.txn import TxnId
from tests.contract.official import readable_now
from tests.contract.raw import RawProducer
from tests.integration.sparkless import Sink, eos
from tests.waiting import until


@pytest.fixture
def sink(pulsar: Any, make_topic: Any) -> Iterator[Sink]:
    made = Sink(pulsar, make_topic)
    yield made
    made.client.close()


def found(pulsar: Any, topic: str) -> dict[str, Any]:
    """The one finding there is."""
    answer = eos(pulsar, "doctor", topic, "--json", "--older-than", "0")
    assert answer.exit_code == 1, answer.output
    (finding,) = json.loads(answer.stdout)["held_up"]
    return dict(finding)


def expect_healthy(pulsar: Any, topic: str) -> None:
    answer = eos(pulsar, "doctor", topic, "--older-than", "0")
    assert answer.exit_code == 0, answer.output


def plain(sink: Sink, text: str) -> None:
    with sink.client.producer(sink.topic) as producer:
        producer.send_record(text.encode(), None)


def late(pulsar: Any, producer: RawProducer, txn: TxnId) -> None:
    producer.send(b"late", txn, 1)
    assert isinstance(producer.event(), MessageId), "the broker takes a late frame"


def test_a_dead_drivers_transaction_is_named_and_aborted(pulsar: Any, sink: Sink) -> None:
    sink.write(0)
    txn = sink.die_in_the_middle(1)
    plain(sink, "behind it")
    finding = found(pulsar, sink.topic)
    assert (finding["state"], finding["transaction"]) == ("waiting", str(txn))
    assert (finding["sink"], finding["batch_id"], finding["committed"]) == (sink.name, 1, False)
    assert f"eos abort {sink.name}" in finding["remedy"]
    assert readable_now(pulsar.service_url, sink.topic) == [b"row of batch 0"]

    alive = eos(pulsar, "abort", sink.name, "--yes", admin=False)
    assert "A driver owns the sink" in str(alive.exception)
    assert found(pulsar, sink.topic)["transaction"] == str(txn)

    sink.client.close()
    answers: list[Result] = []

    def aborted() -> bool:
        answers.append(eos(pulsar, "abort", sink.name, "--yes", admin=False))
        return answers[-1].exit_code == 0

    until(aborted, lambda: answers[-1].exception)  # the broker may not have noticed yet that the driver is gone
    assert f"Aborted transaction {txn}" in answers[-1].output
    expect_healthy(pulsar, sink.topic)
    assert readable_now(pulsar.service_url, sink.topic) == [b"row of batch 0", b"behind it"]
    assert "It had ended before" in eos(pulsar, "abort", sink.name, "--yes").output

    with Client(Cluster(pulsar.service_url)) as again:
        successor = Owner(again, sink.name, control_topic(sink.name, sink.topic))
        successor.take_over("query", "next run")
        newest = successor.view.newest
        assert newest is not None
        assert newest.batch_id == 0, "the aborted batch is still to be written"


def test_a_late_frame_of_an_aborted_batch_freezes_a_partition_until_it_is_healed(
    pulsar: Any, sink: Sink, make_topic: Any
) -> None:
    other = make_topic("other")
    zombie = RawProducer(pulsar.service_url, sink.topic)
    sink.write(0)
    txn = _aborted_elsewhere(sink, other)
    late(pulsar, zombie, txn)
    plain(sink, "behind it")
    finding = found(pulsar, sink.topic)
    assert (finding["state"], finding["transaction"], finding["committed"]) == ("frozen", str(txn), None)

    answer = eos(pulsar, "doctor", sink.topic, "--heal")
    assert answer.exit_code == 0, answer.output
    assert readable_now(pulsar.service_url, sink.topic) == [b"row of batch 0", b"behind it"]
    zombie.connection.close()


def test_a_late_frame_of_a_committed_batch_is_healed_only_when_its_loss_is_accepted(pulsar: Any, sink: Sink) -> None:
    zombie = RawProducer(pulsar.service_url, sink.topic)
    txn = sink.write(0)
    late(pulsar, zombie, txn)
    plain(sink, "behind it")
    finding = found(pulsar, sink.topic)
    assert (finding["state"], finding["sink"], finding["committed"]) == ("frozen", sink.name, True)
    assert "write these rows again" in finding["remedy"]

    assert eos(pulsar, "doctor", sink.topic, "--heal").exit_code == 1
    assert readable_now(pulsar.service_url, sink.topic) == [b"row of batch 0"]
    assert eos(pulsar, "doctor", sink.topic, "--heal", "--accept-loss").exit_code == 0
    assert readable_now(pulsar.service_url, sink.topic) == [b"behind it"]
    zombie.connection.close()


def _aborted_elsewhere(sink: Sink, topic: str) -> TxnId:
    """Abort a transaction of the sink's coordinator that has written to another topic only."""
    coordinator = sink.owner.coordinator()
    txn = coordinator.new_transaction(60_000)
    coordinator.add_partitions(txn, [topic])
    coordinator.end(txn, commit=False)
    return txn
