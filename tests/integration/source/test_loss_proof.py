"""Anything may remove entries while they are read: all rows come, or a named loss, never a hang."""

from __future__ import annotations

import random
import threading
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import httpx
import pytest

from eos.config import Cluster
from eos.errors import EosError, InvalidInput, NetworkError
from eos.local import LocalPulsar
from eos.pulsar.net.client import Client, Producer
from eos.pulsar.net.entries import EntryReader
from eos.pulsar.wire.decoding import decode
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.source.batch_plan import batch_ranges
from eos.source.brokers import PulsarBrokers
from eos.source.offsets import Offsets
from eos.source.options import parse_options
from eos.source.range_reader import read_range
from eos.source.ranges import Range
from eos.source.stream_plan import StreamPlan
from tests.clients import end, transaction
from tests.conftest import START_S
from tests.integration.source.queries import Query, read

SETTINGS = {
    "backlogQuotaCheckIntervalInSeconds": 1,
    "brokerDeleteInactiveTopicsFrequencySeconds": 1,
    "messageExpiryCheckIntervalInMinutes": 1,
    "managedLedgerMinLedgerRolloverTimeMinutes": 0,
    "managedLedgerMaxEntriesPerLedger": 60,
}
"""A broker that does each second what it does each minute by default, and whose ledgers are short."""

WATCHDOG_S = 60.0
_MOST_DELAY_S = 0.25
_TOPICS = 3


@dataclass
class Topic:
    """A topic of a namespace of its own, by the admin API."""

    broker: LocalPulsar
    client: Client
    forever: bool
    namespace: str = field(default_factory=lambda: f"public/removed-{uuid.uuid4().hex[:10]}")

    def __post_init__(self) -> None:
        self.ask("PUT", f"namespaces/{self.namespace}", {"replication_clusters": ["standalone"]})
        kept = -1 if self.forever else 0
        self.retain(kept)
        self.ask("PUT", f"persistent/{self.namespace}/t")

    @property
    def name(self) -> str:
        return f"persistent://{self.namespace}/t"

    def retain(self, kept: int) -> None:
        wanted = {"retentionTimeInMinutes": kept, "retentionSizeInMB": kept}
        self.ask("POST", f"namespaces/{self.namespace}/retention", wanted)

    def ask(self, method: str, path: str, body: object = None) -> httpx.Response:
        where = f"{self.broker.admin_url}/admin/v2/{path}"
        return httpx.request(method, where, json=body, timeout=30, follow_redirects=True)

    def on_topic(self, method: str, path: str) -> httpx.Response:
        return self.ask(method, f"persistent/{self.namespace}/t/{path}")

    def on_each_subscription(self, method: str, path: str) -> None:
        for name in self.on_topic("GET", "stats").json().get("subscriptions", {}):
            self.on_topic(method, f"subscription/{name}/{path}")

    def write(self, numbers: range, dice: random.Random) -> None:
        """Write numbers as rows, and aborted rows between them."""
        left = list(numbers)
        while left:
            count = dice.randint(1, 40)
            some, left = left[:count], left[count:]
            how = dice.choice(["plain", "plain", "committed", "aborted first"])
            with self.client.producer(self.name) as producer:
                if how == "aborted first":
                    self._in_transaction(producer, [b"aborted"] * 3, commit=False)
                rows = [b"%d" % number for number in some]
                if how == "committed":
                    self._in_transaction(producer, rows, commit=True)
                else:
                    for row in rows:
                        producer.send_record(row, None)

    def _in_transaction(self, producer: Producer, rows: list[bytes], *, commit: bool) -> None:
        txn = transaction(self.client, self.name)
        for row in rows:
            producer.send_record(row, txn)
        end(self.client, txn, commit=commit)


def _retention(topic: Topic, dice: random.Random) -> None:
    topic.retain(0)
    topic.on_topic("PUT", "unload")
    topic.on_topic("POST", "trim")


def _made_again(topic: Topic, dice: random.Random) -> None:
    topic.on_topic("DELETE", "?force=true")
    if dice.random() < 0.7:
        topic.ask("PUT", f"persistent/{topic.namespace}/t")


def _quota(topic: Topic, dice: random.Random) -> None:
    quota = {"limitSize": 2000, "policy": "consumer_backlog_eviction"}
    topic.ask("POST", f"namespaces/{topic.namespace}/backlogQuota?backlogQuotaType=destination_storage", quota)
    time.sleep(dice.uniform(0, 1.2))


def _idle(topic: Topic, dice: random.Random) -> None:
    idle = {
        "inactiveTopicDeleteMode": "delete_when_subscriptions_caught_up",
        "maxInactiveDurationSeconds": 1,
        "deleteWhileInactive": True,
    }
    topic.ask("POST", f"namespaces/{topic.namespace}/inactiveTopicPolicies", idle)
    topic.on_each_subscription("POST", "skip_all")


def _ttl(topic: Topic, dice: random.Random) -> None:
    topic.ask("POST", f"namespaces/{topic.namespace}/messageTTL", 1)


MEANS: dict[str, Callable[[Topic, random.Random], object]] = {
    "ttl": _ttl,
    "expire": lambda topic, dice: topic.on_topic("POST", "all_subscription/expireMessages/1"),
    "skip": lambda topic, dice: topic.on_each_subscription("POST", f"skip/{dice.randint(1, 150)}"),
    "skip_all": lambda topic, dice: topic.on_each_subscription("POST", "skip_all"),
    "truncate": lambda topic, dice: topic.on_topic("DELETE", "truncate"),
    "retention": _retention,
    "made again": _made_again,
    "quota": _quota,
    "idle": _idle,
}


class Slow:
    """A reader that takes its time between two looks, so that something can happen meanwhile."""

    def __init__(self, reader: EntryReader, dice: random.Random) -> None:
        self._reader = reader
        self._dice = dice
        self.close = reader.close
        self.begin_again = reader.begin_again
        self.last_message_id = reader.last_message_id

    def read(self, timeout_s: float, until: EntryId | None = None) -> list[Entry]:
        time.sleep(self._dice.uniform(0, 0.01))
        return self._reader.read(timeout_s)


@dataclass
class Outcome:
    """The result of one history."""

    rows: list[int] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    failure: str = ""


class Unwritten(Exception):
    """The topic of a history could not be written: nothing is known of what it holds."""


def history(broker: LocalPulsar, client: Client, means: str, seed: str) -> str:
    """Read a range whose entries are removed meanwhile. Return "whole" or "loss"; raise AssertionError otherwise.

    A broker that has too much to do closes a producer now and then: then it is another topic's turn.
    """
    for _ in range(_TOPICS):
        with suppress(Unwritten):
            return _history(broker, client, means, seed)
    raise AssertionError(f"{means}, seed {seed}: none of {_TOPICS} topics could be written")


def _history(broker: LocalPulsar, client: Client, means: str, seed: str) -> str:
    dice = random.Random(seed)
    where = Topic(broker, client, forever=dice.random() < 0.5)
    rows = dice.randint(100, 400)
    stream, careless, early = (dice.random() < 0.5 for _ in range(3))
    idle = early and stream  # it has read nothing yet, and entries are removed between two of its triggers
    begins = "latest" if idle else "earliest"
    given = {"service.url": broker.service_url, "topic": where.name, "startingOffsets": begins}
    options = parse_options(given | ({"subscription": "job"} if stream else {}), "stream" if stream else "batch")
    brokers = PulsarBrokers(options)
    if not where.forever:
        client.subscription(where.name, "keeps", initial="earliest").close()
    outcome = Outcome()

    def lose(what: str) -> None:
        outcome.told.append(what)
        if not careless:
            raise InvalidInput(what)

    plan = StreamPlan(brokers, options.start, fail_on_data_loss=not careless, warn=outcome.told.append)
    begin = Offsets(plan.latest(plan.first(), None).starts) if stream and not idle else None
    try:
        if idle:
            where.write(range(-1, 0), dice)
            begin = plan.latest(plan.first(), None)
        where.write(range(rows), dice)
    except NetworkError as error:
        brokers.close()
        raise Unwritten from error
    if means == "expire" or means == "ttl":
        time.sleep(1.1)  # nothing younger than a second expires

    def remove() -> None:
        with suppress(EosError, httpx.HTTPError):  # the topic may be gone, or in the way
            for _ in range(dice_of_removal.randint(1, 3)):
                time.sleep(dice_of_removal.uniform(0, _MOST_DELAY_S))
                MEANS[means](where, dice_of_removal)
                if dice_of_removal.random() < 0.3:
                    where.on_topic("PUT", "unload")
                if dice_of_removal.random() < 0.5:
                    where.on_topic("POST", "trim")
            if dice_of_removal.random() < 0.5:
                where.write(range(10_000, 10_003), dice_of_removal)

    dice_of_removal = random.Random(seed + " removal")
    remover = threading.Thread(target=remove, daemon=True)

    def open_slowly(topic: str, start: EntryId | None, permits: int | None, *, stored: bool = False) -> Slow:
        return Slow(client.entry_reader(topic, start, stored=stored, permits=dice.choice([3, 10, 30])), dice)

    def read() -> None:
        try:
            if early:
                remover.start()
            if idle:
                remover.join()
            ranges: list[Range]
            if begin is not None:
                ranges = plan.ranges(begin, plan.latest(begin, None))
            else:
                ranges = batch_ranges(brokers, options.start, options.end)
            if not early:
                remover.start()
            for part in ranges:
                for entries in read_range(part, open_slowly, lose):
                    outcome.rows += [int(value) for value in decode(entries, ["value"]).column("value").to_pylist()]
        except InvalidInput as error:
            outcome.failure = str(error)
        except BaseException as error:
            outcome.failure = f"unexpected: {error!r}\n{traceback.format_exc()}"

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    reading.join(WATCHDOG_S)
    what = f"{means}, seed {seed}, {'stream' if stream else 'table'}, forever={where.forever}, early={early}"
    assert not reading.is_alive(), f"{what}: hangs"
    remover.join()
    brokers.close()
    where.on_topic("DELETE", "?force=true")
    return judged(outcome, rows, what, planned_late=early and not stream)


def judged(outcome: Outcome, rows: int, what: str, *, planned_late: bool) -> str:
    """Return "whole" or "loss". Args: whether the read was planned while entries were removed: it has what was left."""
    assert not outcome.failure.startswith("unexpected"), f"{what}: {outcome.failure}"
    if outcome.failure or outcome.told:
        words = outcome.failure + "".join(outcome.told)
        assert "persistent://public/removed-" in words, f"{what}: {words} names no topic"
        assert outcome.rows == sorted(set(outcome.rows)), f"{what}: out of order, or twice"
        return "loss"
    old = [row for row in outcome.rows if row < 10_000]
    first = old[0] if planned_late and old else rows if planned_late else 0
    missing = sorted(set(range(first, rows)) - set(old))
    assert old == list(range(first, rows)), f"{what}: {len(missing)} rows missing in silence, such as {missing[:5]}"
    return "whole"


HISTORIES = 500


@pytest.fixture(scope="module")
def removing() -> Iterator[LocalPulsar]:
    with LocalPulsar(start_timeout_s=START_S, settings=SETTINGS) as started:
        yield started


@pytest.mark.parametrize("means", MEANS)
def test_entries_removed_while_they_are_read_are_read_or_named_as_lost(removing: LocalPulsar, means: str) -> None:
    with Client(Cluster(removing.service_url)) as client:
        for number in range(2):
            history(removing, client, means, f"{means} {number}")


def test_rows_removed_between_the_plan_of_a_first_batch_and_its_read_are_named_as_lost(removing: LocalPulsar) -> None:
    """The start of a first batch was proven when it was planned. The task must see what is removed after that."""
    dice = random.Random("planned")
    with Client(Cluster(removing.service_url)) as client:
        where = Topic(removing, client, forever=False)
        where.write(range(-1, 0), dice)
        given = {"service.url": removing.service_url, "topic": where.name, "subscription": "job"}
        query = Query(parse_options(given | {"startingOffsets": "latest", "failOnDataLoss": "false"}, "stream"))
        begin = query.latest(query.plan.first())
        where.write(range(60), dice)
        where.on_topic("PUT", "unload")
        where.write(range(60, 80), dice)
        ranges = query.plan.ranges(begin, query.latest(begin))
        assert query.told == []
        where.on_topic("POST", "subscription/job/skip_all")
        where.on_topic("POST", "trim")
        rows = read(query.brokers, ranges, query.lose)
        query.brokers.close()
    assert rows == [str(row) for row in range(80)] or query.told, rows
    assert len(rows) < 80, "nothing was removed"


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_random_histories_lose_nothing_in_silence(removing: LocalPulsar) -> None:
    outcomes: Counter[str] = Counter()
    failures = []
    with Client(Cluster(removing.service_url)) as client:
        for number in range(HISTORIES):
            means = list(MEANS)[number % len(MEANS)]
            try:
                outcomes[f"{means}: {history(removing, client, means, f'soak {number}')}"] += 1
            except AssertionError as failure:
                failures.append(str(failure))
    print(f"{HISTORIES} histories: {dict(sorted(outcomes.items()))}")
    assert not failures, "\n".join(failures)
