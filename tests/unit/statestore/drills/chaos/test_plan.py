from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statestore.cli.drill import KILLS
from statestore.drills.chaos.plan import (
    AT_LEAST,
    FRAMES,
    KINDS,
    Family,
    chance_of,
    kind_of,
    make_plan,
    make_rounds,
    parse_faults,
)
from statestore.errors import InvalidInput

OWN = [kind for kind in KINDS if kind.runs != "standalone"]
ON_A_CLUSTER = [kind for kind in KINDS if kind.runs != "in one process"]
EVERYWHERE = [kind for kind in OWN if not kind.end_to_end]
families = st.sets(st.sampled_from(sorted({kind.family for kind in OWN})), min_size=1)


@given(st.integers(1, 400), st.integers(), families)
def test_the_same_seed_gives_the_same_plan(kills: int, seed: int, families: set[Family]) -> None:
    plan = make_plan(kills, seed, families, end_to_end=True)
    assert plan == make_plan(kills, seed, families, end_to_end=True)
    assert [fault.n for fault in plan] == list(range(1, kills + 1))
    assert {fault.family for fault in plan} <= {family.value for family in families}
    assert all(kind_of(fault.kind).family == fault.family for fault in plan)


def test_another_seed_gives_another_plan() -> None:
    assert make_plan(KILLS, 1) != make_plan(KILLS, 2)


@given(st.integers(), st.booleans())
def test_by_default_each_kind_comes_often_enough(seed: int, end_to_end: bool) -> None:
    counts = Counter(fault.kind for fault in make_plan(KILLS, seed, end_to_end=end_to_end))
    assert counts.keys() == {kind.name for kind in (OWN if end_to_end else EVERYWHERE)}
    assert min(counts.values()) >= AT_LEAST
    assert counts.total() >= 150
    assert {name for name, count in counts.items() if count > AT_LEAST} <= {kind.name for kind in KINDS if kind.cheap}


@given(st.integers(1, len(EVERYWHERE)), st.integers())
def test_few_kills_are_of_different_kinds(kills: int, seed: int) -> None:
    assert max(Counter(fault.kind for fault in make_plan(kills, seed)).values()) == 1


@given(st.integers())
def test_faults_to_executors_come_first(seed: int) -> None:
    places = [fault.n for fault in make_plan(KILLS, seed) if kind_of(fault.kind).on_executors]
    assert places == list(range(1, AT_LEAST + 1))


def test_every_family_has_a_kind() -> None:
    assert {kind.family for kind in KINDS} == set(Family)
    assert len({kind.name for kind in KINDS}) == len(KINDS)


def test_a_fault_has_its_own_chance() -> None:
    """What a fault does is the same whatever was drawn before it."""
    one, other = make_plan(2, 7)
    assert chance_of(7, one).random() == chance_of(7, one).random() != chance_of(7, other).random()
    assert chance_of(7, one).random() != chance_of(8, one).random()


def test_families_and_kinds_are_read_from_text() -> None:
    assert parse_faults(None) == parse_faults("") == tuple(Family)
    assert parse_faults(" network ,driver-kill") == ("network", "driver-kill")
    with pytest.raises(InvalidInput, match=r"no fault family and no kind brokers, net\. There are the families driver"):
        parse_faults("net,driver,brokers")


def test_a_plan_has_a_fault() -> None:
    with pytest.raises(InvalidInput, match="--kills is 0"):
        make_plan(0, 7)
    with pytest.raises(InvalidInput, match="planner: this needs the job of --end-to-end"):
        make_plan(5, 7, [Family.PLANNER])
    assert {fault.kind for fault in make_plan(5, 7, [Family.PLANNER], end_to_end=True)} == {"planner-kill"}


def test_a_plan_has_what_was_asked_for() -> None:
    kinds = {fault.kind for fault in make_plan(20, 7, parse_faults("worker,driver-kill-in-commit,ttl"))}
    assert kinds == {"worker-kill", "driver-kill-in-commit", "transaction-timeout"}


def test_the_job_from_topic_to_topic_changes_no_plan_of_a_drill_without_it() -> None:
    """The drill of the tests, whose seed was chosen for its kinds."""
    kinds = {kind_of(fault.kind).family for fault in make_plan(12, 212071)}
    assert kinds == {kind.family for kind in OWN} - {Family.PLANNER}


@given(st.integers(1, 7), st.integers())
def test_each_round_of_a_standalone_drill_has_each_kind_and_each_boundary_of_a_commit(rounds: int, seed: int) -> None:
    plan = make_rounds(rounds, seed)
    assert plan == make_rounds(rounds, seed)
    assert [fault.n for fault in plan] == list(range(1, len(plan) + 1))
    counts = Counter(fault.kind for fault in plan)
    assert counts == {kind.name: rounds * kind.times for kind in ON_A_CLUSTER}
    assert counts["commit-frame-cut"] == counts["commit-frame-half-open"] == FRAMES * rounds


@pytest.mark.parametrize(
    ("standalone", "faults", "says"),
    [
        (False, "broker,topic-move", r"^topic-move: this needs executors"),
        (False, "topic,broker,commit", r"^topic, commit: this needs executors"),
        (False, "planner-kill,driver", r"^planner-kill: this needs the job of --end-to-end"),
        (True, "broker,driver-kill,zookeeper", r"^driver-kill, zookeeper: this is not possible with --standalone"),
    ],
)
def test_what_is_impossible_is_not_left_out_in_silence(standalone: bool, faults: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        (make_rounds if standalone else make_plan)(5, 7, parse_faults(faults))
    assert make_rounds(5, 7) if standalone else make_plan(5, 7), "who asks for nothing gets what there is"


def test_a_drill_does_what_its_jobs_can_suffer() -> None:
    with pytest.raises(InvalidInput, match=r"topic: this needs executors on a cluster. Add --standalone"):
        make_plan(5, 7, [Family.TOPIC])
    with pytest.raises(InvalidInput, match=r"planner: this is not possible with --standalone. Leave that option out"):
        make_rounds(5, 7, [Family.PLANNER])
    with pytest.raises(InvalidInput, match="--rounds is 0"):
        make_rounds(0, 7)
    assert {fault.kind for fault in make_rounds(2, 7, ["executor"])} == {"executor-kill", "node-kill"}
