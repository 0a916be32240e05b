"""What a micro-batch covers. The rules are those on top of `eos.source.stream_plan`."""

from __future__ import annotations

import json

import pytest

from eos.errors import InvalidInput
from eos.source.batch_pace import Limits
from eos.source.boundaries import Boundary
from eos.source.offsets import BEGINNING, UNPLANNED, Offsets, Position
from eos.source.ranges import Range
from eos.source.stream_plan import StreamPlan, shares
from tests.unit.source.fake_brokers import FakeBrokers, FakeTopic, at, entries

LATEST = Boundary("latest")


class Plan(StreamPlan):
    """A plan that keeps its warnings."""

    def __init__(self, brokers: FakeBrokers, *, fail: bool = True, start: Boundary = LATEST) -> None:
        self.warnings: list[str] = []
        super().__init__(brokers, start, fail_on_data_loss=fail, warn=self.warnings.append)


def offsets(**positions: str) -> Offsets:
    return Offsets({topic: Position.parse(text) for topic, text in positions.items()})


def test_where_a_query_begins_is_looked_at_when_its_first_batch_is_planned() -> None:
    """Spark asks also where batch 0 was planned before a crash: nothing may move then, nor be refused."""
    brokers = FakeBrokers(t=FakeTopic(entries(5, 0, 3), stands=at("5:3")))
    plan = Plan(brokers)
    assert plan.first() == UNPLANNED == logged(UNPLANNED)
    assert brokers.begun == []
    for _ in range(2):
        assert plan.latest(plan.first(), None).starts == offsets(t="pinned 5:3").topics
        brokers.held["t"].delivered += entries(5, 4, 9)
    assert brokers.begun == [("t", LATEST)]


def logged(end: Offsets) -> Offsets:
    """Return an offset as Spark's checkpoint gives it back."""
    return Offsets.from_json(json.loads(json.dumps(end.as_json())))


def test_a_first_batch_that_was_planned_begins_there_again_wherever_the_subscription_stands() -> None:
    brokers = FakeBrokers(t=FakeTopic(entries(5, 0, 3), stands=at("5:3")))
    plan = Plan(brokers)
    start = plan.first()
    brokers.held["t"].delivered += entries(5, 4, 6)
    end = logged(plan.latest(start, None))
    assert end == Offsets({"t": Position(at("5:6"))}, {"t": Position(at("5:3"), delivered=False)})
    (planned,) = plan.ranges(plan.first(), end)
    assert str(planned) == "t behind 5:3 to 5:6"
    brokers.held["t"].stands = at("5:6")  # a TTL, a command, or a reset
    again = Plan(brokers)
    assert again.ranges(again.first(), end) == [planned]
    assert again.latest(end, None) == end, "without news the end is the same to the letter, or Spark plans a batch"
    assert again.ranges(end, end) == []
    brokers.held["t"].delivered += entries(5, 7, 7)
    assert again.latest(end, None) == offsets(t="5:7")
    assert [str(part) for part in again.ranges(end, offsets(t="5:7"))] == ["t behind 5:6 to 5:7"]
    brokers.held["t"].place = at("9:-1")
    lossy = Plan(brokers)
    with pytest.raises(InvalidInput, match=r"begin after 5:3, but the topic now begins after 9:-1"):
        lossy.ranges(lossy.first(), end)


def test_a_subscription_is_reset_once_the_first_batch_is_planned_and_not_for_one_that_was() -> None:
    brokers = FakeBrokers(t=FakeTopic(entries(5, 0, 9), stands=at("5:2")))
    brokers.reset = at("5:6")
    plan = Plan(brokers)
    start = plan.first()
    assert brokers.held["t"].stands == at("5:2"), "nothing has moved yet"
    end = logged(plan.latest(start, None))
    assert [str(part) for part in plan.ranges(plan.first(), end)] == ["t behind 5:6 to 5:9"]
    brokers.reset = at("5:9")
    again = Plan(brokers)
    assert [str(part) for part in again.ranges(again.first(), end)] == ["t behind 5:6 to 5:9"]
    again.first()
    assert again.latest(end, None) == end
    assert brokers.held["t"].stands == at("5:6"), "what arrived since the first start would be skipped"
    fresh = Plan(brokers)
    assert fresh.latest(fresh.first(), None).starts == offsets(t="pinned 5:9").topics, "a new checkpoint"


def test_a_batch_whose_start_the_checkpoint_lacks_is_refused() -> None:
    plan = Plan(FakeBrokers(t=FakeTopic(entries(5, 0, 9), stands=at("5:2"))))
    with pytest.raises(InvalidInput, match=r"ends with 5:6 on t, but not where it begins"):
        plan.ranges(plan.first(), offsets(t="5:6"))
    assert plan.ranges(plan.first(), offsets(t="pinned 5:2")) == [], "it is only pinned"


def test_the_end_is_the_last_message_that_can_be_delivered() -> None:
    plan = Plan(FakeBrokers(t=FakeTopic(entries(5, 0, 3)), empty=FakeTopic()))
    start = offsets(t="pinned 5:-1", empty="pinned 5:-1")
    end = plan.latest(start, None)
    assert end == offsets(t="5:3", empty="pinned 5:-1")
    assert plan.ranges(start, end) == [Range("t", Position(at("5:-1"), delivered=False), at("5:3"), first=at("5:0"))]


def test_the_end_never_lies_before_a_pin_at_a_marker() -> None:
    start = offsets(t="pinned 5:8")
    plan = Plan(FakeBrokers(t=FakeTopic(entries(5, 0, 3))))
    assert plan.latest(start, None) == start
    assert plan.ranges(start, start) == []


def test_a_batch_without_news_ends_where_it_starts() -> None:
    start = offsets(t="5:3")
    assert Plan(FakeBrokers(t=FakeTopic(entries(5, 0, 3)))).latest(start, None) == start


@pytest.mark.parametrize(
    ("left", "words"), [([], "holds no message at all"), (entries(4, 0, 9), "holds nothing behind 4:9")]
)
def test_a_start_behind_the_last_message_is_refused(left: list[object], words: str) -> None:
    brokers = FakeBrokers(t=FakeTopic(left))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=rf"data of t was lost: .*up to 5:3.*{words}.*made again.*failOnDataLoss"):
        Plan(brokers).latest(offsets(t="5:3"), None)
    assert brokers.acknowledged == [], "an acknowledgement behind the end would release what is not written yet"


def test_a_loss_that_is_accepted_is_warned_of_and_reading_begins_anew() -> None:
    plan = Plan(FakeBrokers(t=FakeTopic(entries(4, 0, 9))), fail=False)
    start = offsets(t="5:3")
    end = plan.latest(start, None)
    assert end == offsets(t="4:9")
    assert plan.ranges(start, end) == [Range("t", BEGINNING, at("4:9"))]
    assert all("was lost" in warning for warning in plan.warnings)
    assert len(plan.warnings) == plan.losses == 2


def test_an_accepted_loss_of_everything_leaves_nothing_to_read() -> None:
    plan = Plan(FakeBrokers(t=FakeTopic()), fail=False)
    end = plan.latest(offsets(t="5:3"), None)
    assert end.topics == {"t": BEGINNING}
    assert plan.ranges(offsets(t="5:3"), end) == []


def test_an_end_before_its_start_is_refused_when_a_logged_batch_is_replayed() -> None:
    with pytest.raises(InvalidInput, match=r"read up to 6:0.*nothing behind 5:3"):
        Plan(FakeBrokers(t=FakeTopic())).ranges(offsets(t="pinned 6:0"), offsets(t="5:3"))


def test_an_accepted_end_before_its_start_in_one_ledger_reads_nothing_again() -> None:
    """What is left of the ledger lies before the start, and was read."""
    plan = Plan(FakeBrokers(t=FakeTopic(entries(5, 0, 3))), fail=False)
    end = plan.latest(offsets(t="5:8"), None)
    assert end == offsets(t="5:3")
    assert plan.ranges(offsets(t="5:8"), end) == []
    assert plan.ranges(offsets(t="pinned 5:8"), end) == [Range("t", BEGINNING, at("5:3"))], "of which nothing was read"


def test_a_partition_that_the_broker_removed_is_no_loss_while_nothing_of_it_was_read() -> None:
    brokers = FakeBrokers(a=FakeTopic(entries(5, 0, 3)))
    brokers.deleted = brokers.removed = ["idle"]
    assert Plan(brokers).latest(UNPLANNED, None).starts == offsets(a="pinned 5:-1").topics
    start = offsets(a="5:1", idle="pinned 6:-1")
    plan = Plan(brokers)
    end = plan.latest(start, None)
    assert end == offsets(a="5:3", idle="beginning")
    assert plan.latest(end, None) == end
    (warning,) = plan.warnings
    assert "partition idle is gone" in warning
    with pytest.raises(InvalidInput, match=r"topic idle is gone.*read it up to 6:2"):
        Plan(brokers).latest(offsets(idle="6:2"), None)


@pytest.mark.parametrize("available_now", [False, True])
def test_a_topic_of_a_pattern_whose_partitions_are_all_removed_is_not_listed_and_is_no_loss(
    available_now: bool,
) -> None:
    brokers = FakeBrokers(a=FakeTopic(entries(5, 0, 3)))
    brokers.removed = ["idle"]
    brokers.gone = ["idle"]
    plan = Plan(brokers)
    if available_now:
        plan.stop_at_what_is_there()
    assert plan.latest(offsets(a="5:1", idle="pinned 6:-1"), None) == offsets(a="5:3", idle="beginning")
    assert "partition idle is gone" in plan.warnings[0]
    with pytest.raises(InvalidInput, match=r"topic idle is gone.*read it up to 6:2"):
        Plan(brokers).latest(offsets(a="5:1", idle="6:2"), None)


@pytest.mark.parametrize("position", ["6:2", "pinned 6:2"])
def test_a_topic_that_the_options_no_longer_select_is_not_told_as_gone(position: str) -> None:
    brokers = FakeBrokers(a=FakeTopic(entries(5, 0, 3)))
    brokers.unselected = brokers.removed = ["b"]
    start = offsets(a="5:3", b=position)
    with pytest.raises(
        InvalidInput, match=r"no longer select the topic b, .* up to 6:2\. Later mess.*Select the topic"
    ):
        Plan(brokers).latest(start, None)
    careless = Plan(brokers, fail=False)
    assert careless.latest(start, None) == offsets(a="5:3")
    assert len(careless.warnings) == 1


@pytest.mark.parametrize("limits", [Limits(entries=3), Limits(bytes=300)], ids=["entries", "bytes"])
def test_a_loss_that_is_found_where_a_batch_is_cut_is_as_the_option_says(limits: Limits) -> None:
    brokers = FakeBrokers(t=FakeTopic(entries(5, 0, 9)))
    brokers.lost = ["t"]
    with pytest.raises(InvalidInput, match="data of t was lost"):
        Plan(brokers).latest(offsets(t="5:0"), limits)
    careless = Plan(brokers, fail=False)
    assert careless.latest(offsets(t="5:0"), limits) == offsets(t="5:9")
    assert "data of t was lost" in careless.warnings[0]


def test_acknowledged_is_what_lies_before_the_start_and_once() -> None:
    brokers = FakeBrokers(t=FakeTopic(entries(5, 0, 9)))
    plan = Plan(brokers)
    plan.latest(offsets(t="pinned 5:2"), None)
    assert brokers.acknowledged == [], "a pin is where the subscription stands already"
    plan.latest(offsets(t="5:4"), None)
    plan.latest(offsets(t="5:4"), None)
    assert brokers.acknowledged == [("t", at("5:3"))]


def test_the_first_entry_of_a_ledger_releases_what_lies_before_the_ledger() -> None:
    brokers = FakeBrokers(t=FakeTopic(entries(5, 0, 9)))
    Plan(brokers).latest(offsets(t="5:0"), None)
    assert brokers.acknowledged == [("t", at("5:-1"))]


def test_a_partition_that_appears_is_pinned_first_and_read_from_the_next_batch_on() -> None:
    brokers = FakeBrokers(a=FakeTopic(entries(5, 0, 3)), b=FakeTopic(entries(7, 0, 2), stands=at("7:-1")))
    plan = Plan(brokers)
    start = offsets(a="5:3")
    joined = plan.latest(start, None)
    assert joined == offsets(a="5:3", b="pinned 7:-1")
    assert (brokers.pins, brokers.begun) == (["b"], []), "whatever the option says: it had no messages before"
    assert plan.ranges(start, joined) == []
    end = plan.latest(joined, None)
    assert [str(one) for one in plan.ranges(joined, end)] == ["b behind 7:-1 to 7:2"]


def test_a_topic_that_is_gone_ends_the_query_or_is_left_out_with_a_warning() -> None:
    brokers = FakeBrokers(a=FakeTopic(entries(5, 0, 3)))
    start = offsets(a="5:3", gone="6:2")
    with pytest.raises(InvalidInput, match=r"topic gone is gone.*read it up to 6:2.*failOnDataLoss=false"):
        Plan(brokers).latest(start, None)
    careless = Plan(brokers, fail=False)
    assert careless.latest(start, None) == offsets(a="5:3")
    assert len(careless.warnings) == 1


def test_a_topic_that_is_deleted_while_it_is_asked_is_gone_as_well() -> None:
    """A partition goes before the number of partitions does; and one that is new may be gone before it is pinned."""
    brokers = FakeBrokers(a=FakeTopic(entries(5, 0, 3)))
    brokers.deleted = ["gone", "new"]
    start = offsets(a="5:1", gone="6:2")
    with pytest.raises(InvalidInput, match=r"topic gone is gone.*read it up to 6:2.*failOnDataLoss=false"):
        Plan(brokers).latest(start, None)
    careless = Plan(brokers, fail=False)
    careless.stop_at_what_is_there()
    assert careless.latest(start, Limits(entries=10)) == offsets(a="5:3")
    assert len(careless.warnings) == 1
    assert careless.newest() == offsets(a="5:3")


def test_available_now_ends_at_what_was_there() -> None:
    brokers = FakeBrokers(a=FakeTopic(entries(5, 0, 3)), empty=FakeTopic())
    plan = Plan(brokers)
    plan.stop_at_what_is_there()
    brokers.held["a"].delivered += entries(5, 4, 9)
    brokers.held["empty"].delivered += entries(6, 0, 1)
    brokers.held["late"] = FakeTopic(entries(7, 0, 1))
    start = offsets(a="5:1", empty="pinned 5:-1")
    end = plan.latest(start, None)
    assert end == offsets(a="5:3", empty="pinned 5:-1")
    assert plan.latest(end, None) == end


def test_available_now_reads_partitions_that_were_added_before_it_began() -> None:
    brokers = FakeBrokers(a=FakeTopic(entries(5, 0, 3)), b=FakeTopic(entries(7, 0, 2), stands=at("7:-1")))
    plan = Plan(brokers)
    plan.stop_at_what_is_there()
    joined = plan.latest(offsets(a="5:3"), None)
    end = plan.latest(joined, None)
    assert end == offsets(a="5:3", b="7:2")
    assert plan.latest(end, None) == end


def test_a_limit_on_entries_holds_for_all_topics_together() -> None:
    brokers = FakeBrokers(a=FakeTopic(entries(5, 0, 99)), b=FakeTopic(entries(6, 0, 2)))
    start = offsets(a="5:9", b="6:0")
    end = Plan(brokers).latest(start, Limits(entries=10))
    assert end == offsets(a="5:17", b="6:2")
    assert brokers.probes == [("a", at("5:17"))]


def test_a_limited_end_is_the_next_message_behind_markers_and_aborted_entries() -> None:
    topic = FakeTopic([at("5:0"), at("5:8"), at("5:20")])
    assert Plan(FakeBrokers(t=topic)).latest(offsets(t="5:0"), Limits(entries=3)) == offsets(t="5:8")


def test_a_limit_that_reaches_past_a_ledger_ends_in_the_next_one() -> None:
    topic = FakeTopic(entries(5, 0, 4) + entries(9, 0, 50))
    end = Plan(FakeBrokers(t=topic)).latest(offsets(t="5:2"), Limits(entries=10))
    assert end == offsets(t="9:0")


def test_the_largest_limit_is_no_place_before_the_start_for_a_broker() -> None:
    brokers = FakeBrokers(t=FakeTopic(entries(5, 0, 4) + entries(9, 0, 50)))
    Plan(brokers).latest(offsets(t="5:2"), Limits(entries=2**63 - 1))
    assert [place.entry < 2**63 for _, place in brokers.probes] == [True]


def test_with_less_than_one_entry_for_each_topic_they_take_turns() -> None:
    brokers = FakeBrokers(a=FakeTopic(entries(5, 0, 9)), b=FakeTopic(entries(6, 0, 9)), c=FakeTopic(entries(7, 0, 9)))
    plan, position, moved = Plan(brokers), offsets(a="5:0", b="6:0", c="7:0"), set()
    for _ in range(3):
        end = plan.latest(position, Limits(entries=1))
        moved |= {one.topic for one in plan.ranges(position, end)}
        position = end
    assert position == offsets(a="5:1", b="6:1", c="7:1")
    assert moved == {"a", "b", "c"}


def test_a_limit_on_bytes_goes_by_the_size_of_entries_seen() -> None:
    brokers = FakeBrokers(t=FakeTopic(entries(5, 0, 99), size=1_000))
    assert Plan(brokers).latest(offsets(t="5:0"), Limits(bytes=5_500)) == offsets(t="5:5")
    assert Plan(brokers).latest(offsets(t="5:0"), Limits(bytes=1)) == offsets(t="5:1"), "at least one, or it stands"


def test_spark_may_ask_for_all_there_is_in_spite_of_limits() -> None:
    assert Plan(FakeBrokers(t=FakeTopic(entries(5, 0, 99)))).latest(offsets(t="5:0"), None) == offsets(t="5:99")


def test_the_newest_positions_are_told_for_progress() -> None:
    assert Plan(FakeBrokers(t=FakeTopic(entries(5, 0, 3)), empty=FakeTopic())).newest() == offsets(t="5:3")


@pytest.mark.parametrize(
    ("sizes", "budget", "expected"),
    [
        ({"a": 3, "b": 100, "c": None}, 23, {"a": 3, "b": 10, "c": 10}),
        ({"a": 100, "b": 100}, 7, {"a": 4, "b": 3}),
        ({"a": 1, "b": 2}, 7, {"a": 1, "b": 2}),
        ({"a": 5, "b": None, "c": 1}, 2, {"a": 1, "b": 1, "c": 0}),
    ],
)
def test_a_budget_is_divided_evenly(sizes: dict[str, int | None], budget: int, expected: dict[str, int]) -> None:
    assert shares(sizes, budget) == expected


def test_a_start_that_leaves_a_topic_out_is_refused_before_any_subscription_is_made() -> None:
    brokers = FakeBrokers(a=FakeTopic(entries(5, 0, 3)), b=FakeTopic(entries(5, 0, 3)))
    with pytest.raises(InvalidInput, match="say nothing of b"):
        Plan(brokers, start=Boundary("time", times={"a": 5})).latest(UNPLANNED, None)
    assert brokers.begun == []
