"""The part of docs/reference/commands.md about each verb of `eos` and `statestore`, from the commands themselves.

`tools/draw_options.py` draws it. Options of a connection, and those that several verbs have alike, stand there once.
`--json` leads to the schema of what the verb prints.

One verb at least of each group shows an output that tests have recorded. Those of `eos` come from a real Pulsar
(tests/integration/situations). The others are printed by the commands' code on stand-ins
(tests/unit/tools/test_command_pages.py). Both tests fail when a command prints something else.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from eos.cli.app import typer_app as eos_app
from eos.cli.connection import connection
from statestore.cli.app import typer_app as statestore_app
from tools.output_schemas import OUTPUTS, file_of

APPS: dict[str, typer.Typer] = {"eos": eos_app, "statestore": statestore_app}
CONNECTION = frozenset(inspect.signature(connection).parameters)
AS_JSON = "as_json"
SHARED_BY = 3
"""A parameter that so many verbs have with one meaning stands on the page once."""
TESTS = Path(__file__).resolve().parent.parent / "tests"
SITUATIONS = TESTS / "integration" / "situations" / "as_text.md"
STAND_INS = TESTS / "unit" / "tools" / "command_outputs.md"
SHOWN: Mapping[str, tuple[Path, str]] = {
    "eos doctor": (SITUATIONS, "Healthy"),
    "eos local status": (STAND_INS, "Stand-ins"),
    "eos sink abort": (SITUATIONS, "In doubt"),
    "eos sink verify": (SITUATIONS, "Healthy"),
    "eos topics": (SITUATIONS, "Healthy"),
    "statestore savepoint create": (STAND_INS, "Stand-ins"),
    "statestore verify": (STAND_INS, "Stand-ins"),
}
"""{verb: the recording, and the title there}"""


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
    """Return the sections of all verbs of a program, and before them the parameters that several verbs have alike."""
    every = list(verbs(name))
    alike = Counter(_item(one) for _, command in every for one in _own(command))
    shared = {item for item, times in alike.items() if times >= SHARED_BY}
    head = f"### Options of several {name} verbs\n\n" + "\n".join(item for item in alike if item in shared)
    first: dict[Any, str] = {}
    sections = [_section(typed, command, shared, first) for typed, command in every]
    return "\n\n".join([head, *sections])


def _section(typed: str, command: Any, shared: Collection[str], first: dict[Any, str]) -> str:
    function = inspect.unwrap(command.callback)
    if function in first:
        return f"### {typed}\n\nThe same as `{first[function]}`."
    first[function] = typed
    told = re.split(r"\n\s*\n|\f", inspect.cleandoc(command.help or ""))
    lines = [f"### {typed}", *(" ".join(part.split()) for part in told if part)]
    own = _own(command)
    if rows := [item for item in map(_item, own) if item not in shared]:
        lines.append("\n".join(rows))
    others = [_flags(one).partition(",")[0] for one in own if _item(one) in shared]
    if typed in OUTPUTS:
        others.append(f"[`--json`](json/{file_of(typed).name})")
    if any(one.name in CONNECTION for one in _shown(command)):
        others.append("[connection](#command-line)")
    if others:
        lines.append(f"{'Also' if rows else 'Takes'} {', '.join(others)}.")
    if (output := output_of(typed)) is not None:
        lines.append(f"```text\n{output}\n```")
    return "\n\n".join(lines)


def _shown(command: Any) -> list[Any]:
    return [one for one in command.params if not getattr(one, "hidden", False)]


def _own(command: Any) -> list[Any]:
    """Return what a verb takes beside --json and the options of a connection."""
    return [one for one in _shown(command) if one.name not in CONNECTION and one.name != AS_JSON]


def _item(one: Any) -> str:
    """Return the line of an argument or option in a list."""
    default = _default(one)
    return f"- {_flags(one)}{default and f' ({default})'}: {' '.join((one.help or '').split())}"


def _flags(one: Any) -> str:
    if one.param_type_name == "argument":
        return f"`{one.name.upper()}`"
    return ", ".join(f"`{flag}`" for flag in [*one.opts, *one.secondary_opts])


def _default(one: Any) -> str:
    if one.param_type_name == "argument":
        return "" if one.required else "optional"
    if one.required:
        return "required"
    value = one.default
    if value is None or value is False or value == () or callable(value):
        return ""
    return f"`{str(value).lower() if value is True else value}`"


def output_of(verb: str) -> str | None:
    """Return a command line with this verb and what it printed. None: the page shows no output of this verb.

    Raises LookupError where the recording has none.
    """
    if verb not in SHOWN:
        return None
    page, title = SHOWN[verb]
    _, _, after = page.read_text(encoding="utf-8").partition(f"\n## {title}\n")
    found = re.search(rf"^\$ {verb}\s(?s:.*?)(?=\n(?:exit code \d\n)?```$)", after.partition("\n## ")[0], re.MULTILINE)
    if found is None:
        raise LookupError(f'{page} has no output of "{verb}" under "{title}"')
    return found[0]
