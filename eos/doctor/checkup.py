"""All that the sinks of a namespace depend on, besides readers that are held up: `eos doctor` tells it."""

from __future__ import annotations

from typing import Final

from eos.doctor.brokers import brokers
from eos.doctor.check import Check, good, unknown
from eos.doctor.deletion_policies import keeping
from eos.doctor.machine import machine
from eos.doctor.owners import owners
from eos.doctor.quotas import topics
from eos.doctor.sinks import sinks
from eos.errors import Refused
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.admin_requests import FORBIDDEN
from eos.pulsar.net.client import Client

_NO_TRANSACTIONS: Final = "not configured with transactionCoordinatorEnabled=true"
"""Words of a broker whose transactions are off (TransactionsBase.checkTransactionCoordinatorEnabled)."""


def checkup(client: Client, admin: Admin, namespace: str) -> list[Check]:
    """Look at this machine, at the brokers, and at each sink of a "tenant/namespace".

    Raises NetworkError where the brokers or their admin API do not answer at all.
    """
    found = sinks(client, namespace, admin)
    return [
        *machine(),
        *brokers(client, admin, namespace),
        topics(admin, namespace),
        *owners(admin, found, namespace),
        *keeping(client, admin, found, namespace),
    ]


def readers_not_told(error: Refused) -> Check:
    """Say why it is not known which readers wait. Raises the error if that is for no reason known here.

    Known are a role that may not ask, and a broker without transactions.
    """
    if _NO_TRANSACTIONS in error.detail:
        return good("readers", "No transaction holds readers up. The broker runs without transactions.")
    if error.code not in FORBIDDEN:
        raise error
    return unknown("readers", f"Which partitions hold readers up is not told to this role: {error}")
