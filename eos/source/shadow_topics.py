"""Shadow topics, from which a read takes no message of a transaction.

A shadow topic has the ledgers of another topic, its source, so that other brokers serve its readers. It does not have
the source's transaction buffer. So a broker delivers the entries of aborted and of open transactions from it as if they
were committed (measured on 4.2.4, with the official client too). Only the topic's properties tell that it is a shadow
topic, and only the admin API shows them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from eos.errors import InvalidInput, NetworkError, RefusedForGood, TopicMissing
from eos.pulsar.protocol.topics import whole_topic
from eos.pulsar.wire.entry import Entry
from eos.source.brokers import LOOKS_AT_ONCE, admin_api
from eos.source.optional_questions import REST_S
from eos.source.options import SourceOptions
from eos.source.ranges import Range

if TYPE_CHECKING:
    from eos.pulsar.net.admin import Admin

log = logging.getLogger("eos.source")


class ShadowTopics:
    """Knows which topics of one query are shadow topics. On the driver, which asks until it is told."""

    def __init__(self, options: SourceOptions, clock: Callable[[], float] = time.monotonic) -> None:
        """Args: the checked options; tells the time in seconds."""
        self._options = options
        self._clock = clock
        self._known: dict[str, str | None] = {}
        self._asks_again_at: dict[str, float] = {}

    def sources(self, parts: Sequence[Range]) -> list[str | None]:
        """Return for each range the topic that its topic is a shadow of; None where it is not one, or nobody can tell.

        Where the admin API does not tell, a warning says so once, and the next batch asks again, after a rest.
        """
        if self._options.admin_url is None:
            return [None] * len(parts)
        topics, now = [whole_topic(part.topic) for part in parts], self._clock()
        resting = {topic for topic, until in self._asks_again_at.items() if now < until}
        if new := sorted(set(topics) - self._known.keys() - resting):
            with (
                admin_api(self._options) as admin,
                ThreadPoolExecutor(LOOKS_AT_ONCE, thread_name_prefix="eos-source") as pool,
            ):
                list(pool.map(partial(self._ask, admin), new))
        return [self._known.get(topic) for topic in topics]

    def _ask(self, admin: Admin, topic: str) -> None:
        try:
            self._known[topic] = admin.shadow_source(topic)
        except TopicMissing:  # the task that reads it tells, and it may be made again, as another kind
            return
        except (InvalidInput, NetworkError) as error:
            if topic not in self._asks_again_at:
                log.warning(
                    "Whether %s is a shadow topic is not known: %s. Of a shadow topic brokers deliver the messages of "
                    "aborted and of open transactions too.",
                    *(topic, error),
                )
            self._asks_again_at[topic] = self._clock() + REST_S


def refuse_transactions(topic: str, source: str, entries: Iterable[Entry]) -> None:
    """Refuse entries of transactions that come from a shadow topic. Args: it; its source; the entries.

    Raises RefusedForGood.
    """
    first = next((one for one in entries if one.transactional), None)
    if first is not None:
        raise RefusedForGood(
            f"read {topic}",
            "NotAllowedError",
            f"it is a shadow topic of {source}",
            f"Entry {first.id} is of a transaction, and brokers deliver entries of aborted and of open transactions "
            f"from a shadow topic as if they were committed. Read {source}",
        )
