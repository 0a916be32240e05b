from __future__ import annotations

import pytest

from eos.commit.attempt import attempt
from eos.commit.control_log import Intent, OwnerRecord, encode
from eos.commit.decision import Identity
from eos.commit.owner import Owner
from eos.commit.registration import Registration
from eos.commit.retry import OwnerSettings
from eos.commit.takeover import bound_coordinator
from eos.errors import (
    CommitUnknown,
    DamagedLog,
    Fenced,
    IdentityMismatch,
    InvalidInput,
    NotCommitted,
    Refused,
    RefusedForGood,
    Stopped,
    Unanswered,
)
from eos.pulsar.wire.txn import TxnId
from tests.simulation.broker import Broker
from tests.simulation.client import Client, Hold
from tests.simulation.job import CONTROL, DATA, NAME, WriteData, partitions_of, rows_of
from tests.simulation.world import Alone
from tests.unit.commit.driver import LOST, SETTINGS, commit, driver, owning


def untouched(world: Alone) -> tuple[int, int]:
    """What a takeover changes: the epoch, and the entries of the log."""
    topic = world.broker.topic(CONTROL)
    return topic.epoch, len(topic.entries)


# ---- first use


def test_first_use_primes_the_topic_and_writes_owner(world: Alone) -> None:
    owner = owning(world)
    topic = world.broker.topic(CONTROL)
    assert topic.held_a_transaction
    assert [e.data for e in topic.readable()] == [
        encode(OwnerRecord(1, "query", "run-1", bound_coordinator(NAME, 4), 0, begins=True, cluster="simulated"))
    ]
    assert owner.registration == Registration(NAME, CONTROL, 1)
    assert not any(c.open for c in world.broker.coordinators)


def test_priming_goes_on_after_a_failure(world: Alone) -> None:
    world.failing = {"SEND in transaction": [(LOST, False)], "END_TXN abort": [(LOST, True), (LOST, False)]}
    owning(world)
    assert world.broker.topic(CONTROL).held_a_transaction
    assert not any(c.open for c in world.broker.coordinators)


def test_the_coordinator_is_a_hash_of_the_name() -> None:
    assert {bound_coordinator(f"sink-{n}", 4) for n in range(50)} == {0, 1, 2, 3}
    assert bound_coordinator("flights", 16) == bound_coordinator("flights", 16)


def test_the_coordinator_stays_when_their_number_changes(world: Alone) -> None:
    first = owning(world).coordinator().index
    world.broker.coordinators += Broker(coordinators=13).coordinators
    for index, coordinator in enumerate(world.broker.coordinators):
        coordinator.index = index
    assert bound_coordinator(NAME, 17) != first
    assert owning(world, "run-2").coordinator().index == first


# ---- which driver may take over


def test_another_query_is_refused_before_the_owner_is_fenced(world: Alone) -> None:
    owner = owning(world)
    before = untouched(world)
    with pytest.raises(IdentityMismatch, match="belongs to the query query, and this is the query other"):
        driver(world).take_over("other", "run-2")
    assert untouched(world) == before
    commit(world, owner, 0)


def test_another_principal_is_refused_while_a_transaction_may_be_open(world: Alone) -> None:
    first = driver(world)
    first.take_over("query", "run-1", principal="alice")
    first.log.append(Intent(first.log.next_number(), "query", "run-1", 0, 1, TxnId(0, 9), "alice"))
    before = untouched(world)
    with pytest.raises(InvalidInput, match="opened by alice, and to bob"):
        driver(world).take_over("query", "run-2", principal="bob")
    assert untouched(world) == before
    driver(world).take_over("query", "run-3", principal="alice")


def test_a_checkpoint_of_another_sink_is_refused(world: Alone) -> None:
    with pytest.raises(InvalidInput, match='this checkpoint belongs to the sink "other"'):
        driver(world).take_over("query", "run", Registration("other", CONTROL, 1))
    assert world.log == []


@pytest.mark.parametrize("last", [1, 57])
def test_a_log_that_was_deleted_is_refused_however_often_one_tries(world: Alone, last: int) -> None:
    for run in range(3):
        with pytest.raises(DamagedLog, match=f"is empty, and this query has seen its record {last}"):
            driver(world).take_over("query", f"run-{run}", Registration(NAME, CONTROL, last))
    assert untouched(world) == (-1, 0)


def test_a_log_whose_end_is_missing_is_refused_untouched(world: Alone) -> None:
    owning(world)
    before = untouched(world)
    with pytest.raises(DamagedLog, match="ends with record 1, and this query has seen its record 2"):
        driver(world).take_over("query", "run-2", Registration(NAME, CONTROL, 2))
    assert untouched(world) == before


def test_a_log_that_shows_its_end_a_moment_later_is_taken(world: Alone) -> None:
    registered = owning(world).registration
    topic = world.broker.topic(CONTROL)
    entries, topic.entries = topic.entries, []
    slept = world.sleep

    def sleep(seconds: float) -> None:
        slept(seconds)
        topic.entries = topic.entries or entries

    owner = driver(world, sleep=sleep)
    owner.take_over("query", "run-2", registered)
    assert owner.view.first_owner is not None
    assert owner.view.first_owner.run_id == "run-1"


def test_a_log_that_is_deleted_under_a_running_driver_is_noticed(world: Alone) -> None:
    owner = owning(world)
    commit(world, owner, 0)
    world.broker.topics.clear()
    with pytest.raises(DamagedLog, match="the beginning of the control log is gone"):
        owner.settle()


@pytest.mark.parametrize("refused", [True, False])
def test_a_takeover_that_fails_leaves_nothing_open(world: Alone, refused: bool) -> None:
    """Each try of a supervisor would leave a consumer more."""
    first = owning(world)
    holds: list[str] = []

    class Watched(Client):
        def hold(self, topic: str, subscription: str) -> Hold:
            hold = super().hold(topic, subscription)
            holds.append("opened")
            hold.close = lambda: holds.append("closed")  # type: ignore[method-assign]
            return hold

    if not refused:
        hold_for_ever(world, first)
    again = driver(world, Watched(world))
    with pytest.raises(IdentityMismatch if refused else CommitUnknown):
        again.take_over("other" if refused else "query", "run-2")
    assert holds == ["opened", "closed"]
    assert len(world.broker.topic(CONTROL).producers) == (1 if refused else 0)


# ---- a log that is hidden


def test_the_transaction_of_the_driver_before_is_aborted(world: Alone) -> None:
    first = owning(world)
    txn = first.coordinator().new_transaction(60_000)
    first.coordinator().add_partitions(txn, [CONTROL])
    first.log.append(Intent(first.log.next_number(), "query", "run-1", 0, 1, txn, None))
    assert world.broker.knows(txn)
    second = owning(world, "run-2")
    assert not world.broker.knows(txn)
    assert second.view.unfinished is not None
    assert second.view.newest is None


def test_an_abandoned_transaction_is_freed_by_an_empty_one(world: Alone) -> None:
    first = owning(world)
    abandoned = first.coordinator().new_transaction(60_000)
    first.log.append(OwnerRecord(7, "query", "run-1", abandoned.coordinator, 0), abandoned)
    world.broker.start_end(abandoned, False)  # it was not told of the control topic
    while world.broker.work():
        pass
    assert world.broker.topic(CONTROL).ongoing
    second = owning(world, "run-2")
    assert not world.broker.topic(CONTROL).ongoing
    assert second.view.owner is not None
    assert second.view.owner.run_id == "run-2"
    assert second.view.last_number == 2


def hold_for_ever(world: Alone, owner: Owner) -> None:
    """Freeze the log with a transaction that no INTENT tells of."""
    txn = owner.coordinator().new_transaction(3_600_000)
    owner.coordinator().add_partitions(txn, [CONTROL])
    owner.log.append(OwnerRecord(7, "query", "run-1", txn.coordinator, 0), txn)


def test_patience_has_an_end_and_names_who_holds_the_log(world: Alone) -> None:
    hold_for_ever(world, owning(world))
    started = world.clock()
    second = driver(world, holders=lambda coordinator, topic: f"a transaction of job X holds {topic}")
    with pytest.raises(CommitUnknown, match=r"our own OWNER record.*job X holds .*__eos-sim.*starting again is safe"):
        second.take_over("query", "run-2")
    assert SETTINGS.patience_s <= world.clock() - started < SETTINGS.patience_s + 5


def test_a_stop_ends_the_waiting(world: Alone) -> None:
    hold_for_ever(world, owning(world))
    started = world.clock()
    second = driver(world, stopped=lambda: world.clock() > started + 3)
    with pytest.raises(Stopped):
        second.take_over("query", "run-2")
    assert world.clock() - started < 6


# ---- what is refused for good

FOR_GOOD = RefusedForGood("ask", "NotAllowedError", "never", "change the setting")


@pytest.mark.parametrize("label", ["SUBSCRIBE durable", "PARTITIONS", "PRODUCER exclusive-with-fencing", "SEND"])
def test_a_takeover_that_is_refused_for_good_is_not_waited_for(world: Alone, label: str) -> None:
    world.failing = {label: [(FOR_GOOD, False)] * 10_000}
    with pytest.raises(RefusedForGood, match=r"never\. change the setting"):
        owning(world)
    assert world.clock() < 1


@pytest.mark.parametrize("code", ["ProducerBlockedQuotaExceededError", "ProducerBlockedQuotaExceededException"])
def test_a_backlog_quota_on_the_control_topic_is_named_and_not_waited_for(world: Alone, code: str) -> None:
    quota = Refused("open a producer", code, "Cannot create producer on topic with backlog quota exceeded")
    world.failing = {"PRODUCER exclusive-with-fencing": [(quota, False)] * 10_000}
    way_out = f"pulsar-admin .*-quota --policy producer_request_hold --type message_age --limitTime=-1 {CONTROL}"
    with pytest.raises(InvalidInput, match=f"{code}.* {way_out}") as caught:
        owning(world)
    assert "starting again is safe" not in str(caught.value)
    assert world.clock() < 1


def test_a_refusal_for_good_says_nothing_of_a_commit_that_was_sent(world: Alone) -> None:
    owner = owning(world)
    owner.open()
    world.failing = {"END_TXN commit": [(LOST, True)], "SEND": [(FOR_GOOD, False)] * 10_000}
    owner.commit(lambda: None)
    with pytest.raises(CommitUnknown, match=r"change the setting\. Whether the batch is committed is not known"):
        owner.settle()


# ---- broken connections


def test_every_request_of_a_takeover_may_fail_once(world: Alone) -> None:
    clean = Alone(Broker(coordinators=4))
    owning(clean)
    for label in set(clean.log):
        for carried_out in (True, False):
            again = Alone(Broker(coordinators=4))
            again.failing = {label: [(LOST, carried_out)]}
            assert owning(again).view.owner is not None, label


def test_a_broken_producer_is_reopened_with_its_own_epoch(world: Alone) -> None:
    owner = owning(world)
    world.broker.unload(CONTROL)
    with pytest.raises(Unanswered):
        owner.log.append(Intent(9, "query", "run-1", 0, 1, TxnId(0, 9), None))
    assert owner.unsettled
    owner.settle()
    assert world.broker.topic(CONTROL).epoch == 0
    assert owner.view.owner is not None
    assert owner.view.owner.topic_epoch == 0


def test_only_a_moved_epoch_is_fenced_and_it_is_for_good(world: Alone) -> None:
    first = owning(world)
    second = owning(world, "run-2")
    with pytest.raises(Unanswered):
        first.log.append(Intent(9, "query", "run-1", 0, 1, TxnId(0, 9), None))
    epoch = world.broker.topic(CONTROL).epoch
    for again in (first.settle, first.settle, lambda: first.take_over("query", "run-1")):
        with pytest.raises(Fenced, match="already moved"):
            again()
    assert world.broker.topic(CONTROL).epoch == epoch
    second.settle()
    commit(world, second, 0)


# ---- settling


def test_settling_commits_again_what_may_have_been_committed(world: Alone) -> None:
    owner = owning(world)
    world.failing = {"END_TXN commit": [(LOST, False), (LOST, False), (LOST, True)]}
    commit(world, owner, 0)
    assert list(owner.view.markers) == [0]
    assert not owner.unsettled


def test_what_did_not_end_in_time_stays_in_hand(world: Alone) -> None:
    owner = owning(world)
    world.failing = {"END_TXN commit": [(LOST, False)] * 10_000}
    with pytest.raises(CommitUnknown, match="Whether the batch is committed is not known"):
        commit(world, owner, 0)
    assert owner.unsettled
    world.failing = {}
    commit(world, owner, 0)
    assert list(owner.view.markers) == [0]
    assert world.log.count("END_TXN commit") > 5


def test_what_was_never_committed_and_did_not_end_is_not_committed(world: Alone) -> None:
    owner = owning(world)
    world.failing = {"END_TXN abort": [(LOST, False)] * 10_000, "SEND in transaction": [(LOST, False)]}
    with pytest.raises(NotCommitted):
        commit(world, owner, 0)
    assert owner.unsettled
    world.failing = {}
    commit(world, owner, 0)
    assert list(owner.view.markers) == [0]


# ---- retention and the end


def test_what_lies_before_the_kept_markers_is_let_go(world: Alone) -> None:
    owner = owning(world, settings=OwnerSettings(ttl_s=60, markers_retained=3))
    commit(world, owner, *range(6))
    topic = world.broker.topic(CONTROL)
    assert topic.acknowledged == owner.view.expired
    topic.trim()
    assert list(owning(world, "run-2").view.markers) == [3, 4, 5]


def test_a_checkpoint_that_is_rolled_forward_says_so_until_it_is_in_step(world: Alone) -> None:
    owner = owning(world, settings=OwnerSettings(ttl_s=60, markers_retained=2, markers_retained_since=1))
    commit(world, owner, *range(5))
    assert list(owner.view.markers) == [1, 2, 3, 4], "the newest two, and all since batch 1"
    assert owner.retained(3) is None, "it was not said that the checkpoint is behind"
    owner.close()
    owner.take_over("query", "run-2", Registration(NAME, CONTROL, 1, rolls_forward_from=3))
    assert owner.registration.rolls_forward_from == 3
    assert owner.retained(2) is None
    assert owner.retained(3) == owner.view.markers.get(3)
    assert owner.retained(3) is not None
    owner.log.retain_markers_since(None)
    commit(world, owner, 5)
    assert list(owner.view.markers) == [4, 5]


def test_a_log_that_cannot_be_trimmed_is_trimmed_later(world: Alone) -> None:
    owner = owning(world, settings=OwnerSettings(ttl_s=60, markers_retained=1))
    owner.close()
    owner.take_over("query", "run-1")
    commit(world, owner, 0)
    world.failing = {"ACK": [(LOST, False)]}
    commit(world, owner, 1)
    assert world.broker.topic(CONTROL).acknowledged.entry == -1
    commit(world, owner, 2)
    assert world.broker.topic(CONTROL).acknowledged == owner.view.expired


def test_closing_survives_a_lost_connection(world: Alone) -> None:
    owner = owning(world)
    world.failing = {"CLOSE_PRODUCER": [(LOST, False)]}
    owner.close()
    owner.close()


# ---- a coordinator that has lost its log


def test_a_transaction_whose_number_was_given_before_is_not_written_into(world: Alone) -> None:
    """Topics hide rows by the number of an aborted transaction: a later one with it would be committed in vain."""
    owner = owning(world)
    commit(world, owner, 0)

    class Fails(WriteData):
        def finish(self) -> None:
            super().finish()
            raise NotCommitted("a task failed")

    with pytest.raises(NotCommitted):
        attempt(owner, 1, Identity("query", "run-1", "offsets 1"), Fails(Client(world), 1))
    used = world.broker.coordinators[bound_coordinator(NAME, 4)]
    last, used.count = used.count, used.count - 1  # the next transaction has the number of the aborted one
    stored = {topic: len(world.broker.topic(topic).entries) for topic in DATA}
    with pytest.raises(InvalidInput, match=r"counts from the beginning again.*Nothing of the batch is written"):
        commit(world, owner, 1)
    assert stored == {topic: len(world.broker.topic(topic).entries) for topic in DATA}
    assert not any(c.open for c in world.broker.coordinators), "it was aborted"
    used.count = last
    commit(world, owner, 1)
    for topic in DATA:
        wanted = [row for batch in (0, 1) if topic in partitions_of(batch) for row in rows_of(batch, topic)]
        assert [entry.data for entry in world.broker.topic(topic).readable()] == wanted
