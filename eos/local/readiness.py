"""Whether a broker that was started is of use: its namespaces are there, and its transaction coordinators answer."""

from __future__ import annotations

from dataclasses import replace

from eos.config import Cluster
from eos.errors import NetworkError, NoCredentials, TopicMissing
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client

_ANSWER_S = 5.0


def ready(cluster: Cluster, admin_url: str, coordinators: int) -> bool:
    """Ask the broker once. Makes it set up more coordinators when it has fewer than `coordinators`; 0: none are asked.

    A coordinator counts when it lets a client connect: only then it has loaded its log. Raises NoCredentials.
    """
    try:
        with Admin(admin_url, cluster.credentials, cluster.tls, _ANSWER_S) as admin:
            if "public/default" not in admin.namespaces("public"):
                return False
            if not coordinators:
                return True
            brokers = admin.coordinators()
            if len(brokers) < coordinators:
                admin.set_coordinators(coordinators)
                return False
            if None in brokers:
                return False
    except NoCredentials:
        raise
    except (NetworkError, TopicMissing):
        return False
    with Client(replace(cluster, request_timeout_s=_ANSWER_S)) as client:
        try:
            for index in range(client.coordinators()):
                client.coordinator(index).connect()
        except NetworkError:
            return False
    return True
