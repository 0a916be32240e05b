"""Topics of a local Pulsar, made by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus

from eos.config import Cluster, Credentials, Tls
from eos.errors import ConnectionLost, Refused, TopicMissing, Unanswered
from eos.local.checks import LocalError
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client


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
    try:
        with Admin(place.admin_url, place.credentials, place.tls) as admin:
            admin.create(topic, partitions)
    except (ConnectionLost, Unanswered) as error:
        raise LocalError(f"{place.admin_url} does not answer ({error}). See: eos local status") from error
    except TopicMissing as missing:
        raise LocalError(f"Pulsar did not create {topic}. {missing}") from missing
    except Refused as refused:
        if refused.code != str(HTTPStatus.CONFLICT.value):
            raise LocalError(f"Pulsar did not create {topic}: {refused.code} {refused.detail}") from refused
        with Client(place.cluster) as client:
            found = client.partitions(topic)
        if found != partitions:
            raise LocalError(
                f"{topic} is there already, with {found} partitions, not {partitions}. Take another name"
            ) from None
        return False
    return True
