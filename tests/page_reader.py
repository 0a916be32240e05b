"""A reader at a terminal, who does what the pages of docs/ say, block by block."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from eos.cli.app import typer_app as eos
from eos.local import jars
from eos.local.places import cache
from statestore.cli.app import typer_app as statestore
from tests.notebook import Notebook
from tests.planner import again_while_late
from tests.spark_session import quick_start

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
AWAIT = re.compile(r"query\.awaitTermination\(\d+\)")
ROWS = "any(progress['numInputRows'] for progress in query.recentProgress)"
UNTIL_COMMITTED = f"any({ROWS} or query.awaitTermination(0.1) for _ in range(2_000))"
ASK_FOR_COMMITS = f"assert {ROWS}, 'no micro-batch with rows was committed'"
BORDERS = re.compile(r"[│┃|─━┏┓┡┩┗┛└┘╇┳┻┴]+|\+[-+]+")
VARIES = re.compile(
    r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{8}\b|\b(?=[a-f]*\d)[0-9a-f]{4}\b|\d[\d.,:TZ-]*"
)
"""Ids, also one that a page cuts to four characters, times and numbers."""
COMMANDS = {"eos": eos, "statestore": statestore}
PROGRAMS = ("openssl", "rm")
FENCE = re.compile(r"^[ >]*(?:```|~~~)", re.MULTILINE)
LANGUAGES = ("diff", "mermaid", "python", "sh", "sql", "text")
PLAIN = ("pulsar://localhost:6650", "http://localhost:8080")
SECURE = ("pulsar+ssl://localhost:6651", "https://localhost:8443")
"""The addresses of the brokers and of the admin API on the pages."""


def blocks(pages: Iterable[Path]) -> Iterator[tuple[str, str, str]]:
    """Each block's place, language and text, in the order of a reader."""
    for page in pages:
        for number, match in enumerate(BLOCK.finditer(page.read_text())):
            yield f"{page.relative_to(ROOT)}, block {number}", match[1], match[2]


def unread(page: str, text: str, listed: Iterable[str], followed: Iterable[str] = ()) -> Iterator[str]:
    """Say which blocks and commands of a page no reader carries out.

    Args:
        page: its name.
        text: what it holds.
        listed: beginnings of the commands that are only looked up.
        followed: other programs that the page's reader carries out.
    """
    if len(FENCE.findall(text)) != 2 * len(BLOCK.findall(text)):
        yield f"{page}: a block is indented or quoted, or its fence has more than a language"
    known = {*COMMANDS, *PROGRAMS, "export", "unset", *followed}
    for language, block in BLOCK.findall(text):
        if language not in LANGUAGES:
            yield f"{page}: nobody runs a block of {language or 'no language'}"
        for line in block.splitlines():
            first = line.partition(" ")[0]
            if language == "text" and first in COMMANDS:
                yield f"{page}: {line!r} is a command, so its block must be one of sh"
            if language == "sh" and first not in {"", "#", *known} and not line.startswith(tuple(listed)):
                yield f"{page}: nobody carries {line!r} out, and no list says why"


def shape(line: str) -> str:
    """A line without borders, and with each number, time and id as #."""
    return re.sub(r"#( #)+", "#", " ".join(VARIES.sub("#", BORDERS.sub(" ", line)).split()))


def assert_shown(expected: str, said: str) -> None:
    """Each line that a page shows came, in this order, perhaps among others; a line "…" stands for some of them."""
    came = iter([shape(line) for line in said.splitlines()])
    for line in map(shape, expected.splitlines()):
        assert line in ("", "…") or line in came, f"{line!r} did not come in:\n{said}"


@dataclass
class Reader:
    """A reader at a terminal: one folder, one cache, and the Pulsar that the pages start.

    Attributes:
        home: the folder in which everything is done.
        looked_up: beginnings of the commands that are only looked up.
        codes: the exit codes that a command may end with, by command. The others end with 0.
        places: what stands in the place of a text, besides addresses, as of a folder that only root may make.
        wrote: whether a block has written rows since the last topic was made.
        exported: what the pages have put into the environment.
        notebooks: the processes that run the blocks of Python; by whether they have bk://.
    """

    home: Path
    looked_up: Iterable[str] = ()
    codes: Mapping[str, Collection[int]] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    wrote: bool = False
    exported: dict[str, str] = field(default_factory=dict)
    notebooks: dict[bool, Notebook] = field(default_factory=dict)

    def python(self, code: str) -> str:
        """Run a block until its query has committed a batch with rows; the first one of a rate source may be empty.

        Returns what it printed.
        """
        code = AWAIT.sub(UNTIL_COMMITTED, self.here(code)).replace("query.stop()", f"{ASK_FOR_COMMITS}\nquery.stop()")
        said = again_while_late(lambda: self._notebook(with_bk="bk://" in code).run(code))
        self.wrote = True
        return said

    def shell(self, line: str) -> str:
        """Carry out a command, or see that there is one. Returns what it printed."""
        words = shlex.split(line, comments=True)
        command = " ".join(words)
        if not words:
            return ""
        if command.startswith(tuple(self.looked_up)):
            assert_exists(words)
        elif words[0] in COMMANDS:
            return self._carry_out(words, self.codes.get(command, (0,)))
        elif words[0] == "export":
            for word in words[1:]:
                name, _, text = word.partition("=")
                self.exported[name] = self.here(text)
        elif words[0] == "unset":
            self.exported = {name: text for name, text in self.exported.items() if name not in words}
        else:
            assert words[0] in PROGRAMS, f"what is {line!r}?"
            subprocess.run(words, cwd=self.home, check=True, capture_output=True)
        return ""

    def here(self, text: str) -> str:
        """Put this Pulsar's ports, which are free ones, in the place of the usual ones."""
        ours = dict(self.places)
        for one in json.loads(self._run(["eos", "local", "status", "--json"]).stdout):
            brokers, admin = SECURE if one["service_url"].startswith("pulsar+ssl:") else PLAIN
            found = {brokers: one["service_url"], admin: one["admin_url"]}
            ours = found | {"localhost:2181": one["zookeeper"]} | ours
        # In one pass and whole: a free port may begin with the digits of a usual one.
        usuals = rf"({'|'.join(map(re.escape, ours))})(?!\d)"
        return re.sub(usuals, lambda usual: ours[usual[1]], text) if ours else text

    def end(self) -> None:
        """End each Pulsar and each Spark."""
        for notebook in self.notebooks.values():
            notebook.close()
        self._run(["eos", "local", "down", "--all"])

    def _notebook(self, *, with_bk: bool) -> Notebook:
        """The process for blocks that need `bk://`, or for those that don't."""
        if with_bk not in self.notebooks:
            folder = self.home.with_name("with bk" if with_bk else "without bk")
            self.notebooks[with_bk] = Notebook(self.home, folder, quick_start(with_bk=with_bk))
        return self.notebooks[with_bk]

    def _carry_out(self, words: list[str], codes: Collection[int]) -> str:
        local = words[:2] == ["eos", "local"]
        ports = ["--ports", "auto"] if words[:3] == ["eos", "local", "up"] else []
        done = self._run([*(words if local else map(self.here, words)), *ports], codes)
        if words[:2] == ["eos", "peek"] and self.wrote:
            assert done.stdout.strip(), f"no rows: {words}"
        if words[:2] == ["eos", "topics"]:
            self.wrote = False
        return done.output

    def _run(self, words: list[str], codes: Collection[int] = (0,)) -> Result:
        """Run one of COMMANDS; the reader says yes where it asks."""
        environment = {} if words[:2] == ["eos", "local"] else self.env()
        if words[0] == "statestore":  # it stops the Spark session of its process at its end, and this one may have one
            done = in_a_process(words, environment)
        else:
            done = CliRunner().invoke(COMMANDS[words[0]], words[1:], input="y\n", env=environment)
        said = f"{words}: {done.exit_code}, {done.exception!r}\n{done.output[-4_000:]}"
        assert done.exception is None or isinstance(done.exception, SystemExit), said
        assert done.exit_code in codes, said
        return done

    def env(self) -> dict[str, str]:
        """Return the environment that names this reader's Pulsar to the commands."""
        service_url, admin_url = map(self.here, PLAIN)
        return {"EOS_SERVICE_URL": service_url, "EOS_ADMIN_URL": admin_url} | self.exported


def in_a_process(words: list[str], environment: Mapping[str, str]) -> Result:
    """Run one of COMMANDS in a process of its own, as its user does. What came as errors stands at the end."""
    program = Path(sys.executable).with_name(words[0])
    given = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **environment}
    done = subprocess.run([program, *words[1:]], input=b"y\n", env=given, capture_output=True, check=False)
    return Result(CliRunner(), done.stdout, done.stderr, done.stdout + done.stderr, None, done.returncode, None)


def assert_exists(words: list[str]) -> None:
    """See that there is a command: ask the Makefile for its target, or the command line's own tree."""
    if words[0] == "make":
        targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert words[1] in targets, f"{words}: the Makefile lacks it"
        return
    if words[0] == "pip":
        assert words[1] == "install", words
        return
    verb: Any = typer.main.get_command(COMMANDS[words[0]])
    rest = words[1:]
    while rest and not rest[0].startswith("-") and (verbs := getattr(verb, "commands", None)):
        assert rest[0] in verbs, f"{words}: there is no verb {rest[0]}"
        verb = verbs[rest.pop(0)]
    known = {name for parameter in verb.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}
    given = {word.partition("=")[0] for word in rest if word.startswith("-")}
    assert given <= known, f"{words} knows no {given - known}"


def home_of_a_reader(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a cache in which only the jars and the classes read from them are there already, and an empty home."""
    for with_bk in (False, True):
        quick_start(with_bk=with_bk)
    jars.classpath()
    there = cache()
    monkeypatch.setenv("EOS_CACHE", str(folder / "cache"))
    cache().mkdir(parents=True)
    for one in (jars.folder().name, "classes"):
        (cache() / one).symlink_to(there / one)
    home = folder / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    return home
