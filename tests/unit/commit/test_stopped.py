"""Batches of a query that was stopped: nothing new is begun, and what is known is told."""

from __future__ import annotations

import threading

import pytest

from eos.commit.attempt import attempt
from eos.commit.decision import Action
from eos.commit.owner import Owner
from eos.errors import CommitUnknown, NotCommitted, Stopped
from tests.simulation.client import Client
from tests.simulation.job import WriteData
from tests.simulation.world import Alone
from tests.unit.commit.driver import LOST, commit, identity


class Cancelled(WriteData):
    """A Spark job that the stop has cancelled."""

    def __init__(self, world: Alone, stopped: threading.Event) -> None:
        super().__init__(Client(world), 0)
        self.stopped = stopped

    def finish(self) -> None:
        self.stopped.set()
        raise NotCommitted("Spark could not run it: Job 3 cancelled")


def test_a_stop_does_not_wait_long_for_the_abort(world: Alone, owner: Owner) -> None:
    stopped = threading.Event()
    owner.waits.stopped = stopped.is_set
    world.failing = {"END_TXN abort": [(LOST, False)] * 10_000}
    started = world.clock()
    with pytest.raises(NotCommitted):
        attempt(owner, 0, identity(0), Cancelled(world, stopped))
    assert owner.unsettled
    assert world.clock() - started < 6


def test_a_stopped_query_opens_no_transaction(world: Alone, owner: Owner) -> None:
    owner.waits.stopped = lambda: True
    opened = world.log.count("NEW_TXN")
    with pytest.raises(Stopped, match="before batch 0 was written"):
        commit(world, owner, 0)
    assert world.log.count("NEW_TXN") == opened


def test_a_stopped_query_is_not_told_that_a_committed_batch_is_not(world: Alone, owner: Owner) -> None:
    commit(world, owner, 0)
    owner.waits.stopped = lambda: True
    assert commit(world, owner, 0) == [Action.SKIP]


def test_a_commit_whose_answer_was_lost_is_settled_though_the_query_was_stopped(world: Alone, owner: Owner) -> None:
    world.failing = {"END_TXN commit": [(KeyboardInterrupt(), True)]}
    with pytest.raises(KeyboardInterrupt):
        commit(world, owner, 0)
    owner.waits.stopped = lambda: True
    assert commit(world, owner, 0) == [Action.SKIP]


def test_an_unknown_commit_says_so_when_the_query_is_stopped(world: Alone, owner: Owner) -> None:
    world.failing = {"END_TXN commit": [(LOST, False)] * 10_000}
    owner.waits.stopped = lambda: "END_TXN commit" in world.log
    with pytest.raises(CommitUnknown):
        commit(world, owner, 0)
