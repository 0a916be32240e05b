"""Explores the models from the command line.

python -m tests.models                 all worlds of the tests
python -m tests.models --large         the larger ones, which take minutes
python -m tests.models --without FENCE the counter-example to a rule, or to all of them: --without all
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from enum import Enum
from typing import Any

from tests.models import (
    names_worlds,
    sink_rules,
    sink_worlds,
    visibility,
)
from tests.models.checker import Explored, Model, explore


def main() -> int:
    """Explore, and tell how it went; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.models", description="Explore the models.")
    parser.add_argument("--large", action="store_true", help="the larger worlds")
    parser.add_argument("--without", metavar="RULE", help="print the counter-example to a rule, or to `all` of them")
    parser.add_argument("--table", action="store_true", help="what goes wrong without each rule, in short")
    given = parser.parse_args()
    if given.table:
        return _table()
    if given.without is not None:
        return _without(given.without)
    wrong = 0
    for model, worlds in (
        ("the sink", (sink_worlds.WORLDS, sink_worlds.LARGE)),
        ("the names", (names_worlds.WORLDS, names_worlds.LARGE)),
        ("visibility", (visibility.WORLDS, visibility.LARGE)),
    ):
        wrong += _all(model, worlds[given.large])
    return min(wrong, 1)


def _all(model: str, worlds: Mapping[str, Model[Any]]) -> int:
    wrong = 0
    for name, world in worlds.items():
        found = explore(world, progress=_progress)
        _say(f"{model}: {name}: {found}")
        wrong += not found.complete
    return wrong


def _models() -> dict[Enum, Model[Any]]:
    models: dict[Enum, Model[Any]] = {rule: sink_worlds.without(rule) for rule in sink_rules.Rule}
    models |= {rule: visibility.without(rule) for rule in visibility.Rule}
    return models | {rule: names_worlds.without(rule) for rule in names_worlds.WITHOUT}


def _table() -> int:
    for rule, model in _models().items():
        trace = explore(model).trace
        if trace is not None:
            print(f"| {rule.name} | {rule.value} | {trace.fault} | {len(trace.steps)} |")
    return 0


def _without(name: str) -> int:
    models = _models()
    chosen = [rule for rule in models if name in (rule.name, "all")]
    if not chosen:
        print(f"There is no rule {name!r}. There are: {', '.join(rule.name for rule in models)}", file=sys.stderr)
    return max((_counter_example(rule, explore(models[rule])) for rule in chosen), default=1)


def _counter_example(rule: Enum, found: Explored[Any]) -> int:
    _say(f"without {rule.name}: {rule.value}\n{found}\n")
    return int(found.trace is None)


def _progress(states: int, depth: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{states:,} states, depth {depth}", end="", file=sys.stderr, flush=True)


def _say(words: str) -> None:
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    print(words, flush=True)


if __name__ == "__main__":
    sys.exit(main())
