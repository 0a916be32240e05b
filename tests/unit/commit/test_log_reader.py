"""How far a control log is read, and when its silence is believed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from eos.commit.control_log import Intent, Marker, OwnerRecord, Record, encode
from eos.commit.decision import Action
from eos.commit.log_reader import oldest_needed, read_log, read_on, read_retained
from eos.commit.owner import Owner
from eos.commit.retry import OwnerSettings
from eos.errors import CommitUnknown, DamagedEntry, DamagedLog, EntriesGone, Unanswered
from eos.pulsar.wire.message_id import EARLIEST, MessageId
from eos.steps import Phase, Step
from tests.simulation.broker import Entry
from tests.simulation.client import Client, Reader
from tests.simulation.job import CONTROL
from tests.simulation.world import Alone
from tests.unit.commit import driver as drivers
from tests.unit.commit.driver import LOST, commit, identity

SETTINGS = OwnerSettings(ttl_s=60, patience_s=30, markers_retained=3)


class Watched(Client):
    """A client whose readers are counted, and may be silent, as where a bookie hangs.

    Attributes:
        read: how many records were read.
        silent_after: of each reader, how many records come before its silence; None: it never falls silent.
        damaged: the entry that can't be read; None: there is none.
    """

    def __init__(self, world: Alone) -> None:
        super().__init__(world)
        self.read = 0
        self.silent_after: int | None = None
        self.damaged: int | None = None

    def reader(self, topic: str, *, after: MessageId = EARLIEST, stored: bool = False) -> Reader:
        reader = super().reader(topic, after=after, stored=stored)
        read, given = reader.read, 0

        def watched(timeout_s: float) -> Entry | None:
            nonlocal given
            if given == self.silent_after:
                self._world.sleep(timeout_s)
                return None
            found = read(timeout_s)
            if found is not None and found.message_id.entry == self.damaged:
                raise DamagedEntry(f"entry 0:{self.damaged} of {topic} can't be read: checksum", 0, self.damaged)
            given += found is not None
            self.read += found is not None
            return found

        reader.read = watched  # type: ignore[method-assign]
        return reader


def driver(world: Alone, client: Client | None = None, **parts: Any) -> Owner:
    return drivers.driver(world, client, settings=SETTINGS, **parts)


def committed(world: Alone, batches: int) -> Owner:
    """A driver that has committed some batches, and is gone."""
    owner = driver(world)
    owner.take_over("query", "run")
    commit(world, owner, *range(batches))
    owner.close()
    return owner


@pytest.mark.parametrize(("since", "kept"), [(None, [2, 3, 4]), (1, [1, 2, 3, 4]), (4, [2, 3, 4])])
def test_the_markers_that_a_savepoint_needs_are_kept_beside_the_newest(
    world: Alone, since: int | None, kept: list[int]
) -> None:
    committed(world, 5)
    settings = replace(SETTINGS, markers_retained_since=since)
    assert list(read_log(Client(world), CONTROL, settings).markers) == kept


def test_where_reading_may_begin_is_handed_on_by_a_driver_that_writes_no_batch(world: Alone) -> None:
    """Else the next takeover would read from the beginning."""
    committed(world, 8)
    begins = [oldest_needed(Client(world), CONTROL, SETTINGS)]
    for run in ("run-2", "run-3"):
        owner = driver(world)
        owner.take_over("query", run)
        owner.close()
        begins.append(oldest_needed(Client(world), CONTROL, SETTINGS))
    assert EARLIEST < begins[0] <= begins[1] == begins[2]


@pytest.mark.parametrize("silent_after", [0, 1, 4])
def test_silence_before_the_last_record_is_no_end(world: Alone, silent_after: int) -> None:
    committed(world, 2)
    client = Watched(world)
    client.silent_after = silent_after
    with pytest.raises(Unanswered, match=rf"^{CONTROL} can't be read to its end now. No record came for 1 s after"):
        read_log(client, CONTROL, SETTINGS)


@pytest.mark.parametrize("damaged", [0, 2, -1])
def test_a_record_that_nobody_can_read_is_damage_and_not_a_network_that_may_come_back(
    world: Alone, damaged: int
) -> None:
    """To try again, as after any error of the network, never ends; and "starting again is safe" is wrong advice."""
    committed(world, 2)
    client = Watched(world)
    entries = [entry.message_id.entry for entry in world.broker.topic(CONTROL).readable()]
    client.damaged = entries[damaged]
    told = f"a record of the control log can't be read: entry 0:{entries[damaged]} of .*restore the control topic"
    with pytest.raises(DamagedLog, match=told):
        read_log(client, CONTROL, SETTINGS)
    with pytest.raises(DamagedLog, match=told):
        driver(world, client).take_over("query", "run-2")


def test_silence_of_the_last_record_is_no_empty_log(world: Alone) -> None:
    committed(world, 2)
    client = Watched(world)
    client.silent_after = 0
    with pytest.raises(Unanswered, match=f"^{CONTROL} can't be read to its end now"):
        oldest_needed(client, CONTROL, SETTINGS)


def test_each_record_is_told_in_turn(world: Alone) -> None:
    committed(world, 2)
    seen: list[Record] = []
    read_log(Client(world), CONTROL, SETTINGS, each=lambda record, message: seen.append(record))
    assert [type(record) for record in seen] == [OwnerRecord, *[Intent, Marker] * 2]


@pytest.mark.parametrize("left", [0, 1])
def test_records_that_were_deleted_behind_what_was_read_are_told_as_gone(world: Alone, left: int) -> None:
    """As by a message TTL. Else the log would seem to end where it was read to, and a batch not to be committed."""
    committed(world, 1)
    client, log = Client(world), world.broker.topic(CONTROL)
    view = read_log(client, CONTROL, SETTINGS)
    driver(world).take_over("query", "run-2")
    log.first = len(log.entries) - left
    with pytest.raises(EntriesGone, match=f"^reading {CONTROL} from entry {view.read_to.place} on leaves out entries"):
        read_on(client, CONTROL, SETTINGS, view)


def test_what_is_not_retained_may_be_gone(world: Alone) -> None:
    committed(world, 40)
    begins = oldest_needed(Client(world), CONTROL, SETTINGS)
    world.broker.topic(CONTROL).first = begins.entry + 1
    assert list(read_retained(Client(world), CONTROL, SETTINGS).markers) == [37, 38, 39]


def test_a_marker_that_was_deleted_while_the_log_was_read_leaves_its_batch_unknown(world: Alone) -> None:
    """Our own OWNER in sight proves nothing of records that were passed: the batch would be written again."""
    client, log = Watched(world), world.broker.topic(CONTROL)

    def fall_silent(step: Step, phase: Phase, batch_id: int | None) -> None:
        if (step, phase) == (Step.OWNER, "before") and owner.in_hand is not None:
            client.silent_after = 2  # behind OWNER and INTENT, before the MARKER

    def delete(seconds: float) -> None:
        world.sleep(seconds)
        if client.silent_after is not None and seconds < SETTINGS.read_timeout_s:  # a pause between two tries
            client.silent_after = None
            log.first = log.readable()[-1].message_id.entry

    owner = driver(world, client, sleep=delete, observer=fall_silent)
    owner.take_over("query", "run")
    world.failing = {"END_TXN commit": [(LOST, True)]}
    with pytest.raises(CommitUnknown, match=r"The last problem was: reading .* leaves out entries"):
        commit(world, owner, 0)
    assert world.log.count("NEW_TXN") == 2, "the priming, and the batch: it was not written again"


@pytest.mark.parametrize("silent_after", [0, 1, 3])
def test_a_takeover_waits_for_a_log_that_is_silent_and_calls_nothing_damaged(world: Alone, silent_after: int) -> None:
    """As with a bookie that hangs and a cold cache: a new name for the sink would write every batch twice."""
    registered = committed(world, 3).registration
    client = Watched(world)
    client.silent_after = silent_after
    before = len(world.broker.topic(CONTROL).entries)
    with pytest.raises(CommitUnknown, match=r"waited for the control log to be readable .*starting again is safe"):
        driver(world, client).take_over("query", "run-2", registered)
    assert len(world.broker.topic(CONTROL).entries) == before

    started = world.clock()

    def sleep(seconds: float) -> None:
        world.sleep(seconds)
        if world.clock() > started + 10:
            client.silent_after = None

    patient = driver(world, client, sleep=sleep)
    patient.take_over("query", "run-2", registered)
    assert patient.decide(2, identity(2)) is Action.SKIP


def test_a_log_that_falls_silent_behind_our_own_record_is_not_taken_for_a_hidden_one(world: Alone) -> None:
    """Nothing is to be freed: no transaction is opened for that."""
    owner = committed(world, 2)
    client = Watched(world)

    def fall_silent(step: Step, phase: Phase, batch_id: int | None) -> None:
        client.silent_after = 0 if (step, phase) == (Step.OWNER, "before") else client.silent_after

    def sleep(seconds: float) -> None:
        world.sleep(seconds)
        if seconds < SETTINGS.read_timeout_s:  # a pause between two tries
            client.silent_after = None

    patient = driver(world, client, sleep=sleep, observer=fall_silent)
    opened = world.log.count("NEW_TXN")
    patient.take_over("query", "run-2", owner.registration)
    assert world.log.count("NEW_TXN") == opened


def test_an_empty_topic_is_an_empty_log(world: Alone) -> None:
    assert read_log(Watched(world), CONTROL, SETTINGS).empty
    assert oldest_needed(Watched(world), CONTROL, SETTINGS) == EARLIEST


def test_a_takeover_reads_the_retained_records_once_however_long_the_log_is(world: Alone) -> None:
    """None of the records is deleted here, as where the namespace retains everything for ever."""
    committed(world, 40)
    assert len(read_log(Client(world), CONTROL, OwnerSettings()).markers) == 40
    client = Watched(world)
    owner = driver(world, client)
    owner.take_over("query", "run-2")
    assert list(owner.view.markers) == [37, 38, 39]
    # The last record, which says where to begin; two of each retained batch, and the INTENT behind the marker that
    # expired last; our own OWNER.
    assert client.read <= 1 + 2 * 4 + 1
    commit(world, owner, 40)
    assert list(owner.view.markers) == [38, 39, 40]


def test_a_log_that_does_not_say_where_to_begin_is_read_from_its_beginning(world: Alone) -> None:
    """As one that an earlier version has written."""
    committed(world, 3)
    client = Watched(world)
    owner = driver(world, client)
    owner.take_over("query", "run-2")
    assert client.read == 1 + 7 + 1
    assert owner.view.begun is True


def test_a_run_that_settles_reads_what_is_retained(world: Alone) -> None:
    committed(world, 40)
    client = Watched(world)
    owner = driver(world, client)
    owner.take_over("query", "run-2")
    client.read = 0
    owner.settle()
    assert list(owner.view.markers) == [37, 38, 39]
    assert client.read <= 2 * 4 + 2


@pytest.mark.parametrize("where", ["first", "in the middle", "last"])
def test_what_a_replicator_brought_is_no_record_of_this_log(world: Alone, where: str) -> None:
    """Another cluster has a sink of the same name, and a version before this one let its log be replicated."""
    committed(world, 3)
    told = read_log(Client(world), CONTROL, SETTINGS)
    entries = world.broker.topic(CONTROL).entries
    foreign = Entry(
        entries[0].message_id, encode(OwnerRecord(99, "other", "other", 0, 0)), None, replicated_from="west"
    )
    place = {"first": 0, "in the middle": 3, "last": len(entries)}[where]
    entries.insert(place, foreign)
    entries[:] = [replace(entry, message_id=MessageId(1, number)) for number, entry in enumerate(entries)]
    seen = read_log(Client(world), CONTROL, SETTINGS)
    assert (seen.known, seen.owner, seen.last_number) == (told.known, told.owner, told.last_number)
    if where == "last":
        assert oldest_needed(Client(world), CONTROL, SETTINGS) == EARLIEST
