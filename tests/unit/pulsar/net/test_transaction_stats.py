"""The transaction that holds a partition's readers up: that of the entry that follows the last one they get."""

from __future__ import annotations

import pytest

from eos.errors import Refused
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.transaction_stats import buffer_of, next_entry
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.txn import TxnId
from tests.unit.pulsar.net.test_admin import TOPIC, Server
from tests.unit.pulsar.net.test_admin import admin as admin
from tests.unit.pulsar.net.test_admin import server as server

LEDGERS = [{"ledgerId": 9, "entries": 0}, {"ledgerId": 5, "entries": 10}, {"ledgerId": 7, "entries": 0}]
"""The broker writes to 9, and 7 was closed before anything was written to it."""


@pytest.mark.parametrize(
    ("last", "position", "follows"),
    [
        ("9:2", (5, 3), (5, 4)),
        ("9:2", (5, -1), (5, 0)),
        ("9:2", (5, 9), (9, 0)),
        ("9:2", (4, 6), (5, 0)),
        ("9:2", (9, -1), (9, 0)),
        ("9:2", (9, 1), (9, 2)),
        ("9:2", (9, 2), None),
        ("5:9", (5, 9), None),
        ("9:-1", (5, 9), None),
    ],
)
def test_the_entry_that_follows_a_position(
    last: str, position: tuple[int, int], follows: tuple[int, int] | None
) -> None:
    found = next_entry({"lastConfirmedEntry": last, "ledgers": LEDGERS}, MessageId(*position))
    assert found == (None if follows is None else MessageId(*follows))


def test_the_transaction_behind_a_position(server: Server, admin: Admin) -> None:
    topic, place = "persistent://public/default/t/x", MessageId(5, 3)
    ledgers = [{"ledgerId": 4, "entries": 7}, {"ledgerId": 5, "entries": 4}, {"ledgerId": 8, "entries": 0}]
    server.answers = {
        f"{TOPIC}/internalStats": (200, {"lastConfirmedEntry": "8:0", "ledgers": ledgers}),
        f"{TOPIC}/ledger/8/entry/0": (200, None),
    }
    server.headers = {"X-Pulsar-txnid-most-bits": "2", "X-Pulsar-txnid-least-bits": "7"}
    assert admin.transaction_behind(topic, place) == TxnId(2, 7)
    server.headers = {}
    assert admin.transaction_behind(topic, place) is None
    assert admin.transaction_behind(topic, MessageId(8, 0)) is None


@pytest.mark.parametrize("status", [403, 404, 500])
def test_what_a_broker_cannot_read_is_not_the_end_of_a_ledger(server: Server, admin: Admin, status: int) -> None:
    """The entry of the next ledger is of another transaction."""
    ledgers = [{"ledgerId": 5, "entries": 10}, {"ledgerId": 8, "entries": 0}]
    server.answers = {
        f"{TOPIC}/internalStats": (200, {"lastConfirmedEntry": "8:2", "ledgers": ledgers}),
        f"{TOPIC}/ledger/5/entry/4": (status, {"reason": "not for you now"}),
        f"{TOPIC}/ledger/8/entry/0": (200, None),
    }
    server.headers = {"X-Pulsar-txnid-most-bits": "2", "X-Pulsar-txnid-least-bits": "9"}
    with pytest.raises(Refused, match="not for you now"):
        admin.transaction_behind("persistent://public/default/t/x", MessageId(5, 3))


def test_a_topic_of_the_brokers_own_has_no_transactions_and_holds_no_reader_up() -> None:
    buffer = buffer_of(None, {"lastConfirmedEntry": "5:7"})
    assert (buffer.known, buffer.held_up, buffer.last) == (True, False, MessageId(5, 7))
