"""Two clusters that replicate a namespace to each other: a control record stays in its own."""

from __future__ import annotations

from collections.abc import Callable

import httpx

from eos.config import Cluster
from eos.local import LocalPulsar
from eos.pulsar.net.client import Client
from tests.waiting import until

TOPIC = "persistent://geo/both/t"


def test_a_local_record_is_not_replicated_and_one_that_was_says_from_where(
    start_pulsar: Callable[..., LocalPulsar],
) -> None:
    names = ("east", "west")
    east, west = (start_pulsar(settings={"clusterName": name}, memory="512m") for name in names)
    for here, there, name in ((east, west, "west"), (west, east, "east")):
        addresses = {"serviceUrl": there.admin_url, "brokerServiceUrl": there.service_url}
        for path, body in {
            f"clusters/{name}": addresses,
            "tenants/geo": {"allowedClusters": names},
            "namespaces/geo/both": {"replication_clusters": names},
            TOPIC.replace("://", "/"): None,
        }.items():
            httpx.put(f"{here.admin_url}/admin/v2/{path}", json=body, timeout=30).raise_for_status()
    with Client(Cluster(east.service_url)) as sends, Client(Cluster(west.service_url)) as reads:
        with sends.producer(TOPIC) as producer:
            assert producer.name.startswith("east-")
            producer.send_record(b"before", None)
            producer.send_record(b"stays", None, local=True)
            producer.send_record(b"behind", None)
        reader = reads.reader(TOPIC)
        seen = []

        def came() -> bool:
            message = reader.read(1)
            if message is not None:
                seen.append((message.data, message.replicated_from))
            return (b"behind", "east") in seen

        until(came, "what was sent last is replicated")
    assert seen == [(b"before", "east"), (b"behind", "east")]
