"""A real Pulsar for your own tests: pytest finds these fixtures by itself (its entry point `pytest11`).

    def test_my_job(eos_pulsar, eos_topic, eos_rows):
        topic = eos_topic("out", partitions=2)
        run_my_job(eos_pulsar.service_url, topic)
        assert [row.value for row in eos_rows(topic)] == [b"…"]

The Pulsar is one of `eos local`, with transactions on. It needs Java, and fetches its jars the first time. With
`--eos-container IMAGE` it is a container of that image (extra `containers`). With `--eos-service-url` and
`--eos-admin-url` the fixtures take one that runs already, and refuse one without transactions. With pytest-xdist each
worker has a Pulsar of its own, unless these two options name one.

Nothing of `eos` is loaded before a fixture is used.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from eos.inspect.rows import TopicRow

_SERVICE_URL, _ADMIN_URL, _CONTAINER = "--eos-service-url", "--eos-admin-url", "--eos-container"


@dataclass(frozen=True, slots=True)
class RunningPulsar:
    """The Pulsar of a test session.

    Attributes:
        service_url: what clients connect to, pulsar://host:port.
        admin_url: its admin API, http://host:port.
    """

    service_url: str
    admin_url: str


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the addresses of a Pulsar that runs already, or the image of one to start."""
    group = parser.getgroup("eos", "a Pulsar for tests (spark-pulsar-eos)")
    group.addoption(_SERVICE_URL, metavar="URL", help="use this Pulsar, pulsar://host:6650, and start none")
    group.addoption(_ADMIN_URL, metavar="URL", help="its admin API, http://host:8080")
    group.addoption(_CONTAINER, metavar="IMAGE", help="start a container of this image, apachepulsar/pulsar:4.2.4")


@pytest.fixture(scope="session")
def eos_pulsar(request: pytest.FixtureRequest) -> Iterator[RunningPulsar]:
    """Start a Pulsar for the session, whose data is gone at the end, or take the one that is named."""
    service_url, admin_url, image = map(request.config.getoption, (_SERVICE_URL, _ADMIN_URL, _CONTAINER))
    if (service_url is None) != (admin_url is None):
        raise pytest.UsageError(f"{_SERVICE_URL} and {_ADMIN_URL} belong together. Give both, or neither.")
    if service_url is not None and image is not None:
        raise pytest.UsageError(f"{_CONTAINER} starts a Pulsar, and {_SERVICE_URL} names one. Give one of the two.")
    if image is not None:
        with _in_container(image) as running:
            yield running
        return
    if service_url is not None:
        _require_transactions(service_url, admin_url)
        yield RunningPulsar(service_url, admin_url)
        return
    from eos.local import LocalPulsar

    reporter = request.config.pluginmanager.getplugin("terminalreporter")  # none in a worker of pytest-xdist
    tell = (lambda line: None) if reporter is None else reporter.write_line
    with LocalPulsar(tell=tell) as started:
        yield RunningPulsar(started.service_url, started.admin_url)


@contextmanager
def _in_container(image: str) -> Iterator[RunningPulsar]:
    """Start a container. End the session, in words, where that fails: each test would fail otherwise."""
    with ExitStack() as stack:
        try:
            from docker.errors import DockerException

            from eos.local.container import PulsarContainer
        except ImportError as error:
            pytest.exit(f"{_CONTAINER}: {error}", pytest.ExitCode.USAGE_ERROR)
        try:
            container = stack.enter_context(PulsarContainer(image))
        except (DockerException, RuntimeError, TimeoutError) as error:  # RuntimeError: what testcontainers raises
            pytest.exit(f"{_CONTAINER}: no container of {image} could be started: {error}", pytest.ExitCode.USAGE_ERROR)
        yield RunningPulsar(container.get_service_url(), container.get_admin_url())


def _require_transactions(service_url: str, admin_url: str) -> None:
    """End the session, in one sentence, where a Pulsar is not what tests need: each of them would fail otherwise."""
    from eos.config import Cluster
    from eos.errors import InvalidInput, NetworkError
    from eos.pulsar.net.admin import Admin
    from eos.pulsar.net.client import Client

    try:
        with Client(Cluster(service_url)) as client:
            client.coordinators()
    except (InvalidInput, NetworkError) as error:
        pytest.exit(f"{_SERVICE_URL} names no Pulsar for these tests: {error}", pytest.ExitCode.USAGE_ERROR)
    try:
        with Admin(admin_url) as admin:
            admin.version()
    except (InvalidInput, NetworkError) as error:
        pytest.exit(f"{_ADMIN_URL} names no admin API: {error}", pytest.ExitCode.USAGE_ERROR)


@pytest.fixture
def eos_topic(eos_pulsar: RunningPulsar) -> Callable[..., str]:
    """Make topics that no other test has: `eos_topic("out", partitions=2)` returns the full name of a new one."""
    from eos.pulsar.net.admin import Admin

    def make(name: str = "topic", partitions: int = 0) -> str:
        topic = f"persistent://public/default/{name}-{uuid.uuid4().hex[:10]}"
        with Admin(eos_pulsar.admin_url) as admin:
            admin.create(topic, partitions)
        return topic

    return make


@pytest.fixture
def eos_rows(eos_pulsar: RunningPulsar) -> Callable[[str], list[TopicRow]]:
    """Read topics: `eos_rows(topic)` returns the rows that are committed now, partition by partition.

    It reads afresh each time, to the last row that any reader can get, and leaves no subscription.
    """
    from eos.config import Cluster
    from eos.inspect.rows import TopicRows

    def read(topic: str) -> list[TopicRow]:
        return list(TopicRows(Cluster(eos_pulsar.service_url), topic, "earliest", pytest.fail).stored())

    return read
