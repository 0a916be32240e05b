"""Fixtures that every package's tests share: a real Pulsar, and topics on it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, settings

from eos.local import LocalPulsar, checks
from eos.local.jars import PULSAR_VERSION
from eos.spark.capabilities import Fact, installed
from tests.planner import run_test_while_late
from tests.proxy import PulsarProxy
from tests.regions import Regions, two_regions

# A busy machine makes any example slow; how long one takes is not what is tested.
settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("check", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=15)
settings.register_profile("ci", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=40)
settings.register_profile("deep", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=500)
settings.load_profile("no clock")


def pytest_configure() -> None:
    """Let workers that test side by side pick ports from parts of their own.

    Seconds pass between the picking of a port and a broker that listens on it: another worker could pick the same.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is not None:
        number, workers = int(worker.removeprefix("gw")), int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        checks._PICKED_FROM = checks._PICKED_FROM[number::workers]


_EXAMPLES = {"models", "property", "fuzz"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test that takes the Spark session, which `make check` must not need, and put the files into order.

    What an older Spark lacks for a test is the reason for which it is passed over there. The newest lacks nothing.

    Slow files come before the other integration tests: a worker that took one last would work alone for minutes.

    Tests that try many examples of what unit tests try, too, count for no coverage: it doubled their time.
    """
    for item in items:
        if _folder(item) in _EXAMPLES:
            item.add_marker(pytest.mark.no_cover)
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.jvm)
        for need in item.iter_markers("needs"):
            fact: Fact = need.args[0]
            if not fact.is_here():
                item.add_marker(pytest.mark.skip(reason=f"Spark {installed()} lacks {fact.what}"))
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (_folder(item) == "integration", item.path not in slow))


def _folder(item: pytest.Item) -> str:
    """Return the folder of tests/ that a test lies in, whatever the folders above the project are called."""
    return item.path.relative_to(Path(__file__).parent).parts[0]


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test with Spark again that failed since a Python process of Spark's came too late."""
    if not isinstance(item, pytest.Function) or item.get_closest_marker("jvm") is None:
        return None
    run_test_while_late(item, nextitem)
    return True


START_S = 400.0
"""Seconds that a broker may take to start: some five where it is alone, and many times that on a busy machine."""


@dataclass(frozen=True)
class RunningPulsar:
    """A broker that the caller of the tests has started, named by EOS_TEST_SERVICE_URL and EOS_TEST_ADMIN_URL."""

    service_url: str
    admin_url: str


MakeTopic = Callable[..., str]

VERSION = os.environ.get("EOS_TEST_PULSAR_VERSION", PULSAR_VERSION)
"""Of the Pulsar that the fixtures start: one of `eos.local.jars.VERSIONS`."""


@pytest.fixture(scope="session")
def pulsar() -> Iterator[LocalPulsar | RunningPulsar]:
    """One broker for the whole session. Tests that kill or configure a broker take `start_pulsar`."""
    service_url = os.environ.get("EOS_TEST_SERVICE_URL")
    if service_url:
        yield RunningPulsar(service_url, os.environ["EOS_TEST_ADMIN_URL"])
        return
    with LocalPulsar(start_timeout_s=START_S, version=VERSION) as started:
        yield started


@pytest.fixture(scope="session")
def proxy(pulsar: LocalPulsar | RunningPulsar) -> Iterator[PulsarProxy]:
    """A Pulsar Proxy before that broker, which has the same two addresses."""
    with PulsarProxy(pulsar.service_url, pulsar.admin_url) as started:
        yield started


@pytest.fixture(scope="module")
def regions() -> Iterator[Regions]:
    """Two brokers, each a cluster of its own, with a namespace that each replicates to the other."""
    with two_regions(START_S, VERSION) as started:
        yield started


@pytest.fixture
def start_pulsar() -> Iterator[Callable[..., LocalPulsar]]:
    """Start a broker of the test's own on free ports: `start_pulsar(settings={...})`. Stopped at the end."""
    started: list[LocalPulsar] = []

    def start(**options: Any) -> LocalPulsar:
        broker = LocalPulsar(**{"start_timeout_s": START_S, "version": VERSION, **options})
        started.append(broker)
        broker.start()
        return broker

    yield start
    for broker in started:
        broker.stop()


@pytest.fixture
def make_topic(pulsar: LocalPulsar | RunningPulsar) -> MakeTopic:
    """Create a topic with a name of its own: `make_topic("rows", partitions=3)`; 0 partitions: not partitioned."""

    def make(stem: str = "t", partitions: int = 0) -> str:
        return create_topic(pulsar.admin_url, stem, partitions)

    return make


def create_topic(admin_url: str, stem: str, partitions: int = 0, namespace: str = "public/default") -> str:
    """Create persistent://NAMESPACE/STEM-<random> through the admin API and return its name."""
    name = f"{stem}-{uuid.uuid4().hex[:10]}"
    path = f"{admin_url}/admin/v2/persistent/{namespace}/{name}"
    where, body = (f"{path}/partitions", partitions) if partitions else (path, None)
    httpx.put(where, json=body, timeout=30, follow_redirects=True).raise_for_status()
    return f"persistent://{namespace}/{name}"
