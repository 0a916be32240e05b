"""Do several things with the broker at once, so that their round trips overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from typing import TypeVar

from eos.errors import EosError, Refused
from eos.pulsar.net.client import Client
from eos.pulsar.net.in_flight import InFlight
from eos.pulsar.net.producer import Producer
from eos.pulsar.protocol.producer import ProducerIdentity
from eos.pulsar.protocol.schemas import Declared

Item = TypeVar("Item")

AT_ONCE = 16
"""Round trips under way at a time."""


def open_producers(
    client: Client,
    topics: Sequence[str],
    budget: InFlight,
    schema: Declared | None = None,
    introduction: ProducerIdentity | None = None,
) -> list[Producer]:
    """Open a producer on each physical topic; all of them, or none.

    Without a schema they write bytes. A topic that demands one is shown the newest that it has, and since nobody says
    that the bytes were written by that version, no frame carries it.

    Raises what `Client.producer` raises, after giving up those that did open.
    """
    opened: list[Producer] = []
    open_with = partial(client.producer, budget=budget, introduction=introduction)

    def open_one(topic: str) -> None:
        try:
            opened.append(open_with(topic, schema=schema))
        except Refused as refused:
            demanded = client.schema(topic) if schema is None and refused.code == "IncompatibleSchema" else None
            if demanded is None:
                raise
            opened.append(open_with(topic, schema=demanded.declared, stamped=False))

    try:
        _each(open_one, topics)
    except BaseException:
        for producer in opened:
            producer.abandon()
        raise
    return opened


def partition_counts(client: Client, topics: Sequence[str]) -> dict[str, int]:
    """Return how many partitions each topic has, 0 for one without.

    Raises what `Client.partitions` raises, once each question is answered.
    """
    counts: dict[str, int] = {}

    def ask(topic: str) -> None:
        counts[topic] = client.partitions(topic)

    _each(ask, topics)
    return counts


def known_partition_counts(client: Client, topics: Sequence[str]) -> dict[str, int]:
    """Return the same for those topics that exist and whose brokers answer. Raises nothing."""
    counts: dict[str, int] = {}

    def ask(topic: str) -> None:
        with suppress(EosError):
            counts[topic] = client.partitions(topic)

    _each(ask, topics)
    return counts


def close_producers(producers: Sequence[Producer]) -> None:
    """Close each producer and wait until the broker has confirmed every one.

    Raises what `Producer.close` raises.
    """
    _each(Producer.close, producers)


def give_up_producers(producers: Sequence[Producer], until: float) -> list[Producer]:
    """Close each producer where that can be done until then, an instant of `time.monotonic`; abandon the others.

    Raises nothing. Returns the others: what they have sent may still be on its way.
    """
    others: list[Producer] = []

    def give_up(producer: Producer) -> None:
        try:
            producer.close(until)
        except EosError:
            producer.abandon()
            others.append(producer)

    try:
        _each(give_up, producers)
    except RuntimeError:  # the system has no thread left, or Python is ending
        for producer in producers:
            producer.abandon()
        return list(producers)
    return others


def _each(work: Callable[[Item], None], items: Sequence[Item]) -> None:
    """Do the work for each item, side by side; raise the first failure once all have ended."""
    if len(items) <= 1:
        for item in items:
            work(item)
        return
    with ThreadPoolExecutor(min(AT_ONCE, len(items)), thread_name_prefix="eos") as pool:
        done, _ = wait([pool.submit(work, item) for item in items])
    for future in done:
        future.result()
