"""A JSON schema of what each command prints with --json, for docs/reference/json. `tools/draw_options.py` writes them.

A schema comes from the type of the output: a dataclass of the code, or a TypedDict of `tools/eos_outputs.py` or
`tools/statestore_outputs.py`. The meanings of keys come from its docstring. An object may get further keys in a later
version, so a schema does not forbid them.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import types
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial, reduce
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from eos.inspect.adoption import Adoption
from eos.inspect.lag import SubscriptionLag
from eos.inspect.segments import TopicSegment
from eos.inspect.tables import TopicTable
from statestore.checkpoint.listing import Snapshots
from statestore.checkpoint.transfer import Copied
from statestore.checkpoint.verification import VerificationReport
from statestore.json_fields import key_of
from statestore.rewriting.rescaling import Rescaled
from statestore.roll_forward.steps import RollForward
from statestore.savepoints.periodic import Round
from statestore.savepoints.savepoint import Savepoint
from statestore.savepoints.stream import Manifest
from tools import eos_outputs as eos
from tools import statestore_outputs as state

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference" / "json"
Schema = dict[str, Any]

OUTPUTS: Mapping[str, Sequence[Any]] = {
    "eos doctor": (eos.Examination,),
    "eos lag": (list[SubscriptionLag],),
    "eos local status": (list[eos.Instance],),
    "eos peek": (eos.Row,),
    "eos plan": (list[TopicSegment],),
    "eos sink abort": (eos.Aborted,),
    "eos sink adopt": (Adoption,),
    "eos sink list": (list[eos.Sink],),
    "eos sink reset": (eos.Sink,),
    "eos sink show": (list[eos.OwnerOfLog | eos.IntentOfLog | eos.MarkerOfLog],),
    "eos sink skip": (eos.Skipped,),
    "eos sink verify": (eos.Audited,),
    "eos topics": (list[TopicTable],),
    "statestore cp": (Copied | state.CopiedFiles,),
    "statestore diff": (state.Difference,),
    "statestore du": (state.Usage,),
    "statestore gc": (state.Sweep,),
    "statestore ls": (list[state.File],),
    "statestore orphans": (state.Orphans,),
    "statestore rescale": (Rescaled,),
    "statestore restore": (Savepoint | Manifest | RollForward,),
    "statestore savepoint create": (Savepoint | Manifest,),
    "statestore savepoint every": (Round,),
    "statestore savepoint list": (list[Savepoint] | list[state.ListedOnTopic],),
    "statestore snapshots": (Snapshots, state.SnapshotsInAll),
    "statestore stat": (state.FileFacts,),
    "statestore verify": (VerificationReport, state.Verdict),
}
"""{command: the types of its output; of several, one object has the keys of all}"""

_SIMPLE: Mapping[object, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
_KEYS = re.compile(r"^ {4}(\w+(?:, \w+)*): (.*?)(?=^ {4}\w|^\S|\Z)", re.MULTILINE | re.DOTALL)
_JSON: Mapping[str, str] = {"None": "null", "True": "true", "False": "false"}
_WORDS = re.compile(rf"\b({'|'.join(_JSON)})\b")


def file_of(command: str) -> Path:
    """Return where the schema of a command is."""
    return FOLDER / f"{command.replace(' ', '-')}.json"


def schema(command: str) -> Schema:
    """Return the schema of what a command prints with --json."""
    schema_for = partial(_schema_of, key=key_of if command.startswith("statestore ") else str)
    found = reduce(_joined, map(schema_for, OUTPUTS[command]))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"{command} --json", **found}


def files() -> dict[Path, str]:
    """Return the text of each schema by its file."""
    return {file_of(command): json.dumps(schema(command), indent=2, ensure_ascii=False) + "\n" for command in OUTPUTS}


def _joined(first: Schema, second: Schema) -> Schema:
    properties = first["properties"] | second["properties"]
    return first | {"properties": properties, "required": [*first["required"], *second["required"]]}


def _schema_of(kind: Any, key: Callable[[str], str]) -> Schema:
    """Return the schema of a type. Args: the type; what gives the key in JSON of a field."""
    if kind in _SIMPLE:
        return {"type": _SIMPLE[kind]}
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": list(parts)} if len(parts) > 1 else {"const": parts[0]}
    if origin in (Union, types.UnionType):
        return _one_of([_schema_of(part, key) for part in parts])
    if origin in (list, tuple):
        return {"type": "array", "items": _schema_of(parts[0], key)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema_of(parts[1], key)}
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return {"enum": [str(member) for member in kind]}
    if dataclasses.is_dataclass(kind) or is_typeddict(kind):
        return _object(kind, key)
    raise TypeError(f"no schema is known of the type {kind} of an output")


def _one_of(several: list[Schema]) -> Schema:
    if all(one.keys() == {"type"} for one in several):
        return {"type": [one["type"] for one in several]}
    return {"anyOf": several}


def _object(kind: Any, key: Callable[[str], str]) -> Schema:
    hints = get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else list(hints)
    text = inspect.getdoc(kind) or ""
    meanings = meanings_of(text)
    needed = getattr(kind, "__required_keys__", names)
    return {
        "description": _in_json(text.partition("\n\n")[0]),
        "type": "object",
        "properties": {
            key(name): ({"description": meanings[name]} if name in meanings else {}) | _schema_of(hints[name], key)
            for name in names
        },
        "required": [key(name) for name in names if name in needed],
    }


def meanings_of(docstring: str) -> dict[str, str]:
    """Return the meaning of each attribute that a docstring names. Names that share a line share the meaning."""
    _, _, listed = docstring.partition("Attributes:\n")
    return {name: _in_json(meaning) for names, meaning in _KEYS.findall(listed) for name in names.split(", ")}


def _in_json(meaning: str) -> str:
    """Return a meaning in one line, with JSON's words for Python's."""
    return _WORDS.sub(lambda word: _JSON[word[0]], " ".join(meaning.split()))
