"""`PulsarContainer`: a Pulsar image by testcontainers, with transactions on. Needs the extra `containers`.

    with PulsarContainer("apachepulsar/pulsar:4.2.4") as pulsar:
        eos.sink(pulsar.get_service_url(), topic=..., name=...)

The image must have what the official ones have: `bin/apply-config-from-env.py`, which takes settings from variables
named PULSAR_PREFIX_…, and `bin/pulsar standalone`. A standalone broker tells clients to reach each topic by the address
that they have connected to, so the ports of the host can be any.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from eos.config import Cluster
from eos.local.folder import ready
from eos.local.settings import DEFAULTS, properties

try:
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.exceptions import ContainerStartException
    from testcontainers.core.waiting_utils import WaitStrategy, WaitStrategyTarget
except ImportError as error:
    raise ImportError(
        f"PulsarContainer needs testcontainers, which can't be imported here: {error}. Install it with pip install "
        '"spark-pulsar-eos[containers]".'
    ) from error

BROKER_PORT: Final = 6650
HTTP_PORT: Final = 8080
_COORDINATORS: Final = 1
"""Of a standalone broker, which makes no more by itself."""
_OF_THE_HOST: Final = (
    "metadataStoreUrl",
    "configurationMetadataStoreUrl",
    "bindAddress",
    "advertisedAddress",
    "listeningInterface",
)
"""Settings of a local Pulsar that name addresses and files of this machine."""
SETTINGS: Final[Mapping[str, str]] = dict(
    f"PULSAR_PREFIX_{line}".split("=", 1)
    for line in properties({key: value for key, value in DEFAULTS.items() if key not in _OF_THE_HOST}).splitlines()
)
"""The settings of `eos local`, as variables: transactions are on, one thread recovers topics, and topics keep data."""
_COMMAND: Final = (
    "bin/apply-config-from-env.py conf/standalone.conf && "
    "exec bin/pulsar standalone --no-functions-worker --no-stream-storage"
)
_LIVES: Final = ("created", "running")
_LOG_LINES: Final = 25


class CoordinatorWaitStrategy(WaitStrategy):
    """Waits until the transaction coordinator of a container lets a client connect.

    Only then the broker takes transactions. Its ports, and its namespaces, are there some seconds earlier.
    """

    def wait_until_ready(self, container: WaitStrategyTarget) -> None:
        """Wait for it.

        Raises:
            TimeoutError: it did not answer within the start-up timeout, default 120 s. The message has its last lines.
            ContainerStartException: the container has ended; likewise.
        """
        deadline = time.monotonic() + self._startup_timeout
        while not self._answers(container):
            if time.monotonic() > deadline:
                waited = f"within {self._startup_timeout:g} s"
                raise TimeoutError(f"The transaction coordinator did not answer {waited}.{_end_of(container)}")
            time.sleep(self._poll_interval)

    def _answers(self, container: WaitStrategyTarget) -> bool:
        container.reload()
        if container.status not in _LIVES:
            raise ContainerStartException(f"Pulsar's container ended while starting.{_end_of(container)}")
        if container.status == "created":
            return False
        return ready(Cluster(service_url_of(container)), admin_url_of(container), _COORDINATORS)


class PulsarContainer(DockerContainer):
    """Pulsar container.

    Transactions are on, and topics keep their data without end. Ports of the host are free ones.

    Args:
        image: an official image, or one with the same scripts. Default "apachepulsar/pulsar:4.2.4".
        kwargs: as for `DockerContainer`.

    Example:

        with PulsarContainer().with_env("PULSAR_PREFIX_brokerDeduplicationEnabled", "true") as pulsar:
            service_url = pulsar.get_service_url()
    """

    def __init__(self, image: str = "apachepulsar/pulsar:4.2.4", **kwargs: Any) -> None:
        super().__init__(image, **kwargs)
        self.with_exposed_ports(BROKER_PORT, HTTP_PORT)
        self.with_envs(**{**SETTINGS, **self.env})
        self.with_command(["sh", "-c", _COMMAND])
        self.waiting_for(CoordinatorWaitStrategy())

    def get_service_url(self) -> str:
        """Return the URL for clients, pulsar://host:port."""
        return service_url_of(self)

    def get_admin_url(self) -> str:
        """Return the admin API, http://host:port."""
        return admin_url_of(self)


def service_url_of(container: WaitStrategyTarget) -> str:
    """Return the URL for clients of a container that has Pulsar's port."""
    return f"pulsar://{container.get_container_host_ip()}:{container.get_exposed_port(BROKER_PORT)}"


def admin_url_of(container: WaitStrategyTarget) -> str:
    """Return the admin API of a container that has its port."""
    return f"http://{container.get_container_host_ip()}:{container.get_exposed_port(HTTP_PORT)}"


def _end_of(container: WaitStrategyTarget) -> str:
    lines = b"".join(container.get_logs()).decode(errors="replace").splitlines()
    return "\n".join(["", "The last lines of its log:", *(line[:400] for line in lines[-_LOG_LINES:])])
