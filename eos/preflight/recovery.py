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

from typing import Final, NamedTuple

from eos.errors import NetworkError
from eos.pulsar.net.admin import Admin

SETTING: Final = "numTransactionReplayThreadPoolSize"
"""Of broker.conf; its default is the number of the machine's cores."""

_LAST_SEEN: Final = (4, 2, 4)
"""The newest version that was looked at."""


class Danger(NamedTuple):
    """What is to be told of a broker. `certain` is False where the broker does not say what it is set to."""

    text: str
    certain: bool


def danger(admin: Admin) -> Danger | None:
    """Say what is to be changed on the broker that answers; None where nothing is, or of a version newer than 4.2.4."""
    try:
        version, threads = admin.version(), admin.setting(SETTING)
    except NetworkError as error:
        return Danger(
            "Whether the broker may show readers rows of aborted transactions after a restart can't be known, since it "
            f"does not tell its settings: {error}. Ask as a superuser, or look for {SETTING}=1 in its broker.conf.",
            certain=False,
        )
    if threads is None or not threads.isdigit() or int(threads) < 2 or _numbers(version) > _LAST_SEEN:
        return None
    return Danger(
        f"The broker recovers topics in {threads} threads. After a restart or a move, Pulsar {version} may then take a "
        "topic with transactions for a new one, and readers get rows of transactions that were open or aborted. Set "
        f"{SETTING}=1 in broker.conf of each broker, and restart them.",
        certain=True,
    )


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers at the front of a version; "4.2.4-SNAPSHOT" counts as 4.2.4."""
    parts = version.strip().partition("-")[0].split(".")
    return tuple(int(part) for part in parts if part.isdigit())
