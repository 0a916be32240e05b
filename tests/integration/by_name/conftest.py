"""Shared parts of the tests of the writers by name: a broker without transactions, and the content of its topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pulsar as official
import pytest

from eos.local import LocalPulsar
from tests.clients import official_client
from tests.conftest import START_S, create_topic

MakeTopic = Callable[..., str]
ReadAll = Callable[[str], list[official.Message]]


@pytest.fixture(scope="session")
def plain() -> Iterator[LocalPulsar]:
    """A broker without transactions: the writers need none."""
    with LocalPulsar(start_timeout_s=START_S, settings={"transactionCoordinatorEnabled": "false"}) as started:
        yield started


@pytest.fixture
def make_plain(plain: LocalPulsar) -> MakeTopic:
    """Create a topic there: `make_plain("rows", partitions=2)`."""
    return lambda stem="t", partitions=0: create_topic(plain.admin_url, stem, partitions)


@pytest.fixture
def read_all(plain: LocalPulsar) -> Iterator[ReadAll]:
    """Return all messages of a topic, partition by partition, as the official client reads them."""
    with official_client(plain.service_url) as client:

        def read(topic: str) -> list[official.Message]:
            found = []
            for part in client.get_topic_partitions(topic):
                reader = client.create_reader(part, official.MessageId.earliest)
                while reader.has_message_available():
                    found.append(reader.read_next())
                reader.close()
            return found

        yield read
