"""Each command of `eos` on a sink that is healthy, in doubt, fenced or frozen says what as_text.md or with_json.md has.

`make situations` writes the pages anew: look at what has changed.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from eos.cli import console
from eos.cli.app import typer_app
from tests.integration.situations.normal import Normal
from tests.integration.situations.page import JSON, TEXT, Said, compare, json_page, text_page
from tests.integration.situations.sinks import NAME, QUERY, SITUATIONS, TOPIC
from tests.traces import traces
from tests.unit.inspect.test_checkpoints import checkpoint

WRITE = "EOS_WRITE_SITUATIONS"
"""The variable by which `make situations` has the pages written in place of compared."""

OLD, PYTHON = "checkpoints/old", "/opt/job/bin/python"


def commands(namespace: str, old: str) -> Iterator[tuple[str, ...]]:
    """The commands for each situation, at last those that change something. Args: where; an old query's checkpoint."""
    here = ("--namespace", namespace)
    topic = f"persistent://{namespace}/{TOPIC}"
    yield ("sink", "list", *here)
    yield ("sink", "show", NAME, *here, "--last", "6")
    yield ("sink", "verify", NAME, *here)
    yield ("doctor", *here, "--older-than", "0")
    yield ("topics", *here)
    yield ("peek", topic)
    yield ("sink", "adopt", old, "--topic", topic, "--sink", "orders-2")
    yield ("sink", "abort", NAME, *here, "--yes")
    yield ("sink", "reset", NAME, *here, "--yes")


@pytest.fixture
def pulsar(start_pulsar: Callable[..., Any]) -> Any:
    """A broker of its own: what other tests leave open in a coordinator would be told of."""
    return start_pulsar()


@pytest.fixture
def normal(pulsar: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Normal:
    monkeypatch.setenv("EOS_SERVICE_URL", pulsar.service_url)
    monkeypatch.setenv("EOS_ADMIN_URL", pulsar.admin_url)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    return Normal(
        {
            pulsar.service_url: "pulsar://localhost:6650",
            pulsar.admin_url: "http://localhost:8080",
            sys.executable: PYTHON,
            str(tmp_path): OLD,
        }
    )


def said(words: tuple[str, ...], *, for_programs: bool) -> tuple[str, int]:
    """Run a command as the shell does. Its output. With --json it goes to standard output alone, but for an error."""
    out, beside = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(beside if for_programs else out):
        try:
            console.run(lambda: typer_app([*words, *(["--json"] if for_programs else [])], prog_name="eos"))
        except SystemExit as ended:
            code = int(ended.code or 0)
    assert traces(out.getvalue() + beside.getvalue()) == []
    return out.getvalue() or beside.getvalue(), code


@pytest.mark.parametrize("for_programs", [False, True], ids=["text", "json"])
def test_the_pages_show_what_the_commands_say(for_programs: bool, pulsar: Any, normal: Normal, tmp_path: Path) -> None:
    answers: dict[str, list[Said]] = {}
    old = checkpoint(tmp_path, begun=3, committed=2, begun_ms=round(time.time() * 1000) - 60_000)
    (old / "metadata").write_text(f'{{"id":"{QUERY.replace("a", "d")}"}}')
    with ExitStack() as stack:
        for name, begin in SITUATIONS.items():
            stack.enter_context(begin(pulsar, f"public/{name}"))
        for name in SITUATIONS:
            several = answers.setdefault(name, [])
            for words in commands(f"public/{name}", str(old)):
                text, code = said(words, for_programs=for_programs)
                shown = tuple(normal(word) for word in words)
                several.append(Said((*shown, "--json") if for_programs else shown, normal(text), code))
    page, found = (JSON, json_page(answers)) if for_programs else (TEXT, text_page(answers))
    assert (differs := compare(page, found, write=WRITE in os.environ)) is None, differs
