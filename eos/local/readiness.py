"""Whether a broker that was started is of use: its namespaces are there, and its transaction coordinators answer."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus

import httpx

from eos.config import Cluster
from eos.errors import NetworkError
from eos.pulsar.net.admin import headers
from eos.pulsar.net.client import Client
from eos.pulsar.net.transport import tls_context

_ANSWER_S = 5.0


def ready(cluster: Cluster, admin_url: str, coordinators: int) -> bool:
    """Ask the broker once. Makes it set up more coordinators when it has fewer than `coordinators`; 0: none are asked.

    A coordinator counts when it lets a client connect: only then it has loaded its log.
    """
    # Loading the system's certificates takes longer than the question.
    verify = tls_context(cluster.tls, cluster.credentials) if admin_url.startswith("https:") else False
    with httpx.Client(
        base_url=admin_url,
        headers=headers(cluster.credentials, _ANSWER_S),
        timeout=_ANSWER_S,
        verify=verify,
        follow_redirects=True,
    ) as admin:
        try:
            if not _namespaces_exist(admin):
                return False
            if not coordinators:
                return True
            if not _coordinators_exist(admin, coordinators):
                return False
        except httpx.TransportError:
            return False
    with Client(replace(cluster, request_timeout_s=_ANSWER_S)) as client:
        try:
            for index in range(client.coordinators()):
                client.coordinator(index).connect()
        except NetworkError:
            return False
    return True


def _namespaces_exist(admin: httpx.Client) -> bool:
    answer = admin.get("/admin/v2/namespaces/public")
    return answer.status_code == HTTPStatus.OK and "public/default" in answer.json()


def _coordinators_exist(admin: httpx.Client, wanted: int) -> bool:
    answer = admin.get("/admin/v3/transactions/coordinators")
    if answer.status_code != HTTPStatus.OK:
        return False
    held = answer.json()
    if len(held) < wanted:
        admin.post("/admin/v3/transactions/transactionCoordinator/replicas", json=wanted)
        return False
    return all(one["brokerServiceUrl"] for one in held)
