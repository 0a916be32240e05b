"""A broker that was started without transactions delivers what is not committed, and no reader takes that for it."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from eos.errors import InvalidInput, RefusedForGood
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import ServerError
from tests.unit.pulsar.net.fake_broker import FakeBroker, Handler, answer_well, cut, first_then_well, refusing
from tests.unit.pulsar.net.stored_topic import ten
from tests.unit.pulsar.net.test_entries import numbers, read

OFF = refusing(ServerError.NotAllowedError, "Transactions are not enabled.")


@pytest.mark.parametrize(
    ("of_transactions", "answers", "asked"),
    [
        ((), OFF, 0),
        ((4,), answer_well, 1),
        ((4, 5), refusing(ServerError.TransactionCoordinatorNotFound, "no such coordinator"), 1),
        ((0, 9), first_then_well(cut), 2),
    ],
    ids=["no transactions at all", "on", "on, as 4.2.4 says", "a connection that is lost"],
)
def test_entries_come_where_the_broker_knows_what_is_committed(
    broker: FakeBroker, client: Client, of_transactions: Collection[int], answers: Handler, asked: int
) -> None:
    ten(broker).of_transactions = set(of_transactions)
    broker.handlers[Type.END_TXN] = answers
    for _ in range(2):
        with client.entry_reader("t", None, permits=2) as reader:
            assert numbers(read(reader, 10)) == list(range(10))
    assert len(broker.commands(Type.END_TXN)) == asked, "once for each connection"


def test_entries_of_transactions_are_refused_from_a_broker_that_was_started_without(
    broker: FakeBroker, client: Client
) -> None:
    ten(broker).of_transactions = {5}
    broker.handlers[Type.END_TXN] = OFF
    with client.entry_reader("t", None, permits=1) as reader:
        assert numbers(read(reader, 5)) == [0, 1, 2, 3, 4]
        for _ in range(2):
            with pytest.raises(RefusedForGood, match=r"Entry 1:5 is of a transaction.*transactionCoordinatorEnabled=t"):
                reader.read(1)
        broker.handlers[Type.END_TXN] = answer_well
        broker.cut_all()  # it was restarted with transactions
        assert numbers(read(reader, 5)) == [5, 6, 7, 8, 9]


@pytest.mark.parametrize(("answers", "hides"), [(answer_well, True), (OFF, False)])
def test_a_subscription_tells_whether_the_last_message_is_a_committed_one(
    broker: FakeBroker, client: Client, answers: Handler, hides: bool
) -> None:
    ten(broker)
    broker.handlers[Type.END_TXN] = answers
    cursor = client.subscription("t", "s", initial="earliest")
    assert cursor.last_message_id()[0] == EntryId(1, 9)
    assert cursor.hides_uncommitted() is hides


def test_a_coordinator_of_such_a_broker_names_the_setting(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.TC_CLIENT_CONNECT_REQUEST] = OFF
    with pytest.raises(InvalidInput, match=r"Transactions are not enabled.*Set transactionCoordinatorEnabled=true in"):
        client.coordinator(1)
