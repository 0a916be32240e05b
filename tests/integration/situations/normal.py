"""Makes what a command prints the same each time: what varies gets a fixed value, and tables the width that fits."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain

from rich.console import Console

from eos.cli.console import columns

Match = re.Match[str]
WIDTH = 118
_TIME = "2026-11-24T12:00:00.000Z"
_TIME_MS = "1795521600000"


@dataclass
class Normal:
    """Replaces what varies.

    Attributes:
        fixed: {what is there: what takes its place}, such as this broker's addresses.
    """

    fixed: dict[str, str]
    _numbers: dict[str, int] = field(default_factory=dict)

    def __call__(self, text: str) -> str:
        """Return the text with everything of RULES replaced."""
        for there, instead in self.fixed.items():
            text = text.replace(there, instead)
        for rule in RULES:
            text = re.sub(rule.pattern, lambda match, rule=rule: rule.instead(self, match), text)  # type: ignore[misc]
        return relaid(text)

    def numbered(self, what: str, key: str) -> int:
        """Number things of a kind in the order in which they are seen first, from 1."""
        known = self._numbers
        if f"{what} {key}" not in known:
            known[f"{what} {key}"] = 1 + sum(one.startswith(f"{what} ") for one in known)
        return known[f"{what} {key}"]


@dataclass(frozen=True)
class Rule:
    """What varies, what it is looked for by, what stands in its place, and how that is found."""

    what: str
    pattern: str
    shown: str
    instead: Callable[[Normal, Match], str]


def _always(text: str) -> Callable[[Normal, Match], str]:
    return lambda normal, match: match.expand(text)


RULES = (
    Rule("times", r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", _TIME, _always(_TIME)),
    Rule("times in milliseconds since 1970", r"\b1[789]\d{11}\b", _TIME_MS, _always(_TIME_MS)),
    Rule(
        "transactions",
        r"\((\d+),(\d+)\)",
        "(1,101), (1,102), … in the order in which they are seen",
        lambda normal, match: f"(1,{100 + normal.numbered('transaction', match[0])})",
    ),
    Rule(
        "ledgers",
        r"│ (\d+):(\d+) +│",
        "11, 12, … likewise",
        lambda normal, match: f"│ {10 + normal.numbered('ledger', match[1])}:{match[2]} │",
    ),
    Rule(
        "ledgers",
        r'("ledger": )(\d+)',
        "",
        lambda normal, match: f"{match[1]}{10 + normal.numbered('ledger', match[2])}",
    ),
    Rule("seconds that passed", r"\b\d+ s ago\b", "90 s ago", _always("90 s ago")),
    Rule("seconds that passed", r"│ \d+ s +│", "", _always("│ 90 s │")),
    Rule("seconds that passed", r'("age_s": )[\d.]+', "", _always(r"\g<1>90.0")),
    Rule("a producer's name", r"\bstandalone-\d+-\d+\b", "standalone-0-1", _always("standalone-0-1")),
    Rule("a driver's address", r"\b127\.0\.0\.1:\d+", "127.0.0.1:50000", _always("127.0.0.1:50000")),
    Rule(
        "patch releases of Python and Spark",
        r"\b(Python|Spark) (\d+\.\d+)\.\d+",
        "3.11.0, 4.3.0",
        _always(r"\1 \2.0"),
    ),
)


def relaid(text: str) -> str:
    """Lay the tables and the long lines of a text out as a terminal of WIDTH columns would."""
    parts = re.split(r"(┏.*?┘)", text, flags=re.DOTALL)
    return "".join(_table(part.splitlines()) if part.startswith("┏") else _wrapped(part) for part in parts)


def _table(lines: Iterable[str]) -> str:
    rows = [[cell.strip() for cell in re.split("[┃│]", line)[1:-1]] for line in lines if line[0] in "┃│"]
    table = columns(*rows[0])
    for row in rows[1:]:
        table.add_row(*row)
    out = io.StringIO()
    Console(file=out, width=WIDTH, highlight=False, markup=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _wrapped(text: str) -> str:
    if text.lstrip()[:1] in "[{":  # JSON keeps its lines
        return text
    lines = (
        textwrap.wrap(line, WIDTH, break_on_hyphens=False, break_long_words=False) if len(line) > WIDTH else [line]
        for line in text.split("\n")
    )
    return "\n".join(chain.from_iterable(lines))
