"""A reader at a terminal, who does what the pages of docs/ say, block by block."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

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
DONE = ("eos local up", "eos topics create", "eos peek", "eos local status", "eos local down", "rm -r checkpoints")
"""Beginnings of the commands that are carried out; of the others it is asked whether they exist."""
GOES_ON = {"--cluster", "--follow"}
"""Options whose commands are not carried out: they need several processes, or do not end by themselves."""
COMMANDS = {"eos": eos, "statestore": statestore}
PLAIN = ("pulsar://localhost:6650", "http://localhost:8080")
SECURE = ("pulsar+ssl://localhost:6651", "https://localhost:8443")
"""The addresses of the brokers and of the admin API on the pages."""


def blocks(pages: Iterable[Path]) -> Iterator[tuple[str, str, str]]:
    """Each block's place, language and text, in the order of a reader."""
    for page in pages:
        for number, match in enumerate(BLOCK.finditer(page.read_text())):
            yield f"{page.relative_to(ROOT)}, block {number}", match[1], match[2]


@dataclass
class Reader:
    """A reader at a terminal: one folder, one cache, and the Pulsar that the pages start.

    Attributes:
        home: the folder in which everything is done.
        wrote: whether a block has written rows since the last topic was made.
        exported: what the pages have put into the environment.
        notebooks: the processes that run the blocks of Python; by whether they have bk://.
    """

    home: Path
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

    def shell(self, line: str) -> None:
        """Carry out a command, or see that there is one."""
        words = shlex.split(line, comments=True)
        command = " ".join(words)
        if command.startswith(DONE) and GOES_ON.isdisjoint(words):
            self._carry_out(words)
        elif words and words[0] == "export":
            for word in words[1:]:
                name, _, text = word.partition("=")
                self.exported[name] = self.here(text)
        elif words and words[0] == "unset":
            self.exported = {name: text for name, text in self.exported.items() if name not in words}
        elif words and words[0] == "make":
            assert words[1] in re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE), line
        elif words and words[0] in COMMANDS:
            assert_exists(words)
        elif words and words[0] == "openssl":
            subprocess.run(words, cwd=self.home, check=True, capture_output=True)
        elif words:
            assert words[:2] == ["pip", "install"], f"what is {line!r}?"

    def here(self, text: str) -> str:
        """Put this Pulsar's ports, which are free ones, in the place of the usual ones."""
        ours: dict[str, str] = {}
        for one in json.loads(self._eos("local", "status", "--json")):
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
        self._eos("local", "down", "--all")

    def _notebook(self, *, with_bk: bool) -> Notebook:
        """The process for blocks that need `bk://`, or for those that don't."""
        if with_bk not in self.notebooks:
            folder = self.home.with_name("with bk" if with_bk else "without bk")
            self.notebooks[with_bk] = Notebook(self.home, folder, quick_start(with_bk=with_bk))
        return self.notebooks[with_bk]

    def _carry_out(self, words: list[str]) -> None:
        if words[0] == "rm":
            shutil.rmtree(self.home / words[2])
            return
        said = self._eos(*words[1:], *(["--ports", "auto"] if words[2] == "up" else []))
        if words[1] == "peek" and self.wrote:
            assert said.strip(), f"no rows: {' '.join(words)}"
        if words[1] == "topics":
            self.wrote = False

    def _eos(self, *words: str) -> str:
        done = CliRunner().invoke(eos, words, env={} if words[0] == "local" else self.env())
        assert done.exit_code == 0, f"eos {words}: {done.exception}\n{done.output[-4_000:]}"
        return done.stdout

    def env(self) -> dict[str, str]:
        """Return the environment that names this reader's Pulsar to the commands."""
        service_url, admin_url = map(self.here, PLAIN)
        return {"EOS_SERVICE_URL": service_url, "EOS_ADMIN_URL": admin_url} | self.exported


def assert_exists(words: list[str]) -> None:
    """Ask the command line's own tree for a command's verbs and options."""
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
