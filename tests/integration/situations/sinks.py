"""Four sinks on a real Pulsar, each in a namespace of its own, and each brought into its situation for good."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest

from eos.commit.control_topic import HOLD
from eos.errors import Fenced, NotCommitted
from eos.pulsar.net.admin import Admin
from eos.pulsar.wire.message_id import MessageId
from tests.contract.raw import RawProducer
from tests.integration.sparkless import Sink
from tests.waiting import until

NAME, TOPIC = "orders", "orders"
QUERY, RUN, LATER_RUN = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "abc")
"""As Spark writes ids; the same ones in each run of the tests, so that the pages are."""


@contextmanager
def healthy(pulsar: Any, namespace: str) -> Iterator[None]:
    """Three batches are committed, and the driver is there."""
    with _sink(pulsar, namespace) as sink:
        for batch_id in range(3):
            sink.write(batch_id)
        yield
        sink.write(3)  # no command has thrown the driver out


@contextmanager
def in_doubt(pulsar: Any, namespace: str) -> Iterator[None]:
    """The driver died in the middle of its fourth batch."""
    with _sink(pulsar, namespace) as sink:
        for batch_id in range(3):
            sink.write(batch_id)
        sink.die_in_the_middle(3)
    log = f"persistent://{namespace}/__eos-{NAME}"
    with Admin(pulsar.admin_url) as admin:
        until(lambda: not admin.connected(log, HOLD), "the broker thinks it lives")
    yield


@contextmanager
def fenced(pulsar: Any, namespace: str) -> Iterator[None]:
    """A second driver of the same query has taken the sink over, and both are there."""
    with _sink(pulsar, namespace) as first:
        for batch_id in range(2):
            first.write(batch_id)
        with _sink(pulsar, namespace, LATER_RUN, made=True) as second:
            second.write(2)
            with pytest.raises(Fenced):
                first.write(2)  # the broker closes the second one's producer, too, before it says no
            yield
            with pytest.raises(NotCommitted):
                second.write(3)  # it finds its producer closed, and a batch is tried again
            second.write(3)  # no command has thrown out the driver that owns the sink


@contextmanager
def frozen(pulsar: Any, namespace: str) -> Iterator[None]:
    """Another program has sent a frame into the third batch after its commit; the driver is there."""
    with _sink(pulsar, namespace) as sink:
        zombie = RawProducer(pulsar.service_url, sink.topic)
        for batch_id in range(2):
            sink.write(batch_id)
        txn = sink.write(2)
        zombie.send(b"late", txn, 1)
        assert isinstance(zombie.event(), MessageId), "the broker takes a late frame"
        with sink.client.producer(sink.topic) as producer:
            producer.send_record(b"behind it", None)
        yield
        zombie.connection.close()


SITUATIONS: dict[str, Callable[[Any, str], Any]] = {
    "healthy": healthy,
    "in-doubt": in_doubt,
    "fenced": fenced,
    "frozen": frozen,
}


@contextmanager
def _sink(pulsar: Any, namespace: str, run: str = RUN, *, made: bool = False) -> Iterator[Sink]:
    def topic(stem: str) -> str:
        if not made:
            _put(pulsar, f"namespaces/{namespace}")
            _put(pulsar, f"persistent/{namespace}/{TOPIC}")
        return f"persistent://{namespace}/{TOPIC}"

    sink = Sink(pulsar, topic, NAME, QUERY, run)
    with ExitStack() as stack:
        stack.callback(sink.client.close)
        yield sink


def _put(pulsar: Any, path: str) -> None:
    httpx.put(f"{pulsar.admin_url}/admin/v2/{path}", timeout=60, follow_redirects=True).raise_for_status()
