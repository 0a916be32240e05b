"""A cluster of each version of Pulsar that was tried: it starts, stores, loses a broker and a bookie, and has all."""

from __future__ import annotations

import pytest

from eos.local import LocalCluster, jars
from eos.pulsar.net.admin import Admin
from tests.clients import official_client
from tests.conftest import START_S, create_topic
from tests.reading import values_of

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]


@pytest.mark.parametrize("version", jars.VERSIONS)
def test_a_cluster_of_each_version_keeps_what_it_has_over_the_loss_of_parts(version: str) -> None:
    with LocalCluster(version=version, start_timeout_s=START_S) as cluster:
        with Admin(cluster.admin_url) as admin:
            assert admin.version() == version
        topic = create_topic(cluster.admin_url, "versions", 2)
        with official_client(cluster.service_url) as client:
            producer = client.create_producer(topic)
            for number in range(100):
                producer.send(str(number).encode())
        for part in ("bookie-1", "broker-0"):
            cluster.restart(part)
        found = LocalCluster.found(cluster.data or pytest.fail("no folder"))
        assert found.version == version
        assert sorted(values_of(cluster.service_url, topic)) == sorted(str(number) for number in range(100))
