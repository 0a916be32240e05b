"""Readers that a dead or a late writer holds up: found, explained and freed, on a real broker."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from typer.testing import Result

from eos.commit.control_topic import control_topic
from eos.commit.owner import Owner
from eos.config import Cluster
from eos.doctor.abort import OwnerAlive, refuse_if_owned
from eos.errors import Fenced, NotCommitted
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.topics import namespace_of
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.txn import TxnId
from tests.conftest import create_topic
from tests.contract.official import readable_now
from tests.contract.raw import RawProducer
from tests.integration.sparkless import Sink, eos
from tests.integration.sparkless import sink as sink
from tests.waiting import until


@pytest.fixture
def alone(pulsar: Any) -> Iterator[Sink]:
    """A sink in a namespace of its own: a control log there that another test has damaged would forbid a healing."""
    namespace = f"public/doctor-{uuid.uuid4().hex[:8]}"
    httpx.put(f"{pulsar.admin_url}/admin/v2/namespaces/{namespace}", timeout=30).raise_for_status()
    made = Sink(pulsar, lambda stem: create_topic(pulsar.admin_url, stem, namespace=namespace))
    yield made
    made.client.close()


def found(pulsar: Any, topic: str) -> dict[str, Any]:
    """The one finding there is. Control logs of no other namespace are read."""
    answer = eos(pulsar, "doctor", topic, "--namespace", namespace_of(topic), "--json", "--older-than", "0")
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
    assert f"eos sink abort {sink.name}" in finding["remedy"]
    assert readable_now(pulsar.service_url, sink.topic) == [b"row of batch 0"]

    alive = eos(pulsar, "sink", "abort", sink.name, "--yes", admin=False)
    assert "A driver owns the sink" in str(alive.exception)
    assert found(pulsar, sink.topic)["transaction"] == str(txn)

    sink.client.close()
    answers: list[Result] = []

    def aborted() -> bool:
        answers.append(eos(pulsar, "sink", "abort", sink.name, "--yes", admin=False))
        return answers[-1].exit_code == 0

    until(aborted, lambda: answers[-1].exception)  # the broker may not have noticed yet that the driver is gone
    assert f"Aborted transaction {txn}" in answers[-1].output
    expect_healthy(pulsar, sink.topic)
    assert readable_now(pulsar.service_url, sink.topic) == [b"row of batch 0", b"behind it"]
    assert "It had ended before" in eos(pulsar, "sink", "abort", sink.name, "--yes").output

    with Client(Cluster(pulsar.service_url)) as again:
        successor = Owner(again, sink.name, control_topic(sink.name, sink.topic))
        successor.take_over("query", "next run")
        newest = successor.view.newest
        assert newest is not None
        assert newest.batch_id == 0, "the aborted batch is still to be written"


def try_to_come_back(former: Owner, asker: Client) -> None:
    """Of a fenced driver: the broker closes the owner's producer before it says no."""
    with pytest.raises(Fenced):
        former.log.reopen()
    asker.producer(former.topic).close()  # it would be refused beside the owner's


def test_without_the_admin_api_a_driver_whose_producer_was_closed_is_seen_and_not_fenced(
    pulsar: Any, sink: Sink
) -> None:
    log = control_topic(sink.name, sink.topic)
    former, sink.owner = sink.owner, Owner(sink.client, sink.name, log)
    sink.owner.take_over("query", "later run")
    sink.write(0)
    sink.die_in_the_middle(1)
    with Client(Cluster(pulsar.service_url)) as asker:
        try_to_come_back(former, asker)
        alive = eos(pulsar, "sink", "abort", sink.name, "--yes", admin=False)
        assert "A driver owns the sink" in str(alive.exception)
        with pytest.raises(OwnerAlive):
            refuse_if_owned(asker, sink.name, log)
        former.close()

        # After an unload it has nothing: its batch brings back the producer, and with it the subscription.
        unload(pulsar, log)
        refuse_if_owned(asker, sink.name, log)
        sink.write(1)
        try_to_come_back(former, asker)
        with pytest.raises(OwnerAlive):
            refuse_if_owned(asker, sink.name, log)

        with pytest.raises(NotCommitted):
            sink.write(2)  # it finds its producer closed
        sink.die_in_the_middle(2)
        unload(pulsar, log)
        assert eos(pulsar, "sink", "abort", sink.name, "--yes", admin=False).exit_code == 0
    sink.write(2)  # no look has fenced it
    assert readable_now(pulsar.service_url, sink.topic) == [b"row of batch %d" % batch for batch in range(3)]


def unload(pulsar: Any, topic: str) -> None:
    at = f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/unload"
    httpx.put(at, timeout=60, follow_redirects=True).raise_for_status()


def test_a_late_frame_of_an_aborted_batch_freezes_a_partition_until_it_is_healed(
    pulsar: Any, alone: Sink, make_topic: Any
) -> None:
    zombie = RawProducer(pulsar.service_url, alone.topic)
    alone.write(0)
    txn = alone.die_in_the_middle(1, make_topic("other"))  # a broker knows what it has aborted on a partition
    alone.client.coordinator(txn.coordinator).end(txn, commit=False)
    late(pulsar, zombie, txn)
    plain(alone, "behind it")
    finding = found(pulsar, alone.topic)
    assert (finding["state"], finding["transaction"], finding["committed"]) == ("frozen", str(txn), False)

    answer = eos(pulsar, "doctor", alone.topic, "--heal")
    assert answer.exit_code == 0, answer.output
    assert readable_now(pulsar.service_url, alone.topic) == [b"row of batch 0", b"behind it"]
    zombie.connection.close()


def test_what_no_log_names_is_healed_only_when_its_loss_is_accepted(pulsar: Any, alone: Sink, make_topic: Any) -> None:
    zombie = RawProducer(pulsar.service_url, alone.topic)
    alone.write(0)
    late(pulsar, zombie, _aborted_elsewhere(alone, make_topic("other")))
    plain(alone, "behind it")
    assert "No control log of the namespaces looked at names the transaction" in found(pulsar, alone.topic)["remedy"]

    assert eos(pulsar, "doctor", alone.topic, "--heal").exit_code == 1
    assert readable_now(pulsar.service_url, alone.topic) == [b"row of batch 0"]
    answer = eos(pulsar, "doctor", alone.topic, "--heal", "--accept-loss")
    assert answer.exit_code == 0, answer.output
    assert readable_now(pulsar.service_url, alone.topic) == [b"row of batch 0", b"behind it"]
    zombie.connection.close()


def test_a_late_frame_of_a_committed_batch_is_healed_only_when_its_loss_is_accepted(pulsar: Any, alone: Sink) -> None:
    zombie = RawProducer(pulsar.service_url, alone.topic)
    txn = alone.write(0)
    late(pulsar, zombie, txn)
    plain(alone, "behind it")
    finding = found(pulsar, alone.topic)
    assert (finding["state"], finding["sink"], finding["committed"]) == ("frozen", alone.name, True)
    assert "write these rows again" in finding["remedy"]

    assert eos(pulsar, "doctor", alone.topic, "--heal").exit_code == 1
    assert readable_now(pulsar.service_url, alone.topic) == [b"row of batch 0"]
    assert eos(pulsar, "doctor", alone.topic, "--heal", "--accept-loss").exit_code == 0
    assert readable_now(pulsar.service_url, alone.topic) == [b"behind it"]
    zombie.connection.close()


def _aborted_elsewhere(sink: Sink, topic: str) -> TxnId:
    """Abort a transaction of the sink's coordinator that has written to another topic only."""
    coordinator = sink.owner.coordinator()
    txn = coordinator.new_transaction(60_000)
    coordinator.add_partitions(txn, [topic])
    coordinator.end(txn, commit=False)
    return txn


def test_what_killed_reads_have_left_is_deleted_by_name_and_nothing_else(pulsar: Any, make_topic: Any) -> None:
    topic = make_topic("leftovers", partitions=2)
    left, used, theirs = *(f"{one}spark-batch-app-1-{uuid.uuid4().hex}-7" for one in ("", "role-")), "job"
    first, second = f"{topic}-partition-0", f"{topic}-partition-1"
    with Client(Cluster(pulsar.service_url)) as dead:
        for partition, name in ((first, left), (first, theirs), (second, used)):
            dead.subscription(partition, name, initial="earliest")
    with Client(Cluster(pulsar.service_url)) as alive:
        reading = alive.subscription(second, used, initial="earliest")
        answer = eos(pulsar, "doctor", topic, "--remove-leftovers", "--json")
        assert answer.exit_code == 0, answer.output
        assert json.loads(answer.stdout)["removed"] == [{"topic": first, "subscription": left}]
        with Admin(pulsar.admin_url) as admin:
            assert (admin.subscriptions(first), admin.subscriptions(second)) == ((theirs,), (used,))
        reading.close()
    answer = eos(pulsar, "doctor", topic, "--remove-leftovers")
    assert f"The subscription {used} of {second} is deleted." in " ".join(answer.output.split())
