"""What docs/reference/commands.md says of each verb of `eos` and `statestore`, from the commands themselves.

`tools/draw_options.py` draws it. Options of a connection are not repeated: the page has them once.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer

from eos.cli.app import typer_app as eos_app
from eos.cli.connection import connection
from statestore.cli.app import typer_app as statestore_app

APPS: dict[str, typer.Typer] = {"eos": eos_app, "statestore": statestore_app}
CONNECTION = frozenset(inspect.signature(connection).parameters)


def verbs(name: str) -> Iterator[tuple[str, Any]]:
    """Give each verb of a program, as it is typed, with its command."""
    yield from _leaves(name, typer.main.get_command(APPS[name]))


def _leaves(typed: str, command: Any) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    if below is None or command.invoke_without_command:
        yield typed, command
    for word, one in sorted((below or {}).items()):
        if not one.hidden:
            yield from _leaves(f"{typed} {word}", one)


def drawn(name: str) -> str:
    """Return the sections of all verbs of a program."""
    return "\n\n".join(_section(typed, command) for typed, command in verbs(name))


def _section(typed: str, command: Any) -> str:
    shown = [one for one in command.params if not getattr(one, "hidden", False)]
    own = [one for one in shown if one.name not in CONNECTION]
    connects = len(own) < len(shown)
    told = re.split(r"\n\s*\n|\f", inspect.cleandoc(command.help or ""))
    paragraphs = [" ".join(part.split()) for part in told if part]
    lines = [f"### {typed}", *paragraphs]
    if connects:
        lines.append("It takes the [options of a connection](#command-line) too.")
    rows = [f"| {_flags(one)} | {_default(one)} | {_cell(one.help or '')} |" for one in own]
    if rows:
        lines.append("\n".join(["| argument or option | default | meaning |", "|---|---|---|", *rows]))
    return "\n\n".join(lines)


def _flags(one: Any) -> str:
    if one.param_type_name == "argument":
        return f"`{one.name.upper()}`"
    return ", ".join(f"`{flag}`" for flag in [*one.opts, *one.secondary_opts])


def _default(one: Any) -> str:
    if one.required:
        return "required"
    value = one.default
    if value is None or value is False or value == () or callable(value):
        return ""
    return f"`{str(value).lower() if value is True else value}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
