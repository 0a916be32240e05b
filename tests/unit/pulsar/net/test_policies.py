"""The types of subscriptions that a namespace and a broker allow, as the admin API tells them."""

from __future__ import annotations

import pytest

from eos.pulsar.net.admin import Admin
from tests.unit.pulsar.net.test_admin import Server
from tests.unit.pulsar.net.test_admin import admin as admin
from tests.unit.pulsar.net.test_admin import server as server


@pytest.mark.parametrize("types", [[], ["Failover", "Shared"]])
def test_the_types_of_subscriptions_of_a_namespace(types: list[str], server: Server, admin: Admin) -> None:
    server.answers["/admin/v2/namespaces/public/default/subscriptionTypesEnabled"] = (200, types[::-1])
    assert list(admin.subscription_types("public/default")) == types


@pytest.mark.parametrize(
    ("set_to", "types"),
    [("[Shared]", ["Shared"]), ("[Failover, Key_Shared]", ["Failover", "Key_Shared"]), ("[]", []), (None, [])],
)
def test_the_types_of_subscriptions_of_a_broker(
    set_to: str | None, types: list[str], server: Server, admin: Admin
) -> None:
    server.answers["/admin/v2/brokers/configuration/runtime"] = (200, {"subscriptionTypesEnabled": set_to})
    assert list(admin.broker_subscription_types()) == types
