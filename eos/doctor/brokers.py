"""The brokers' part of what a sink depends on: their version and settings, their clocks, and their coordinators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from eos.doctor.check import Check, care, good, unknown
from eos.errors import InvalidInput, NetworkError, Unanswered
from eos.preflight.recovery import danger, unreadable_snapshots
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.version import PULSAR

SKEW_S: Final = 5.0
"""Seconds by which a broker's clock may differ from this machine's. It tells its time in whole seconds."""

_MOST_OPEN: Final = "maxActiveTransactionsPerCoordinator"
_NEAR: Final = 0.8
"""Share of a coordinator's limit from which on it is said to be near it."""

Settings = Mapping[str, str] | NetworkError
"""A broker's settings, or why it does not tell them."""


def brokers(client: Client, admin: Admin, namespace: str) -> Iterator[Check]:
    """Look at the broker that answers, and at all coordinators. Raises NetworkError when none answers at all."""
    settings = _settings(admin)
    yield broker_version(admin.version())
    told = danger(admin)
    about = "recovery of topics"
    if told is None:
        yield good(about, "The broker recovers topics in one thread.")
    else:
        yield (care if told.certain else unknown)(about, told.text)
    yield subscription_types(admin, namespace)
    yield clock(admin.clock_ahead_s())
    yield from coordinators(client, admin, settings)
    yield auto_creation(settings, _override(admin, namespace))


def broker_version(version: str) -> Check:
    """Say whether this version was tried."""
    about = "Pulsar"
    whole = PULSAR.get(version)
    if whole:
        return good(about, f"Pulsar {version}: every test runs with this version.")
    tried = "was tried in part only" if whole is False else "was not tried"
    return unknown(about, f"Pulsar {version}: this version {tried}, see docs/reference/versions.md.")


def subscription_types(admin: Admin, namespace: str) -> Check:
    """Say whether a "tenant/namespace" lets brokers read what they need to recover its topics."""
    about = f"subscription types of {namespace}"
    try:
        refused = unreadable_snapshots(admin, namespace)
    except NetworkError as error:
        return unknown(about, f"Which types of subscriptions {namespace} allows is not told: {error}")
    if refused:
        return care(about, refused)
    return good(about, f"{namespace} allows Exclusive subscriptions, which brokers and sinks need.")


def clock(ahead_s: float | None) -> Check:
    """Say whether the broker's clock agrees with this machine's. Args: seconds that it is ahead; None: it does not
    tell."""
    about = "clocks"
    if ahead_s is None:
        return unknown(about, "The broker's answers have no Date. Its clock can't be compared with ours.")
    if abs(ahead_s) <= SKEW_S:
        return good(about, f"The broker's clock and ours differ by less than {SKEW_S:g} s.")
    side = "ahead of" if ahead_s > 0 else "behind"
    said = (
        f"The broker's clock is {abs(ahead_s):.0f} s {side} ours. Ages of transactions, tokens, message TTLs and what "
        "eos sink adopt tells go by clocks. Let both follow the same time server."
    )
    return care(about, said)


def coordinators(client: Client, admin: Admin, settings: Settings) -> Iterator[Check]:
    """Look at each coordinator: whether it answers, and how near it is to its limit of open transactions."""
    about = "coordinators"
    try:
        number = client.coordinators()
    except InvalidInput as error:
        yield care(about, f"A sink that promises exactly-once can't run here: {error}")
        return
    most = None if isinstance(settings, NetworkError) else int(settings.get(_MOST_OPEN) or 0)
    amiss = [check for index in range(number) if (check := coordinator(about, admin, index, most)) is not None]
    yield from amiss
    if amiss:
        return
    if most is None:
        yield unknown(
            about, f"{number} answer, and how many transactions each may have open ({_MOST_OPEN}) is not told."
        )
    else:
        limit = f"none is near its limit of {most} open transactions" if most else "they have no limit"
        yield good(about, f"{number} coordinators answer, and {limit}.")


def coordinator(about: str, admin: Admin, index: int, most: int | None) -> Check | None:
    """Say what is amiss with one coordinator; None where nothing is.

    Args: its number; the transactions that it may have open, 0 for no limit, None for not known.
    """
    try:
        state, open_now = admin.coordinator(index)
    except Unanswered as error:
        said = (
            f"Coordinator {index} does not answer ({error}). Sinks that are bound to it wait. Look at the broker that "
            f"owns persistent://pulsar/system/transaction_coordinator_assign-partition-{index}."
        )
        return care(about, said)
    except NetworkError as error:
        return unknown(about, f"Coordinator {index} can't be asked: {error}")
    if state != "Ready":
        said = f'Coordinator {index} is "{state}", not ready. It loads when a client connects. Look again in a minute.'
        return care(about, said)
    if most and open_now >= _NEAR * most:
        said = (
            f"Coordinator {index} has {open_now} transactions open, and {_MOST_OPEN}={most} is its limit. At the limit "
            "it gives no answer to a client that opens another. Raise the limit in broker.conf, or set it to 0. The "
            "transactions that dead drivers have left open are in eos sink list."
        )
        return care(about, said)
    return None


def auto_creation(settings: Settings, override: Mapping[str, object] | NetworkError | None) -> Check:
    """Say whether the broker makes the control topic of a new sink by itself. Args: settings; the namespace's own."""
    about = "creation of topics"
    make = "pulsar-admin topics create persistent://TENANT/NAMESPACE/__eos-NAME"
    if isinstance(override, NetworkError):
        return unknown(about, f"Whether the namespace lets topics be created is not told: {override}")
    if override is not None:
        allowed, kind = bool(override.get("allowAutoTopicCreation")), str(override.get("topicType"))
    elif isinstance(settings, NetworkError):
        return unknown(about, f"Whether the broker creates topics is not told: {settings}")
    else:
        allowed = settings.get("allowAutoTopicCreation") == "true"
        kind = settings.get("allowAutoTopicCreationType", "")
    if not allowed:
        return good(about, f"The broker creates no topics by itself. Before a new sink's first start, {make}")
    if kind == "partitioned":
        said = (
            "The broker makes new topics partitioned, and a sink refuses a control topic with partitions. Before a new "
            f"sink's first start, {make}"
        )
        return care(about, said)
    return good(about, "The broker makes a new sink's control topic by itself.")


def _settings(admin: Admin) -> Settings:
    try:
        return admin.settings()
    except NetworkError as error:
        return error


def _override(admin: Admin, namespace: str) -> Mapping[str, object] | NetworkError | None:
    try:
        return admin.auto_creation(namespace)
    except NetworkError as error:
        return error
