"""Whether a broker recovers topics in a way that shows readers what was never committed.

When a broker loads a topic it reads from the namespace's `__transaction_buffer_snapshot` how far the topic's
transactions had come, and then the topic from there. All topics of a namespace share one reader of it and one map of
what was read (`TableView.readLatest` of Pulsar 4.2.4), and several threads use both without a lock. A thread that looks
while another decodes the last entry finds no snapshot, and takes the topic for one that never had a transaction: the
rows of open and aborted transactions become readable, and an abort that comes later is answered with success and
changes nothing. Two threads that wait for the same last entry hold their topics up for 30 s, which is how often it
was seen. With one thread neither can happen. docs/why/one-recovery-thread.md has the measurements.
"""

from __future__ import annotations

from typing import Final

from eos.errors import NetworkError
from eos.pulsar.net.admin import Admin

SETTING: Final = "numTransactionReplayThreadPoolSize"
"""Of broker.conf; its default is the number of the machine's cores."""

_LAST_SEEN: Final = (4, 2, 4)
"""The newest version that was looked at."""


def danger(admin: Admin) -> str | None:
    """Say what is to be changed on the broker that answers; None where nothing is, or where that can't be known.

    It can't be known of a version that was never looked at, and from a broker that does not tell its settings.
    """
    try:
        version, threads = admin.version(), admin.setting(SETTING)
    except NetworkError:
        return None
    if threads is None or not threads.isdigit() or int(threads) < 2 or _numbers(version) > _LAST_SEEN:
        return None
    return (
        f"The broker recovers topics in {threads} threads. After a restart or a move, Pulsar {version} may then take a "
        "topic with transactions for a new one, and readers get rows of transactions that were open or aborted. Set "
        f"{SETTING}=1 in broker.conf of each broker, and restart them."
    )


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers at the front of a version; "4.2.4-SNAPSHOT" counts as 4.2.4."""
    parts = version.strip().partition("-")[0].split(".")
    return tuple(int(part) for part in parts if part.isdigit())
