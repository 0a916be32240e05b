"""The admin API of a cluster that a drill breaks."""

from __future__ import annotations

import httpx

from eos.backoff import retried
from eos.errors import NetworkError, TopicMissing
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.admin_requests import path_of

_ASK_S = 30.0
_PAUSE_S = 0.5


class DrillAdmin(Admin):
    """Asks again for half a minute, since brokers come and go, and can do what users of topics must not."""

    @retried(lambda error: isinstance(error, (NetworkError, TopicMissing)), _ASK_S, _PAUSE_S, _PAUSE_S)
    def _ask(self, method: str, path: str, body: object = None) -> httpx.Response:
        return super()._ask(method, path, body)

    def keep_messages(self, namespace: str) -> None:
        """Have the topics of a namespace, "tenant/namespace", keep what was acknowledged, too."""
        all_of_it = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
        self._ask("POST", f"v2/namespaces/{namespace}/retention", all_of_it)

    def unload(self, topic: str) -> None:
        """Have its broker let a topic go; the next client loads it again."""
        self._ask("PUT", f"v2/{path_of(topic)}/unload")

    def force_delete(self, topic: str) -> None:
        """Delete a topic, whoever is connected to it."""
        self._ask("DELETE", f"v2/{path_of(topic)}?force=true")

    def partitions(self, topic: str) -> int:
        """Return a topic's number of partitions."""
        return int(self._json(f"v2/{path_of(topic)}/partitions")["partitions"])

    def set_partitions(self, topic: str, number: int) -> None:
        """Give a topic more partitions."""
        self._ask("POST", f"v2/{path_of(topic)}/partitions", number)

    def owner(self, partition: str) -> str:
        """Return the service URL of the broker that has a physical topic."""
        return str(self._json(f"/lookup/v2/topic/{path_of(partition)}")["brokerUrl"])

    def bundle(self, partition: str) -> str:
        """Return the bundle of its namespace that a physical topic is in."""
        return self._ask("GET", f"/lookup/v2/topic/{path_of(partition)}/bundle").text

    def move(self, namespace: str, bundle: str, broker: str) -> None:
        """Have another broker own a bundle of a "tenant/namespace". Args: also the broker, as `brokers` names it."""
        self._ask("PUT", f"v2/namespaces/{namespace}/{bundle}/unload?destinationBroker={broker}")

    def brokers(self) -> tuple[str, ...]:
        """Return the brokers as they know one another: the host, as each takes it, and the port of the admin API."""
        return tuple(self._json("v2/brokers"))
