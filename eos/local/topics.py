"""Topics of a local Pulsar: made by name, and read whole, so that a trial ends with rows on the screen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import quote

import httpx

from eos.config import Cluster, Credentials
from eos.local.checks import LocalError
from eos.pulsar.net.admin import headers
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.messages import Message
from eos.pulsar.protocol.topics import partition_name
from eos.pulsar.wire.message_id import EARLIEST

_ANSWER_S = 30.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a Pulsar of `eos local` is, and how to be let in.

    Attributes:
        service_url, admin_url: pulsar://localhost:PORT and http://localhost:PORT.
        credentials: those of its administrator.
    """

    service_url: str
    admin_url: str
    credentials: Credentials


@dataclass(frozen=True, slots=True)
class Row:
    """A message, and the number of its partition; None on a topic without partitions."""

    partition: int | None
    message: Message


def create(place: Place, topic: str, partitions: int) -> bool:
    """Create a topic; False when it was there already, with as many partitions.

    Args:
        place: where.
        topic: "persistent://tenant/namespace/name".
        partitions: how many; 0: a topic without partitions.

    Raises:
        LocalError: it is there with another number of partitions, or Pulsar refuses it, as it does where the namespace
            is missing.
    """
    path = topic.removeprefix("persistent://")
    tenant, namespace, name = path.split("/", 2)
    url = f"{place.admin_url}/admin/v2/persistent/{tenant}/{namespace}/{quote(name, safe='')}"
    where, body = (f"{url}/partitions", partitions) if partitions else (url, None)
    try:
        answer = httpx.put(
            where, json=body, headers=headers(place.credentials), timeout=_ANSWER_S, follow_redirects=True
        )
    except httpx.TransportError as error:
        raise LocalError(f"{place.admin_url} does not answer ({error}). See: eos local status") from error
    if answer.status_code == HTTPStatus.CONFLICT:
        with _client(place) as client:
            found = client.partitions(topic)
        if found != partitions:
            raise LocalError(f"{topic} is there already, with {found} partitions, not {partitions}. Take another name")
        return False
    if not answer.is_success:
        raise LocalError(f"Pulsar did not create {topic}: {answer.status_code} {answer.text.strip()}")
    return True


def rows(place: Place, topic: str, silence_s: float = 10.0) -> Iterator[Row]:
    """Give all rows that can be read when this is called, partition by partition. Nothing is acknowledged.

    Args:
        place: where.
        topic: "persistent://tenant/namespace/name".
        silence_s: how long the broker may say nothing before the end is reached.

    Raises:
        TopicMissing: there is no such topic.
        LocalError: the broker said nothing for `silence_s`.
        NetworkError: the broker can't be reached.
    """
    with _client(place) as client:
        count = client.partitions(topic)
        for partition in range(count) if count else (None,):
            yield from _rows_of(client, topic, partition, silence_s)


def _rows_of(client: Client, topic: str, partition: int | None, silence_s: float) -> Iterator[Row]:
    name = topic if partition is None else partition_name(topic, partition)
    reader = client.reader(name)
    try:
        last, seen = reader.last_message_id(), EARLIEST
        while seen < last:
            message = reader.read(silence_s)
            if message is None:
                raise LocalError(f"{name}: the broker sent nothing for {silence_s:g} s, before the end of the topic")
            seen = message.message_id
            yield Row(partition, message)
    finally:
        reader.close()


def _client(place: Place) -> Client:
    return Client(Cluster(place.service_url, place.credentials))
