"""Three bookies, topics at random: what the bookies give stays what the brokers gave, whatever fails among them."""

from __future__ import annotations

import logging
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from eos.bookkeeper import Bookies
from eos.history.reader import HistoryReader, HistoryUnavailable
from eos.local import LocalCluster
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from tests.contract.test_history import BEGINNING
from tests.soak.stored_topics import (
    SIDE_BY_SIDE,
    Described,
    Told,
    Written,
    described,
    each,
    planned,
    three_bookies,
    write_topics,
)
from tests.topic_commands import compact
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.soak, pytest.mark.timeout(7200)]

TOPICS = int(os.environ.get("EOS_SOAK_TOPICS", "100"))
COMPACTED = max(1, TOPICS // 20)
PARTS, ONE_OF = 4, 4
"""Parts of a topic, and how many topics there are for each one that is read in parts too."""
WAITING = 64
"""Tasks side by side while a bookie is paused: each waits for it."""
BROKERS = ("broker-0", "broker-1")

Ranges = list[tuple[EntryId, EntryId, Described]]
"""After an entry, up to another, and what lies there."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with three_bookies() as running:
        yield running


@pytest.fixture(scope="module")
def written(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """TOPICS topics; while those with two copies are written to for the second time, one bookie is dead."""

    @contextmanager
    def dead() -> Iterator[None]:
        cluster["bookie-0"].kill()
        yield
        cluster.restart("bookie-0")

    done = write_topics(cluster, tmp_path_factory.mktemp("keys"), TOPICS, dead)
    segments = [segment for one in done.told for segment in one.segments.segments]
    moved = sum(len(one.metadata.ensembles) > 1 for one in segments if one.metadata)
    assert moved, "no ledger changed its bookies while it was written to"
    print(f"{len(segments)} ledgers, of which {moved} changed their bookies while they were written to")
    return done


def by_bookies(bookies: Bookies, one: Told, start: EntryId, end: EntryId) -> Described:
    return described(list(HistoryReader(one.topic, one.segments, bookies, patience_s=PATIENCE_S).read(start, end)))


def differing(told: Sequence[Told], ranges: Callable[[Told], Ranges]) -> list[str]:
    """Return the topics of which the bookies give anything else in one of these ranges."""
    with Bookies() as bookies:

        def differs(one: Told) -> bool:
            return any(by_bookies(bookies, one, start, end) != lies for start, end, lies in ranges(one))

        wrong = each(differs, told)
    return [one.topic for one, differs in zip(told, wrong, strict=True) if differs]


def whole_and_each_alone(one: Told) -> Ranges:
    """All at once, and cut at each entry: what lies between one entry and the next is the next one."""
    starts = [BEGINNING, *(entry[0] for entry in one.entries)]
    alone = [(start, entry[0], [entry]) for start, entry in zip(starts, one.entries, strict=False)]
    return [(BEGINNING, one.end, one.entries), *alone]


def after_each(one: Told) -> Ranges:
    """From each entry on to the end."""
    return [(entry[0], one.end, one.entries[at:]) for at, entry in enumerate(one.entries, 1) if entry[0] < one.end]


def wipe(cluster: LocalCluster, name: str) -> None:
    """Take from a bookie what it stores, but not its identity."""
    cluster[name].kill()
    current = cluster[name].home / "data" / "current"
    assert (current / "VERSION").exists()
    for path in current.iterdir():
        if path.name != "VERSION":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    cluster.restart(name)


def test_bookies_give_what_the_brokers_gave_or_say_that_they_cannot(
    cluster: LocalCluster, written: Written, caplog: pytest.LogCaptureFixture
) -> None:
    choose, began = random.Random(1), time.monotonic()

    def one_cut(one: Told) -> Ranges:
        """Cut at one of the entries, and all of it again."""
        cut = choose.randrange(1, len(one.entries))
        middle = one.entries[cut - 1][0]
        return [(BEGINNING, middle, one.entries[:cut]), (middle, one.end, one.entries[cut:])]

    def say(what: str) -> None:
        print(f"{what}, after {time.monotonic() - began:.0f} s")

    caplog.set_level(logging.WARNING, "eos.source")
    some = written.topics[::ONE_OF]
    by_brokers = planned(cluster, written, written.topics).rows()
    say(f"{by_brokers.num_rows} rows of {by_brokers.num_columns} columns by brokers")
    some_by_brokers = planned(cluster, written, some).rows()
    whole = planned(cluster, written, written.topics, read__from="bookies")
    in_parts = planned(cluster, written, some, PARTS, read__from="bookies")
    say(f"planned {len(whole.tasks)} tasks, and in parts {len(in_parts.tasks)}")

    def check(
        state: str,
        ranges: Callable[[Told], Ranges] = one_cut,
        *,
        brokers: bool = True,
        side_by_side: int = SIDE_BY_SIDE,
    ) -> None:
        caplog.clear()
        assert differing(written.told, ranges) == [], state
        say(f"{state}: ranges equal")
        assert whole.rows(side_by_side).equals(by_brokers), state
        say(f"{state}: rows equal")
        if brokers:  # a part that begins between the chunks of a message reads the chunks before it through a broker
            assert in_parts.rows(side_by_side).equals(some_by_brokers), state
            say(f"{state}: rows of {len(in_parts.tasks)} parts equal")
        assert not [one for one in caplog.messages if "through its brokers" in one], state

    compacted = written.topics[:COMPACTED]
    each(lambda topic: compact(cluster.admin_url, topic), compacted)
    left = planned(cluster, written, compacted, readCompacted="true").rows()
    by_bookies_too = planned(cluster, written, compacted, readCompacted="true", read__from="bookies").rows()
    assert by_bookies_too.equals(left)
    say(f"{left.num_rows} rows are left of {COMPACTED} compacted topics")

    check("all alive", whole_and_each_alone)
    assert differing(written.told[::ONE_OF], after_each) == []
    say("from each entry on to the end: equal")

    cluster["bookie-0"].kill()
    check("one bookie dead")
    cluster.restart("bookie-0")

    cluster["bookie-1"].pause()
    check("one bookie paused", side_by_side=WAITING)
    cluster["bookie-1"].resume()

    wipe(cluster, "bookie-2")
    check("one bookie wiped")

    for broker in BROKERS:
        cluster[broker].kill()
    check("all brokers down, and one bookie still wiped", brokers=False)

    cluster["bookie-0"].kill()
    beginnings = each(read_as_far_as_it_goes, written.told)
    assert any(beginnings), "nothing was missing of any topic"
    say(f"one bookie dead and another wiped: {sum(beginnings)} topics ended early and said so, the others came whole")


def read_as_far_as_it_goes(one: Told) -> bool:
    """Read while one bookie is dead and another wiped. Returns whether it ended early, which it must then say."""
    came: list[Entry] = []
    with Bookies(timeout_s=1) as bookies:
        reader = HistoryReader(one.topic, one.segments, bookies, patience_s=0.1)
        try:
            for entry in reader.read(BEGINNING, one.end):
                came.append(entry)
        except HistoryUnavailable:
            assert described(came) == one.entries[: len(came)], one.topic
            return True
    assert described(came) == one.entries, one.topic
    return False
