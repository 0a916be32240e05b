"""Topics of a local Pulsar, made by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import quote

import httpx

from eos.config import Cluster, Credentials, Tls
from eos.local.checks import LocalError
from eos.pulsar.net.admin import headers
from eos.pulsar.net.client import Client
from eos.pulsar.net.transport import tls_context

_ANSWER_S = 30.0


@dataclass(frozen=True, slots=True)
class LocalTopic:
    """Where a Pulsar of `eos local` is, and how to be let in.

    Attributes:
        service_url, admin_url: pulsar://localhost:PORT and http://localhost:PORT, or with pulsar+ssl:// and https://.
        credentials: those of its administrator.
        tls: how to trust it.
    """

    service_url: str
    admin_url: str
    credentials: Credentials
    tls: Tls = field(default_factory=Tls)

    @property
    def cluster(self) -> Cluster:
        """How its administrator reaches it."""
        return Cluster(self.service_url, self.credentials, self.tls)


def create(place: LocalTopic, topic: str, partitions: int) -> bool:
    """Create a topic; False when it was there already, with as many partitions.

    Args:
        place: where.
        topic: "persistent://tenant/namespace/name".
        partitions: how many; 0: a topic without partitions.

    Raises:
        LocalError: it is there with another number of partitions, or Pulsar refuses it, as it does where the namespace
            is missing.
    """
    path = topic.removeprefix("persistent://")
    tenant, namespace, name = path.split("/", 2)
    url = f"{place.admin_url}/admin/v2/persistent/{tenant}/{namespace}/{quote(name, safe='')}"
    where, body = (f"{url}/partitions", partitions) if partitions else (url, None)
    try:
        answer = httpx.put(
            where,
            json=body,
            headers=headers(place.credentials, _ANSWER_S),
            timeout=_ANSWER_S,
            verify=tls_context(place.tls, place.credentials) if url.startswith("https:") else True,
            follow_redirects=True,
        )
    except httpx.TransportError as error:
        raise LocalError(f"{place.admin_url} does not answer ({error}). See: eos local status") from error
    if answer.status_code == HTTPStatus.CONFLICT:
        with Client(place.cluster) as client:
            found = client.partitions(topic)
        if found != partitions:
            raise LocalError(f"{topic} is there already, with {found} partitions, not {partitions}. Take another name")
        return False
    if not answer.is_success:
        raise LocalError(f"Pulsar did not create {topic}: {answer.status_code} {answer.text.strip()}")
    return True
