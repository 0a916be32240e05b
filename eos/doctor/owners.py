"""The owners of a namespace's sinks, and whether several drivers take a sink from each other.

An owner is connected to its control topic to write, and to the subscription that retains its records. The second counts
too: a fenced driver that tries once more makes the broker close the owner's producer, which the owner opens again only
for its next batch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from eos.commit.control_topic import DEFAULT_NAMESPACE, HOLD, abort_command, control_topic_in
from eos.doctor.check import Check, care, good, unknown
from eos.doctor.sinks import RECENT, SinkState, SinkStatus
from eos.errors import NetworkError
from eos.pulsar.net.admin import Admin

OWNER: Final = "owner of "
"""The subject of a check of this file: this, and a sink's name."""

_MANY: Final = 5
"""So many takeovers among the newest records are not ordinary restarts: a batch writes two records."""


def owners(admin: Admin, sinks: list[SinkState], namespace: str) -> Iterator[Check]:
    """Look who owns each sink of a "tenant/namespace"."""
    for one in sinks:
        about = f"{OWNER}{one.name}"
        if one.status is SinkStatus.UNREADABLE:
            yield care(about, f"Its log can't be read: {one.problem}")
            continue
        if one.problem is not None:
            yield unknown(about, f"{one.problem}.")
            continue
        try:
            connected = admin.connected(control_topic_in(namespace, one.name), HOLD)
        except NetworkError as error:
            yield unknown(about, f"The connections to its control topic are unknown: {error}")
            continue
        yield owner(about, one, connected, namespace)


def owner(about: str, one: SinkState, connected: tuple[str, ...], namespace: str = DEFAULT_NAMESPACE) -> Check:
    """Say who owns a sink. Args: what its log tells; who is connected to its control topic; where that is."""
    if one.takeovers >= _MANY:
        said = (
            f"{one.takeovers} of the last {RECENT} records of its log are takeovers. Its query is "
            "started again and again, or several drivers take the sink from one another. Look for a second driver of "
            f"query {one.query_id}, and stop one. If there is none, find out why the query ends."
        )
        return care(about, said)
    begun = one.unfinished
    if connected:
        former = ""
        if one.former_run_id is not None:
            former = (
                f" It took over from run {one.former_run_id}{_since(one)}. If a driver of that run still lives, it is "
                "fenced. Its next batch fails with Fenced, and at most makes the owner try a batch again. Stop that "
                "one, not this."
            )
        return good(about, f"Run {one.run_id} owns it, connected from {', '.join(connected)}.{former}")
    if begun is None:
        return good(about, "No driver is connected, and nothing is unfinished. It goes on when its query starts.")
    batch = f"batch {begun.batch_id}, transaction {begun.txn}"
    if one.open is None:
        said = (
            f"No driver is connected, and whether {batch} is still open, or committed, is not known. This role may not "
            "ask for transactions, or readers of the log wait, or the log has moved on each time that it was read."
        )
        return unknown(about, said)
    if one.open:
        said = (
            f"Its driver is gone and has left {batch} open. Readers wait. Start the query again, which ends it and "
            f"writes the batch again. Or free the readers with {abort_command(one.name, namespace)}"
        )
        return care(about, said)
    said = f"No driver is connected. The begun batch, {batch}, has ended without a commit. The query writes it again."
    return good(about, said)


def _since(one: SinkState) -> str:
    return "" if one.owned_ms is None else f", {max(0.0, time.time() - one.owned_ms / 1000):.0f} s ago"
