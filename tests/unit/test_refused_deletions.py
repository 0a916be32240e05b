"""What each caller that deletes a topic says where the topic is replicated to other clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from eos.doctor.reset import look, reset
from eos.errors import Refused, RefusedForGood
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.admin_requests import path_of
from eos.pulsar.net.client import Client
from eos.sql.definitions import DROPPABLE, drop
from tests.unit.doctor.cluster import BEGINS, LOG, MARKER, ROWS, FakeClient
from tests.unit.pulsar.net.test_admin import Server
from tests.unit.pulsar.net.test_admin import server as server

WORDS = "Delete forbidden topic is replicated on clusters [west]"
"""Of a broker 4.2.4 (BrokerService.deleteTopicInternal)."""

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


@pytest.mark.parametrize("status", [422, 500])
@pytest.mark.parametrize(
    ("deletes", "path"),
    [(sink_reset, at(LOG)), (drop_table, at(ROWS)), (drop_partitioned, at(PARTITIONED, "/partitions"))],
)
def test_a_replicated_topic_is_not_deleted_and_each_caller_is_told_the_way_out(
    server: Server, deletes: Callable[[Client, Admin], None], path: str, status: int
) -> None:
    server.answers = {one: (200, told) for one, told in ASKED.items()} | {path: (status, {"reason": WORDS})}
    client = cast(Client, FakeClient([BEGINS, MARKER]))
    with Admin(server.url) as admin, pytest.raises(Refused, match="set-replication-clusters --clusters") as refused:
        deletes(client, admin)
    assert isinstance(refused.value, RefusedForGood) is (status == 422), "an answer 500 may be of any cause"
    assert server.asked[-1][:2] == ("DELETE", path)
