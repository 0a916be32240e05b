"""Exactly once, whatever goes wrong: the real takeover and micro-batch code on the simulated cluster.

Up to three drivers of one query run at the same time, on one checkpoint, in an order that Hypothesis
chooses, with faults at any request. Then everything comes to rest, a last run finishes the job, and the
rows that a reader finds are counted.
"""

from __future__ import annotations

from functools import partial

from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from eos.errors import CommitUnknown, Fenced, NotCommitted, StaleBatch
from tests.simulation.broker import Broker
from tests.simulation.job import Job, KeptProducers, recover, verdict
from tests.simulation.world import REQUESTS, Fault, Plan, Scheduler

# The errors that a driver may legally end with. Anything else, DamagedLog above all, is a false alarm.
EXPECTED = (Fenced, StaleBatch, NotCommitted, CommitUnknown)

DRIVERS = st.integers(0, 2)
FAULTS = st.sampled_from(list(Fault))
ANYWHERE = st.dictionaries(st.tuples(DRIVERS, st.sampled_from(REQUESTS), st.integers(0, 8)), FAULTS, max_size=5)
# Most of what can go wrong goes wrong where transactions are filled and ended, in the first of them.
AT_THE_CORE = st.dictionaries(
    st.tuples(
        DRIVERS, st.sampled_from(("SEND", "SEND in transaction", "END_TXN abort", "END_TXN commit")), st.integers(0, 2)
    ),
    FAULTS,
    min_size=1,
    max_size=5,
)
SCHEDULES = st.lists(st.tuples(st.integers(0, 11), st.integers(1, 40)), max_size=40).map(tuple)
PLANS = st.builds(Plan, schedule=st.just(()) | SCHEDULES, faults=ANYWHERE | AT_THE_CORE)


# The first driver dies with a record in the log's first transaction, which hides all that follows; the second
# commits a batch after it, and dies before any other driver is told.
HIDDEN_COMMIT = Plan(
    schedule=((0, 60),),
    faults={(0, "SEND in transaction", 0): Fault.CRASH_AFTER, (1, "END_TXN commit", 0): Fault.CRASH_AFTER},
)


def played(plan: Plan, drivers: int, **parts: object) -> Job:
    """Play a plan, bring the cluster to rest, and return the job."""
    world = Scheduler(Broker(), plan)
    job = Job(world, target=5, **parts)  # type: ignore[arg-type]
    world.run([partial(job.run, f"run-{n}") for n in range(drivers)])
    recover(job)
    return job


def check(job: Job) -> None:
    """Assert what must hold after any plan."""
    found = verdict(job)
    assert found.exactly_once, found
    *_, last = job.ends.values()
    assert last is None, f"the job can't go on: {last!r}"
    for run_id, end in job.ends.items():
        assert end is None or isinstance(end, EXPECTED), f"{run_id}: a false alarm: {end!r}"


@given(PLANS, st.integers(1, 3))
@settings(max_examples=5 * settings().max_examples)
@example(Plan(), 1)
@example(Plan(), 3)
@example(HIDDEN_COMMIT, 2)
def test_every_row_of_every_batch_once(plan: Plan, drivers: int) -> None:
    job = played(plan, drivers)
    for end in job.ends.values():
        event(f"a run ended with {type(end).__name__}")
    event(f"skipped: {job.skipped > 0}")
    check(job)


@given(PLANS, st.integers(1, 3))
@settings(max_examples=2 * settings().max_examples)
@example(Plan(), 1)
@example(Plan(), 3)
@example(HIDDEN_COMMIT, 2)
def test_every_row_once_where_producers_stay_open_from_batch_to_batch(plan: Plan, drivers: int) -> None:
    check(played(plan, drivers, delivery=KeptProducers(), second_first=False))
