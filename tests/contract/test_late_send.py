"""A send after the commit destroys the batch that was committed.

This is why no send may be possible once END_TXN(commit) is on its way: the broker takes the late frame, acknowledges
it, opens the transaction again in the partition's buffer, and aborts it when a later transaction of the same
coordinator ends there. The committed rows disappear for every reader that starts after that.
"""

from __future__ import annotations

from eos.errors import ConnectionLost
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.wire.message_id import MessageId
from tests.clients import end, transaction
from tests.conftest import MakeTopic
from tests.contract.conftest import Produce, Running
from tests.contract.official import read_until, readable_now
from tests.contract.test_transactions import heal_at_last, last_word


def test_a_late_send_into_a_committed_transaction_loses_the_committed_batch(
    pulsar: Running, ours: Client, admin: Admin, quiet: int, make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic("p-late-send")
    txn = transaction(ours, topic, coordinator_index=quiet)
    zombie = produce(topic)
    for sequence_id, row in enumerate([b"row 1", b"row 2"]):
        zombie.send(row, txn, sequence_id)
        assert isinstance(zombie.event(), MessageId)
    end(ours, txn, commit=True)
    assert readable_now(pulsar.service_url, topic) == [b"row 1", b"row 2"]

    zombie.send(b"late", txn, 2)
    assert isinstance(zombie.event(), MessageId), "the broker acknowledges the late frame"
    last = last_word(ours, topic)
    assert admin.buffer(topic).held_up
    assert readable_now(pulsar.service_url, topic) == [b"row 1", b"row 2"], "readers stop before the late frame"

    heal_at_last(ours, admin, topic, quiet)
    assert read_until(pulsar.service_url, topic, last) == [b"last"], "the committed rows are gone"


def test_closing_the_producer_before_the_commit_keeps_the_batch(
    pulsar: Running, ours: Client, admin: Admin, quiet: int, make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic("p-late-send-closed")
    txn = transaction(ours, topic, coordinator_index=quiet)
    zombie = produce(topic)
    zombie.send(b"row", txn, 0)
    assert isinstance(zombie.event(), MessageId)
    zombie.close_producer()
    end(ours, txn, commit=True)

    zombie.send(b"late", txn, 1)
    assert isinstance(zombie.event(), ConnectionLost), "the broker cuts off a client that sends on a closed producer"
    last = last_word(ours, topic)
    heal_at_last(ours, admin, topic, quiet)
    assert read_until(pulsar.service_url, topic, last) == [b"row", b"last"]
