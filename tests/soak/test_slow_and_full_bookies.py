"""Three bookies, one with a full disk or slow: their rows stay equal to the brokers', and the wait has a bound."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pyarrow as pa
import pytest

from eos.bookkeeper import Bookies, BookieUnavailable, LedgerMetadata, LedgerReader, by_id
from eos.history.reader import HistoryReader
from eos.local import LocalCluster, Member
from eos.local.member import ask_zookeeper
from statestore.drills.chaos.proxy import Proxy
from tests.contract.test_history import BEGINNING
from tests.soak.stored_topics import Written, described, planned, three_bookies, write_topics
from tests.waiting import until

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

TOPICS = 8
FULL = {"diskUsageThreshold": "0.00003", "diskUsageWarnThreshold": "0.00002", "diskUsageLwmThreshold": "0.00001"}
"""Any disk is fuller than this. The bookie serves what it has, and takes nothing new."""
LATE_S, TOO_LATE_S = 0.3, 4.0
"""How late packets arrive, both ways: an answer comes within the time-out of 3 s, and after it."""
WINDOW = 3
"""Requests that are under way at once while one ledger is read, as `LedgerReader` has it."""

Links = dict[str, Proxy]
"""By the name of a bookie: the client's way to it."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with three_bookies() as running:
        yield running


@pytest.fixture(scope="module")
def written(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Topics that are written to for the second time while the disk of a bookie is full."""
    return write_topics(cluster, tmp_path_factory.mktemp("keys"), TOPICS, lambda: full_disk(cluster, "bookie-0"))


@pytest.fixture(scope="module")
def by_brokers(cluster: LocalCluster, written: Written) -> pa.Table:
    return planned(cluster, written, written.topics).rows()


@pytest.fixture
def links(cluster: LocalCluster) -> Iterator[Links]:
    with ExitStack() as opened:
        names = [name for name in cluster.members if name.startswith("bookie-")]
        yield {name: opened.enter_context(Proxy(by_id(cluster[name].address))) for name in names}


@contextmanager
def full_disk(cluster: LocalCluster, name: str) -> Iterator[None]:
    """Start a bookie again that takes its disk for full; at the end, with its own settings.

    A bookie that is killed stays registered for a while, and this one may be full for the second time.
    """
    member = cluster[name]
    whole = member.part
    lines = (line.partition("=") for line in whole.configuration.splitlines())
    member.kill()
    until(lambda: f"/{member.address}\n" not in ask_zookeeper(member.zookeeper_port, "dump"), f"{name} is registered")
    member.part = replace(whole, configuration="".join(f"{key}={FULL.get(key, value)}\n" for key, _, value in lines))
    try:
        cluster.launch(name)
        path = f"/ledgers/available/readonly/{member.address}\n"
        until(lambda: path in ask_zookeeper(member.zookeeper_port, "dump"), f"{name} is not read-only")
        yield
    finally:
        member.part = whole
        cluster.restart(name)


@contextmanager
def stutter(member: Member) -> Iterator[None]:
    """Let a bookie do its work for a fifth of the time."""
    ended = threading.Event()

    def pause_again_and_again() -> None:
        while not ended.wait(0.1):
            member.pause()
            ended.wait(0.4)
            member.resume()

    thread = threading.Thread(target=pause_again_and_again)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def rows(
    cluster: LocalCluster, written: Written, topics: list[str], links: Links | None = None, parts: int = 1
) -> pa.Table:
    """Return what the bookies give. Args: the way to them, where it is not the straight one; parts of a topic."""
    addresses = (
        {"bookie__addresses": ",".join(f"{cluster[name].address}=127.0.0.1:{one.port}" for name, one in links.items())}
        if links
        else {}
    )
    return planned(cluster, written, topics, parts, read__from="bookies", **addresses).rows()


def holds_all(bookie: str, metadata: LedgerMetadata) -> bool:
    """Whether a bookie has each entry for certain, and another one too: the writer waited for each copy."""
    if metadata.striped or metadata.write_quorum == 1 or metadata.write_quorum != metadata.ack_quorum:
        return False
    return all(bookie in bookies for _, bookies in metadata.ensembles)


def through_brokers(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the lines of the log that tell of a range that is read through its brokers."""
    return [one for one in caplog.messages if "through its brokers" in one]


def test_a_bookie_with_a_full_disk_gives_what_it_stores(
    cluster: LocalCluster, written: Written, by_brokers: pa.Table, caplog: pytest.LogCaptureFixture
) -> None:
    full = cluster["bookie-0"].address

    def alone(bookie: str) -> tuple[str, int]:
        if bookie != full:
            raise BookieUnavailable("it is not asked here")
        return by_id(bookie)

    def others(bookie: str) -> tuple[str, int]:
        if bookie == full:
            raise BookieUnavailable("it is not asked here")
        return by_id(bookie)

    def read(bookies: Bookies, metadata: LedgerMetadata, last: int) -> list[tuple[int, bytes]]:
        return [entry for entries in LedgerReader(bookies, metadata, patience_s=0).read(0, last) for entry in entries]

    segments = [segment for told in written.told for segment in told.segments.segments]
    held = [(one.metadata, one.last) for one in segments if one.metadata is not None and holds_all(full, one.metadata)]
    caplog.set_level(logging.WARNING, "eos.source")
    with full_disk(cluster, "bookie-0"):
        assert rows(cluster, written, written.topics).equals(by_brokers)
        assert rows(cluster, written, written.topics, parts=3).equals(by_brokers)
        with Bookies(alone) as from_it, Bookies(others) as from_others:
            alike = [read(from_it, *ledger) == read(from_others, *ledger) for ledger in held]
    assert alike
    assert all(alike)
    print(f"{len(held)} ledgers came from the bookie with a full disk, equal to another's")
    assert not through_brokers(caplog)


@pytest.mark.parametrize("slow", [("bookie-0",), ("bookie-0", "bookie-1", "bookie-2")], ids=["one", "all"])
def test_bookies_that_answer_late_but_in_time_are_read(
    slow: tuple[str, ...],
    cluster: LocalCluster,
    written: Written,
    by_brokers: pa.Table,
    links: Links,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "eos.source")
    for name in slow:
        links[name].delay(LATE_S)
    assert rows(cluster, written, written.topics, links).equals(by_brokers)
    with ExitStack() as slowed:
        for name in slow:
            slowed.enter_context(stutter(cluster[name]))
        assert rows(cluster, written, written.topics).equals(by_brokers)
    assert not through_brokers(caplog)


def test_a_bookie_that_answers_too_late_is_waited_for_once(
    cluster: LocalCluster, written: Written, by_brokers: pa.Table, links: Links, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "eos.source")
    links["bookie-1"].delay(TOO_LATE_S)
    assert rows(cluster, written, written.topics, links).equals(by_brokers)
    assert not through_brokers(caplog), "another bookie has each entry"

    connected: Counter[str] = Counter()
    ways = {cluster[name].address: one.port for name, one in links.items()}

    def resolve(bookie: str) -> tuple[str, int]:
        connected[bookie] += 1
        return "127.0.0.1", ways[bookie]

    with Bookies(resolve, timeout_s=1, quarantine_s=3600) as bookies:
        for one in written.told:
            entries = list(HistoryReader(one.topic, one.segments, bookies).read(BEGINNING, one.end))
            assert described(entries) == one.entries, one.topic
    print(f"connections: {dict(connected)}")
    # Each request that was under way when the first one timed out has a connection of its own.
    assert 1 <= connected[cluster["bookie-1"].address] <= WINDOW


def test_where_each_bookie_answers_too_late_the_brokers_are_read_and_the_reason_is_said(
    cluster: LocalCluster, written: Written, links: Links, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "eos.source")
    for one in links.values():
        one.delay(TOO_LATE_S)
    (topic, *_) = written.topics
    assert rows(cluster, written, [topic], links).equals(planned(cluster, written, [topic]).rows())
    (said,) = through_brokers(caplog)
    assert said.startswith(f"the rest of {topic} behind -1:-1 to ")
    assert "could not be asked (the bookie 127.0.0.1:" in said
    assert "did not answer within 3 s)" in said
    assert said.endswith("Read again when the bookies answer)")
