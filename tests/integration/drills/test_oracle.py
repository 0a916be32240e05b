"""The oracle on a real broker: it passes what is right, finds what is broken, and says when it doesn't know."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from eos.commit.takeover import bound_coordinator
from eos.config import Cluster
from eos.local import LocalPulsar
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from statestore.drills.judge import oracle, rows
from statestore.drills.judge.findings import Account, Readers, Verdict
from statestore.drills.judge.oracle import LiveReaders, judge, read_all
from statestore.drills.later_transactions import end_later_transactions
from tests.conftest import MakeTopic, RunningPulsar, create_topic
from tests.integration.drills.query import BATCHES, HIT, PARTITIONS, SIZE, Driver, Query, deliver
from tests.integration.drills.sinks import (
    SCENARIOS,
    WITHOUT_A_SCENARIO,
    Scenario,
    a_batch_in_two_transactions,
)
from tests.models.sink_rules import Rule

KINDS = ("lost", "duplicated", "unexpected", "out_of_order", "torn")
Running = LocalPulsar | RunningPulsar


@pytest.fixture
def query(pulsar: Running, make_topic: MakeTopic, tmp_path: Path) -> Query:
    return Query(pulsar.service_url, make_topic("oracle", PARTITIONS), _quiet_name(pulsar), tmp_path)


def _quiet_name(pulsar: Running) -> str:
    """A sink whose coordinator has no open transactions, such as crash tests leave: they would delay every healing."""
    with Admin(pulsar.admin_url) as admin, Client(Cluster(pulsar.service_url)) as client:
        busy = {one.txn.coordinator for one in admin.open_transactions()}
        coordinators = client.coordinators()
    assert len(busy) < coordinators, "every coordinator has open transactions"
    while bound_coordinator(name := f"oracle-{uuid4().hex[:10]}", coordinators) in busy:
        pass
    return name


def accounted(query: Query, live: LiveReaders | None = None, patience_s: float = 60) -> tuple[Account, Readers]:
    end_later_transactions(query.service_url, query.topic)
    expected = rows.stateless(rows.read_input(query.folder), query.committed)
    return judge("rows", query.service_url, query.topic, expected, live, patience_s=patience_s)


def errors(account: Account) -> set[str]:
    return {kind for kind in KINDS if getattr(account, kind)}


def test_every_rule_is_looked_at() -> None:
    assert SCENARIOS.keys() | WITHOUT_A_SCENARIO == set(Rule)
    assert not SCENARIOS.keys() & WITHOUT_A_SCENARIO


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=[rule.name for rule in SCENARIOS])
def test_a_sink_that_breaks_a_rule_is_found(query: Query, scenario: Scenario) -> None:
    with LiveReaders(query.service_url, query.topic) as live:
        scenario.play(query, kept=False)
        account, _ = accounted(query, live)
    assert account.verdict is Verdict.FAIL, account
    assert errors(account) == scenario.finds, account
    assert set(account.offenders) == scenario.finds
    assert all(f"batch {HIT}" in account.offenders[kind][0] for kind in scenario.finds - {"duplicated"}), account


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=[rule.name for rule in SCENARIOS])
def test_a_sink_that_keeps_the_rule_passes_in_spite_of_the_accident(query: Query, scenario: Scenario) -> None:
    with LiveReaders(query.service_url, query.topic) as live:
        scenario.play(query, kept=True)
        account, readers = accounted(query, live)
        progress = live.progress
    assert (account.verdict, errors(account)) == (Verdict.PASS, set()), account
    assert account.found == account.attempted == BATCHES * SIZE
    assert (readers.readers, readers.torn) == (2, 0)
    assert (progress.rows, progress.batch) == (BATCHES * SIZE, BATCHES - 1)


def test_a_batch_in_two_transactions_is_torn_for_those_who_read_meanwhile_and_for_those_who_come_later(
    query: Query,
) -> None:
    with LiveReaders(query.service_url, query.topic) as live:
        a_batch_in_two_transactions(query)
        account, readers = accounted(query, live)
    assert (account.verdict, errors(account)) == (Verdict.FAIL, {"torn", "out_of_order"}), account
    assert (account.lost, account.duplicated) == (0, 0)
    assert readers.torn
    assert readers.offenders[0].startswith(f"batch {HIT}: reader 1 found it in 2 pieces on")


def test_readers_live_through_a_broker_that_goes_away_and_count_nothing_twice(
    start_pulsar: Callable[..., LocalPulsar], tmp_path: Path
) -> None:
    broker = start_pulsar()
    topic = create_topic(broker.admin_url, "oracle", PARTITIONS)
    query = Query(broker.service_url, topic, "restart", tmp_path)
    with LiveReaders(query.service_url, query.topic, count=3) as live:
        Driver(query).run(until=2)
        broker.kill()
        broker.start()
        Driver(query).run()
        account, readers = accounted(query, live, patience_s=120)
    assert account.verdict is Verdict.PASS, account
    assert (readers.readers, readers.torn) == (3, 0)


def test_an_open_transaction_that_holds_readers_up_leaves_it_unknown(query: Query) -> None:
    driver = Driver(query)
    driver.run(until=2)
    coordinator = driver.owner.coordinator()
    txn = coordinator.new_transaction(600_000)
    deliver(query.task(txn, 2), query.rows_of(2))
    try:
        account, _ = accounted(query, patience_s=3)
    finally:
        coordinator.end(txn, commit=False)
    assert (account.verdict, errors(account)) == (Verdict.UNKNOWN, set()), account
    assert "A transaction was left open there" in account.reason
    account, _ = accounted(query)
    assert account.verdict is Verdict.PASS, account


def test_a_topic_out_of_reach_leaves_it_unknown(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "_REQUEST_S", 2)  # each of three clients waits that long
    query.committed.add(0)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        url = f"pulsar://127.0.0.1:{silent.getsockname()[1]}"
        expected = rows.stateless(rows.read_input(query.folder), query.committed)
        with LiveReaders(url, query.topic) as live:
            account, readers = judge("rows", url, query.topic, expected, live)
    assert (account.verdict, errors(account)) == (Verdict.UNKNOWN, set()), account
    assert f"The topic {query.topic} can't be read" in account.reason
    assert {getattr(account, kind) for kind in KINDS} == {readers.torn} == {None}, "nothing was counted"


def test_readers_leave_no_subscription_behind(pulsar: Running, query: Query) -> None:
    with LiveReaders(query.service_url, query.topic) as live:
        Driver(query).run(until=1)
        accounted(query, live)
    with LiveReaders(query.service_url, query.topic):
        pass
    read_all(query.service_url, query.topic)
    with Admin(pulsar.admin_url) as admin:
        for partition in range(PARTITIONS):
            assert admin.subscriptions(f"{query.topic}-partition-{partition}") == ()
