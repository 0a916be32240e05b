"""Hold the names in `eos` and `statestore` to the glossary: `python tools/check_names.py`. Exit code 1 on a finding.

A public class name exists once in both packages, states and inputs of the protocol tables excepted. A module is named
by a noun: a participle or an adjective alone says too little. No module, class or function is named by a word that the
project no longer uses. `STILL_NAMED` lists the functions that were named so before this check; it may only get shorter.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("eos", "statestore", "pyspark_pulsar", "pytest_eos")
PROTOCOL = "eos/pulsar/protocol/"
OF_EACH_MACHINE = ("Input", "State")
"""Classes that each table of a protocol has."""
OF_EACH_PACKAGE = ("InvalidInput",)
"""Public errors of both packages: each package has its own tree of errors."""
RETIRED = (
    *("house", "room", "rooms", "front_door", "hold", "let_go", "told", "begun", "alone", "kept", "gone_on"),
    *("standing", "stood_still", "patience", "courtesy", "bench"),
)
"""Words that the project no longer uses; docs/glossary.md has those that it uses."""
NO_NOUN = frozenset(
    (
        *("begun", "broken", "frozen", "kept", "known", "left", "lost", "made", "own", "said", "seen", "sent", "stood"),
        *("swallowed", "taken", "told", "written", "alone", "big", "deep", "early", "empty", "fresh", "full", "idle"),
        *("large", "late", "local", "long", "new", "normal", "official", "old", "open", "other", "plain", "portable"),
        *("private", "public", "raw", "short", "slow", "small", "sparkless", "stateful", "whole"),
    )
)
"""Participles and adjectives. One that ends in -ed is a participle without being listed."""
NAMED_BY_A_COMMAND = ("eos/local", "eos/cli/local.py")
STILL_NAMED = frozenset(
    {
        ("eos/commit/owned_log.py", "hold"),
        ("eos/commit/ports.py", "hold"),
        ("eos/commit/retry.py", "patience"),
        ("eos/doctor/abort.py", "told"),
        ("eos/local/class_archive.py", "kept"),
        ("eos/local/clusters.py", "begun"),
        ("eos/pulsar/net/client.py", "hold"),
        ("eos/pulsar/net/in_flight.py", "patience"),
        ("eos/pulsar/net/oauth2.py", "kept"),
        ("eos/pulsar/net/permits.py", "hold"),
        ("eos/pulsar/protocol/consumer.py", "hold"),
        ("eos/pulsar/wire/columns.py", "alone"),
        ("eos/pulsar/wire/large_messages.py", "alone"),
    }
)
"""Functions that had a retired word as their whole name before this check: the file and the name."""


class Name(NamedTuple):
    """A name in the code: the file from the project's root, and whether a class, a function or a module has it."""

    path: str
    name: str
    kind: str


def names(root: Path) -> Iterator[Name]:
    """Give the modules, public classes and public functions of the packages, but for what is generated."""
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            where = path.relative_to(root).as_posix()
            if path.name.endswith("_pb2.py") or where.startswith("statestore/java/"):
                continue
            module = path.parent if path.name == "__init__.py" else path.with_suffix("")
            yield Name(where, module.name, "module")
            for kind, name in _defined(ast.parse(path.read_text(encoding="utf-8"))):
                yield Name(where, name, kind)


def _defined(block: ast.Module | ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Give the public classes and functions of a module or class, but not those within a function."""
    for node in block.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
            yield "class" if isinstance(node, ast.ClassDef) else "function", node.name
        if isinstance(node, ast.ClassDef):
            yield from _defined(node)


def doubled(all_names: list[Name]) -> Iterator[str]:
    """Say which public classes share a name."""
    places = defaultdict(list)
    for one in all_names:
        of_a_machine = one.name in OF_EACH_MACHINE and one.path.startswith(PROTOCOL)
        if one.kind == "class" and not of_a_machine and one.name not in OF_EACH_PACKAGE:
            places[one.name].append(one.path)
    for name, paths in places.items():
        if len(paths) > 1:
            yield f"the class {name} is in {' and '.join(paths)}: give each a name of its own"


def without_noun(all_names: list[Name]) -> Iterator[str]:
    """Say which modules are named by a participle or an adjective alone."""
    for one in all_names:
        place = one.path.removesuffix("/__init__.py")
        if one.kind == "module" and place not in NAMED_BY_A_COMMAND:
            word = one.name.lower()
            if word in NO_NOUN or (word.endswith("ed") and "_" not in word and not word.endswith("eed")):
                yield f"{one.path}: the module is named {word}, a participle or an adjective alone: name it by a noun"


def retired(all_names: list[Name]) -> Iterator[str]:
    """Say which names have a word that is no longer used, and which exceptions are over."""
    still = set(STILL_NAMED)
    for one in all_names:
        words = f"_{re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_', one.name).lower()}_"
        for word in RETIRED:
            whole = one.kind == "function"  # within a longer name of a function it is a plain English word
            if words == f"_{word}_" if whole else f"_{word}_" in words:
                if (one.path, one.name) not in STILL_NAMED or not whole:
                    yield f"{one.path}: the {one.kind} {one.name} is named by a retired word: {word}"
                still.discard((one.path, one.name))
    yield from (f"STILL_NAMED has {name} of {path}, which is gone: take it out" for path, name in sorted(still))


def main() -> int:
    """Print the findings. Returns the exit code."""
    all_names = list(names(ROOT))
    amiss = [*doubled(all_names), *without_noun(all_names), *retired(all_names)]
    print("\n".join(amiss), file=sys.stderr, end="\n" if amiss else "")
    return 1 if amiss else 0


if __name__ == "__main__":
    raise SystemExit(main())
