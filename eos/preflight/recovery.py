"""Whether a broker can recover topics, and whether it does so in a way that shows readers what was never committed.

When a broker loads a topic it reads from the namespace's `__transaction_buffer_snapshot` how far the topic's
transactions had come, and then the topic from there. All topics of a namespace share one reader of it and one map of
what was read (`TableView.readLatest` of Pulsar 4.2.4 and 5.0.0-M1), and several threads use both without a lock. A
thread that looks while another decodes the last entry finds no snapshot, and takes the topic for one that never had a
transaction: the rows of open and aborted transactions become readable, and an abort that comes later is answered with
success and changes nothing. Two threads that wait for the same last entry hold their topics up for 30 s, which is how
often it was seen. With one thread neither can happen. docs/why/one-recovery-thread.md has the measurements.

The broker's reader is a reader like any other, and its subscription is Exclusive. A namespace without that type refuses
it, and so does one without a policy where the broker's own setting lacks the type. The broker tries for 30 s, closes
the topic, and begins again as the next client comes, for as long as the policy stands. That holds for topics that never
had a transaction, too. It does not hold for a policy of the topic itself.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from eos.errors import InvalidInput, NetworkError
from eos.pulsar.net.admin import Admin
from eos.version import numbers

SETTING: Final = "numTransactionReplayThreadPoolSize"
"""Of broker.conf; its default is the number of the machine's cores."""

RACE_SEEN: Final = ("4.0.0", "4.2.4", "5.0.0-M1")
"""The versions of Pulsar whose class `TableView` was seen to have the race: by tests/contract/SnapshotRace.java, with
the broker's own class."""

_TYPES: Final = "subscriptionTypesEnabled"
"""Of broker.conf, and dynamic; its default is all types."""

_EXCLUSIVE: Final = "Exclusive"
"""The type of a reader's subscription."""

_RACE_UP_TO: Final = (4, 2, 4)
"""Releases before this one are taken for racing too: the class was there without a lock before."""


class Danger(NamedTuple):
    """The report about a broker. `certain` is False where the broker does not say what it is set to."""

    text: str
    certain: bool


def danger(admin: Admin) -> Danger | None:
    """Say what is to be changed on the broker that answers, or why that can't be known; None where nothing is.

    One thread has nobody to race with, in every version. Of more threads it is known for versions up to 4.2.4, and for
    those of `RACE_SEEN`, that they race. Of no other version it is known that they don't.
    """
    try:
        version, told = admin.version(), admin.setting(SETTING)
    except NetworkError as error:
        return _not_known(
            f"since it does not tell its settings: {error}. Ask as a superuser, or look for {SETTING}=1 in its "
            "broker.conf"
        )
    threads = int(told) if told is not None and told.isdecimal() else 0
    if threads == 1:
        return None
    if threads == 0:
        has = f"has no setting {SETTING}" if told is None else f'has {SETTING}="{told}"'
        return _not_known(
            f"since Pulsar {version} {has}. Set {SETTING}=1 in broker.conf of each broker, and restart them"
        )
    if version not in RACE_SEEN and numbers(version) > _RACE_UP_TO:
        return _not_known(
            f"since it recovers topics in {threads} threads, and no test looked at Pulsar {version}. "
            f"{', '.join(RACE_SEEN)} do so. Set {SETTING}=1 in broker.conf of each broker, and restart them"
        )
    return Danger(
        f"The broker recovers topics in {threads} threads. After a restart or a move, Pulsar {version} may then take a "
        "topic with transactions for a new one, and readers get rows of transactions that were open or aborted. Set "
        f"{SETTING}=1 in broker.conf of each broker, and restart them.",
        certain=True,
    )


def unreadable_snapshots(admin: Admin, namespace: str) -> str | None:
    """Say which policy keeps brokers from recovering the topics of a "tenant/namespace"; None where none does.

    A namespace without a policy has its broker's setting. Raises NetworkError where that can't be known.
    """
    own = admin.subscription_types(namespace)
    types = own or admin.broker_subscription_types()
    if not types or _EXCLUSIVE in types:
        return None
    named, allowed = " or ".join(types), ",".join((_EXCLUSIVE, *types))
    if own:
        whose = f"{namespace} allows only subscriptions of the type {named}"
        command = f"pulsar-admin namespaces set-subscription-types-enabled --types {allowed} {namespace}"
    else:
        whose = f"The brokers allow only subscriptions of the type {named} ({_TYPES}), and {namespace} sets no others"
        command = f"pulsar-admin brokers update-dynamic-config --config {_TYPES} --value {allowed}"
    return (
        f"{whose}. To recover a topic that it loads, a broker reads {namespace}/__transaction_buffer_snapshot by an "
        "Exclusive subscription, and is refused. So readers of the topic get nothing, whatever their type, and topics "
        f"of other namespaces may wait for that broker for 30 s each time. Allow Exclusive with {command}. Brokers "
        "then recover the topics by themselves"
    )


def check_recovery(admin: Admin, namespace: str) -> None:
    """Refuse a "tenant/namespace" whose topics brokers can't recover, before rows are written to it.

    No transaction with such a topic ends, so each batch would fail after its whole patience. Topics that a broker has
    had loaded since before the policy still work, until it loads them again. What a role may not ask for is not known,
    and refuses nothing.

    Raises InvalidInput, which names the policy and the command that changes it.
    """
    try:
        refused = unreadable_snapshots(admin, namespace)
    except NetworkError:
        return
    if refused:
        raise InvalidInput(f"The sink can't write to {namespace}. {refused}")


def _not_known(why: str) -> Danger:
    said = f"Whether the broker may show readers rows of aborted transactions after a restart can't be known, {why}."
    return Danger(said, certain=False)
