"""What `eos sink reset`, and each other caller that deletes a topic, says where it is replicated to other clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from eos.commit.control_log import Intent
from eos.doctor.abort import OwnerAlive
from eos.doctor.reset import look, reset
from eos.errors import InvalidInput, Refused, RefusedForGood
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.admin_requests import path_of
from eos.pulsar.net.client import Client
from eos.pulsar.net.transaction_stats import OpenTransaction
from eos.pulsar.wire.txn import TxnId
from eos.sql.definitions import DROPPABLE, drop
from tests.unit.doctor.cluster import (
    BEGINS,
    INTENT,
    LOG,
    MARKER,
    ROWS,
    FakeAdmin,
    FakeClient,
    opened,
    refused,
    run,
)
from tests.unit.pulsar.net.test_admin import Server
from tests.unit.pulsar.net.test_admin import server as server

REPLICATED = "Delete forbidden topic is replicated on clusters [west]"
INBOUND = "Topic has 1 client connected Including 0 consumers, 0 producers, and 1 replicators."
"""Of a broker 4.2.4 that replicates to another cluster, and of one that another one replicates to (test_regions)."""

PARTITIONED = "persistent://public/default/two"
"""`FakeClient` says so."""


def sink_reset(client: Client, admin: Admin) -> None:
    reset(client, admin, look(client, admin, "rows"))


def drop_table(client: Client, admin: Admin) -> None:
    drop(client, admin, ROWS)


def drop_partitioned(client: Client, admin: Admin) -> None:
    drop(client, admin, PARTITIONED)


def at(topic: str, rest: str = "") -> str:
    return f"/admin/v2/{path_of(topic)}{rest}"


ASKED: dict[str, Any] = {
    at(LOG, "/stats"): {"publishers": [], "subscriptions": {}},
    at(ROWS, "/properties"): {DROPPABLE: "true"},
    at(PARTITIONED, "/properties"): {DROPPABLE: "true"},
}


@pytest.mark.parametrize(("status", "words"), [(422, REPLICATED), (412, INBOUND), (500, REPLICATED), (500, INBOUND)])
@pytest.mark.parametrize(
    ("deletes", "path"),
    [(sink_reset, at(LOG)), (drop_table, at(ROWS)), (drop_partitioned, at(PARTITIONED, "/partitions"))],
)
def test_a_replicated_topic_is_not_deleted_and_each_caller_is_told_the_way_out(
    server: Server, deletes: Callable[[Client, Admin], None], path: str, status: int, words: str
) -> None:
    server.answers = {one: (200, told) for one, told in ASKED.items()} | {path: (status, {"reason": words})}
    client = cast(Client, FakeClient([BEGINS, MARKER]))
    with Admin(server.url) as admin, pytest.raises(Refused, match="set-replication-clusters --clusters") as error:
        deletes(client, admin)
    assert isinstance(error.value, RefusedForGood) is (status < 500), "an answer 500 may be of any cause"
    assert server.asked[-1][:2] == ("DELETE", path)


def test_a_log_that_a_client_is_connected_to_belongs_to_a_driver(server: Server) -> None:
    words = "Topic has 2 client connected Including 0 consumers, 1 producers, and 1 replicators."
    server.answers = {one: (200, told) for one, told in ASKED.items()} | {at(LOG): (412, {"reason": words})}
    with Admin(server.url) as admin, pytest.raises(OwnerAlive, match="1 producers"):
        sink_reset(cast(Client, FakeClient([BEGINS, MARKER])), admin)


# ---- the last transaction


class NotTold(FakeAdmin):
    """Of a role that may delete topics, and may not ask for transactions."""

    def transaction(self, txn: TxnId) -> OpenTransaction | None:
        raise refused("403")


URL = ("--admin-url", "http://localhost:8080")
ASKED_FOR = ("sink", "reset", "rows", "--yes", *URL)
NAMED = "Use the credentials of the role alice, or"
NOT_NAMED = "Use the credentials of the role that opened it, or"


@pytest.mark.parametrize(
    ("intent", "words", "told"),
    [(replace(INTENT, principal="alice"), (), NAMED), (INTENT, ("--token", "of another role"), NOT_NAMED)],
)
def test_the_log_of_a_transaction_that_may_be_open_is_deleted_only_on_demand(
    intent: Intent, words: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def client() -> FakeClient:
        return FakeClient([BEGINS, intent], ends=[refused("TransactionNotFound")])

    admin = NotTold({})
    error = run(monkeypatch, client(), admin, *ASKED_FOR, *words).exception
    assert isinstance(error, InvalidInput)
    assert "Whether transaction (2,7) of the sink" in str(error)
    assert told in str(error)
    assert admin.deleted == []
    done = run(monkeypatch, client(), admin, *ASKED_FOR, *words, "--even-if-open")
    assert (done.exit_code, admin.deleted) == (0, [LOG]), done.output


@pytest.mark.parametrize("words", [(), ("--even-if-open",)])
def test_the_log_of_a_batch_that_was_committed_meanwhile_stays(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = FakeClient([BEGINS, INTENT], ends=[refused("TransactionNotFound")])

    class Commits(FakeAdmin):
        asked = 0

        def transaction(self, txn: TxnId) -> OpenTransaction | None:
            self.asked += 1
            if self.asked == 2:  # the first question comes before the abort
                client.log.append(MARKER)
            return opened() if self.asked == 1 else None

    admin = Commits({})
    error = run(monkeypatch, client, admin, *ASKED_FOR, *words).exception
    assert isinstance(error, InvalidInput)
    assert "has moved on. Look again." in str(error)
    assert admin.deleted == []


def test_the_log_of_a_transaction_that_has_ended_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = FakeAdmin({}, open=[opened()])
    done = run(monkeypatch, FakeClient([BEGINS, INTENT]), admin, *ASKED_FOR, "--token", "of its role")
    assert (done.exit_code, admin.deleted) == (0, [LOG]), done.output


@pytest.mark.parametrize("intent", [replace(INTENT, principal="alice"), INTENT])
def test_the_role_that_has_ended_its_transaction_is_told_that_it_can_not_learn_so(
    intent: Intent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker answers TransactionNotFound to it too, and an abort writes nothing into the log."""

    class Restarts(NotTold):
        def delete(self, topic: str) -> None:
            raise refused("503")

    own = ("--token", "of the role that opened it")
    client = FakeClient([BEGINS, intent], ends=[None])
    assert isinstance(run(monkeypatch, client, Restarts({}), *ASKED_FOR, *own).exception, Refused)
    admin = NotTold({})
    for verb in ("abort", "reset"):
        client.ends = [refused("TransactionNotFound")]
        done = run(monkeypatch, client, admin, "sink", verb, "rows", "--yes", *URL, *own)
        told = str(done.exception) + done.output
        assert ("Once it has ended, " in told, "gets this answer too" in told) == (True, True), told
        assert ("give --admin-url" in told or "with --admin-url" in told, admin.deleted) == (True, [])
    client.ends = [refused("TransactionNotFound")]
    assert run(monkeypatch, client, admin, *ASKED_FOR, *own, "--even-if-open").exit_code == 0
    assert admin.deleted == [LOG]
