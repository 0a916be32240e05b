"""The checker itself: it finds shortest traces, sees ends where nothing moves, and stops at its limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.models import names_rules, sink_rules, visibility
from tests.models.checker import explore
from tests.models.names_worlds import WITHOUT


@dataclass
class Jugs:
    """Two jugs of 3 and 5 litres; the fault is to have `wanted` litres in the large one."""

    wanted: int

    def start(self) -> tuple[int, int]:
        return 0, 0

    def steps(self, state: tuple[int, int]) -> Iterator[tuple[str, tuple[int, int]]]:
        small, large = state
        yield "fill the small one", (3, large)
        yield "fill the large one", (small, 5)
        yield "empty the small one", (0, large)
        yield "empty the large one", (small, 0)
        over = min(small, 5 - large)
        yield "pour into the large one", (small - over, large + over)
        over = min(large, 3 - small)
        yield "pour into the small one", (small + over, large - over)

    def canonical(self, state: tuple[int, int]) -> tuple[int, int]:
        return state

    def fault(self, state: tuple[int, int]) -> str | None:
        return f"there are {state[1]} litres" if state[1] == self.wanted else None

    def stuck(self, state: tuple[int, int]) -> str | None:
        return None


@dataclass
class Countdown:
    """Counts down to 0, where nothing follows. Even numbers hide in the odd one below."""

    allowed: bool

    def start(self) -> int:
        return 5

    def steps(self, state: int) -> Iterator[tuple[str, int]]:
        if state:
            yield f"from {state}", state - 1

    def canonical(self, state: int) -> int:
        return state - 1 if state and state % 2 == 0 else state

    def fault(self, state: int) -> str | None:
        return None

    def stuck(self, state: int) -> str | None:
        return None if self.allowed else f"stuck at {state}"


def test_a_counter_example_is_a_shortest_one() -> None:
    found = explore(Jugs(4))
    assert found.trace is not None
    assert found.trace.steps == (
        "fill the large one",
        "pour into the small one",
        "empty the small one",
        "pour into the small one",
        "fill the large one",
        "pour into the small one",
    )
    assert str(found.trace).endswith("=> there are 4 litres")


def test_all_states_are_visited_where_there_is_no_fault() -> None:
    found = explore(Jugs(9))
    assert (found.states, found.complete, found.trace) == (16, True, None)
    assert "no fault in 16 states" in str(found)


def test_the_limit_is_said() -> None:
    found = explore(Jugs(9), limit=5)
    assert not found.complete
    assert found.trace is None
    assert "not complete" in str(found)


def test_a_state_where_nothing_can_happen_may_be_a_fault() -> None:
    assert explore(Countdown(allowed=True)).complete
    found = explore(Countdown(allowed=False))
    assert found.trace is not None
    assert found.trace.fault == "stuck at 0"


def test_a_trace_tells_the_steps_that_the_canonical_form_hides() -> None:
    found = explore(Countdown(allowed=False))
    assert found.trace is not None
    assert found.trace.steps == ("from 5", "from 4", "from 3", "from 2", "from 1")


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    explore(Jugs(9), progress=lambda states, depth: told.append((states, depth)))
    assert told[-1][0] == 16


# ---- docs/models.md


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "models.md").read_text()


def test_the_page_has_each_rule_as_the_code_says_it() -> None:
    for rule in (*sink_rules.Rule, *visibility.Rule, *WITHOUT):
        assert f"| {rule.name} | {rule.value} | " in PAGE
    for rule in names_rules.REDUNDANT:
        assert rule.name in PAGE
