"""What a broker answers where the policies of a partition are asked for: those of its topic."""

from __future__ import annotations

import httpx

from eos.pulsar.net.admin import Admin
from eos.pulsar.net.policies import BacklogQuota, TopicPolicies
from tests.conftest import create_topic
from tests.contract.conftest import Running
from tests.waiting import until


def test_the_policies_of_a_partition_are_those_of_its_topic(pulsar: Running) -> None:
    topic = create_topic(pulsar.admin_url, "policies", partitions=2)
    partition, at = f"{topic}-partition-1", f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}"
    quota = {"limitSize": 1_000_000, "policy": "producer_exception"}
    for name, value in {
        "retention": {"retentionTimeInMinutes": 3, "retentionSizeInMB": 4},
        "messageTTL?messageTTL=70": None,
        "maxConsumers": 8,
        "backlogQuota?backlogQuotaType=destination_storage": quota,
        "dispatchRate": {"dispatchThrottlingRateInMsg": 50, "ratePeriodInSecond": 1},
    }.items():
        httpx.post(f"{at}/{name}", json=value, timeout=30).raise_for_status()
    wanted = TopicPolicies(70, (BacklogQuota("destination_storage", 1_000_000, "producer_exception"),), 3, 4, 8)
    with Admin(pulsar.admin_url) as admin:
        until(lambda: admin.keeping(topic) == wanted, lambda: f"it has {admin.keeping(topic)}")
        assert admin.keeping(partition) == wanted
        assert any("50" in rate for rate in admin.read_rates(partition)), admin.read_rates(partition)
