"""Has a topic remember that a transaction is aborted, though frames of it may come after the abort.

A topic that never held a transaction forgets aborts: the broker answers END_TXN(abort) with success and notes nothing
(TopicTransactionBuffer.abortTxn, which asks only whether the buffer is ready). The buffer becomes ready with the first
frame, but only once a snapshot is stored, some 50 ms later, and longer in a new namespace. A frame that comes to such a
topic after the abort, or waits for that snapshot, opens the transaction again there, and readers wait behind the frame
for ever: no coordinator knows the transaction any longer, and nothing ends it. A later batch of the sink on that topic
would free the readers; after the last try of a query or a job there is none.

So before the abort a record is stored in the transaction on each physical topic where frames may be on their way. Its
receipt proves that the buffer is ready. From then on the topic notes the abort, and filters all later frames, from any
sender. The record is aborted with the transaction: no reader is ever shown it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Final

from eos.errors import NetworkError, Refused, TopicMissing, Unanswered
from eos.pulsar.net.client import Client
from eos.pulsar.net.in_flight import InFlight
from eos.pulsar.net.producer_group import AT_ONCE, known_partition_counts, open_producers
from eos.pulsar.protocol import topics as names
from eos.pulsar.protocol.producer import ProducerIdentity
from eos.pulsar.wire.txn import TxnId

log = logging.getLogger("eos.delivery.abort_record")

PATIENCE_S: Final = 5.0
"""Seconds that one part of the giving up of a try may take: a query that is stopped waits for it."""

_TAKES_NOTHING: Final = ("TopicTerminatedError", "TopicNotFound")
"""Codes of a topic that takes no message from anybody."""


def seal(client: Client, txn: TxnId, topics: Collection[str], introduction: ProducerIdentity | None) -> set[str]:
    """Store a record of an open transaction on each physical topic: the abort must follow.

    Args: the cluster, the transaction, the topics, and the writer's introduction to brokers.

    Returns the topics where a later frame may still hold readers up: they could not be reached in time, or the
    transaction has ended. A topic that takes no messages at all, as one that was terminated or deleted, is none of
    them: a transaction that has it could not end. One that this role may not write to now is, since frames that were
    sent before may still come. Raises nothing.
    """
    until = time.monotonic() + PATIENCE_S

    def seal_one(topic: str) -> None:
        (producer,) = open_producers(client, [topic], InFlight(), introduction=introduction)
        try:
            client.coordinator(txn.coordinator).add_partitions(txn, [topic], until)
            producer.send_record(b"", txn, local=True, until=until)
        finally:
            producer.abandon()

    pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="eos-seal")
    sealing = {pool.submit(seal_one, topic): topic for topic in sorted(topics)}
    wait(sealing, PATIENCE_S)
    pool.shutdown(wait=False, cancel_futures=True)
    unsealed: set[str] = set()
    for one, topic in sealing.items():
        why = one.exception() if one.done() and not one.cancelled() else TimeoutError("no answer in time")
        if why is not None:
            log.info("%s does not remember the abort of transaction %s: %s", topic, txn, why)
            gone = isinstance(why, Refused) and why.code in _TAKES_NOTHING
            if not gone and not isinstance(why, TopicMissing):
                unsealed.add(topic)
    return unsealed


def added_partitions(ask: Callable[[TxnId], Collection[str] | None], txn: TxnId, until: float) -> frozenset[str]:
    """Return the physical topics that a transaction has, as the admin API tells them. Changes nothing anywhere.

    Args: how to ask, where None means that the transaction has ended; the transaction; until when to wait for the
        answer, by `time.monotonic`.

    Raises NetworkError whatever goes wrong, and nothing else: an abort follows, and is never prevented by a question.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="eos-ask")
    asked = pool.submit(ask, txn)  # a thread of its own: the time-outs of HTTP are for each part of an answer
    pool.shutdown(wait=False)
    try:
        added = asked.result(max(0.0, until - time.monotonic()))
    except NetworkError:
        raise
    except TimeoutError as late:
        raise Unanswered(f"the admin API did not tell the topics of transaction {txn} in time") from late
    except Exception as why:
        raise Unanswered(f"the admin API did not tell the topics of transaction {txn} ({why})") from why
    if added is None:
        raise Unanswered(f"transaction {txn} has ended, and its topics are forgotten")
    return frozenset(added)


def physical_topics(client: Client, topics: Collection[str], partitions: Mapping[str, int]) -> set[str]:
    """Return the physical topics of topics, without those that can't be found out about in some seconds.

    Args: the cluster; the topics; numbers of partitions that are known.
    """
    until = time.monotonic() + PATIENCE_S
    counts = {topic: partitions[topic] for topic in topics if topic in partitions}
    rest = [topic for topic in topics if topic not in counts]
    while rest and time.monotonic() < until:
        some, rest = rest[:AT_ONCE], rest[AT_ONCE:]
        counts |= known_partition_counts(client, some)
    return {name for topic, count in counts.items() for name in names.physical_topics(topic, count)}
