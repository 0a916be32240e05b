"""The policies that the admin API tells of: the types of subscriptions that are allowed, and entry filters."""

from __future__ import annotations

import pytest

from eos.errors import Refused
from eos.pulsar.net.admin import Admin
from tests.unit.pulsar.net.test_admin import TOPIC, Server
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


FILTERS = {"entryFilterNames": "by-region, by-size"}


@pytest.mark.parametrize(
    ("answer", "names"),
    [((200, FILTERS), ("by-region", "by-size")), ((200, None), ()), ((405, {"reason": "Not Allowed"}), ())],
)
def test_the_entry_filters_of_a_topic(
    server: Server, admin: Admin, answer: tuple[int, object], names: tuple[str, ...]
) -> None:
    server.answers = {f"{TOPIC}/entryFilters?applied=true": answer}
    assert admin.entry_filters("persistent://public/default/t/x") == names


@pytest.mark.parametrize(
    ("namespace", "broker", "names"),
    [
        (FILTERS, "[other]", ("by-region", "by-size")),
        (None, "[by-region, by-size]", ("by-region", "by-size")),
        (None, "[]", ()),
        (None, None, ()),
    ],
)
def test_the_entry_filters_of_a_broker_without_policies_of_topics(
    server: Server, admin: Admin, namespace: object, broker: str | None, names: tuple[str, ...]
) -> None:
    """Else the answer would be that there are none, and segments would be read past the filters."""
    disabled = {"reason": "Topic level policies is disabled, to enable the topic level policy and retry."}
    server.answers = {
        f"{TOPIC}/entryFilters?applied=true": (405, disabled),
        "/admin/v2/namespaces/public/default/entryFilters": (200, namespace),
        "/admin/v2/brokers/configuration/runtime": (200, {"entryFilterNames": broker}),
    }
    assert admin.entry_filters("persistent://public/default/t/x") == names
    server.answers = {f"{TOPIC}/dispatchRate?applied=true": (405, disabled)}
    with pytest.raises(Refused, match=r"Set topicLevelPoliciesEnabled=true in broker\.conf of each broker\. Or leave"):
        admin.read_rates("persistent://public/default/t/x")
