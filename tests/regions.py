"""Two clusters, "east" and "west", and a namespace that each replicates to the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from eos.local import LocalPulsar
from tests.waiting import until

TENANT = "geo"
NAMESPACE = f"{TENANT}/both"
CONTROL = f"{TENANT}/control"
"""A namespace that both clusters have, and that neither replicates."""


@dataclass(frozen=True)
class Regions:
    """The two clusters. Each has the tenant and the namespaces."""

    east: LocalPulsar
    west: LocalPulsar

    def named(self) -> dict[str, LocalPulsar]:
        return {"east": self.east, "west": self.west}

    def create_topic(self, name: str, partitions: int = 0) -> str:
        """Create a topic of the replicated namespace in both clusters, and return its name.

        Brokers do so by themselves (createTopicToRemoteClusterForReplication), a moment later.
        """
        topic = f"persistent://{NAMESPACE}/{name}"
        path = topic.replace("://", "/")
        for here in self.named().values():
            if partitions:
                _put(here, f"{path}/partitions", partitions)
            else:
                _put(here, path, None)
        return topic

    def wait_until_replicated(self, topic: str, partitions: int) -> None:
        """Wait until each cluster has sent the other all that the partitions hold."""

        def sent() -> bool:
            for here in self.named().values():
                for number in range(partitions):
                    path = f"{topic.replace('://', '/')}-partition-{number}"
                    told = httpx.get(f"{here.admin_url}/admin/v2/{path}/stats", timeout=30).raise_for_status().json()
                    if any(one["replicationBacklog"] for one in told["replication"].values()):
                        return False
            return True

        until(sent, "a cluster has not sent all messages to the other", pause_s=0.2)


@contextmanager
def two_regions(start_timeout_s: float, version: str) -> Iterator[Regions]:
    """Start two clusters for the time of the block, and let each replicate the namespace to the other."""
    east, west = (
        LocalPulsar(settings={"clusterName": name}, memory="512m", start_timeout_s=start_timeout_s, version=version)
        for name in ("east", "west")
    )
    with east, west:
        regions = Regions(east, west)
        names = list(regions.named())
        for here, there, name in ((east, west, "west"), (west, east, "east")):
            _put(here, f"clusters/{name}", {"serviceUrl": there.admin_url, "brokerServiceUrl": there.service_url})
            _put(here, f"tenants/{TENANT}", {"allowedClusters": names})
            _put(here, f"namespaces/{NAMESPACE}", {"replication_clusters": names})
            own = "west" if name == "east" else "east"
            _put(here, f"namespaces/{CONTROL}", {"replication_clusters": [own]})
        yield regions


def _put(cluster: LocalPulsar, path: str, body: object) -> None:
    answer = httpx.put(f"{cluster.admin_url}/admin/v2/{path}", json=body, timeout=30)
    if answer.status_code != httpx.codes.CONFLICT:  # the other cluster was faster
        answer.raise_for_status()
