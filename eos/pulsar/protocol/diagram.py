"""Draws docs/protocol-states.md from the tables: `python -m eos.pulsar.protocol.diagram [--check]`.

Without --check the file is written; with it, the exit code is 1 when the file is stale.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

from eos.pulsar.protocol import consumer, coordinator, handshake, lookup, producer, transaction
from eos.pulsar.protocol.machine import TransitionTable

DRAWN: list[tuple[ModuleType, TransitionTable[Any, Any]]] = [
    (handshake, handshake.HANDSHAKE),
    (lookup, lookup.LOOKUP),
    (coordinator, coordinator.COORDINATOR),
    (transaction, transaction.TRANSACTION),
    (producer, producer.PRODUCER),
    (consumer, consumer.CONSUMER),
]
"""Each machine, and the module whose docstring is its theory."""

PAGE = Path(__file__).parents[3] / "docs" / "protocol-states.md"

_HEAD = """# The protocol's states

Drawn from the tables in `eos/pulsar/protocol` by `python -m eos.pulsar.protocol.diagram`. Change the tables,
not this page. This side asks for the inputs in bold. The others come from the broker or the network. An input that a
diagram does not show is refused, with `OutOfTurn` where this side asks for it, otherwise with `UnexpectedFrame`.
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join([_HEAD, *(_section(module, table) for module, table in DRAWN)])


def _section(module: ModuleType, table: TransitionTable[Any, Any]) -> str:
    theory = (module.__doc__ or "").strip()
    return f"## {table.name.capitalize()}\n\n{theory}\n\n{_legend(table)}\n\n```mermaid\n{mermaid(table)}\n```\n"


def _legend(table: TransitionTable[Any, Any]) -> str:
    stays = sorted({f"`{state}` stays on `{what}`" for (state, what), to in table.moves.items() if to is state})
    ends = ", ".join(f"`{state}`" for state in table.states if state in table.ends)
    lines = [f"Begins in `{table.start}`."]
    if ends:
        lines.append(f"Ends in {ends}.")
    if stays:
        lines.append(f"Without a change: {'; '.join(stays)}.")
    return " ".join(lines)


def mermaid(table: TransitionTable[Any, Any]) -> str:
    """Return one table as a mermaid state diagram; inputs between the same two states share an arrow."""
    arrows: dict[tuple[Any, Any], list[str]] = defaultdict(list)
    for (state, what), to in table.moves.items():
        if to is not state:
            arrows[state, to].append(f"<b>{what}</b>" if what in table.ours else str(what))
    lines = ["stateDiagram-v2"]
    lines += [f"    {_id(state)} : {state}" for state in table.states]
    lines.append(f"    [*] --> {_id(table.start)}")
    lines += [f"    {_id(a)} --> {_id(b)} : {' / '.join(what)}" for (a, b), what in arrows.items()]
    lines += [f"    {_id(state)} --> [*]" for state in table.states if state in table.ends]
    return "\n".join(lines)


def _id(state: Any) -> str:
    return str(state.name)


def main(arguments: list[str]) -> int:
    """Write the page, or with --check only compare it. Returns the exit code."""
    text = page()
    if "--check" not in arguments:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PAGE.name} is stale: run `python -m eos.pulsar.protocol.diagram`")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
