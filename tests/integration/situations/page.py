"""The two pages: what the commands print for people, and what they print with --json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.integration.situations.normal import RULES

TEXT, JSON = Path(__file__).with_name("as_text.md"), Path(__file__).with_name("with_json.md")


@dataclass(frozen=True)
class Said:
    """The words of one command in one situation: its words after "eos", its output, and its exit code."""

    words: tuple[str, ...]
    text: str
    code: int

    @property
    def verb(self) -> str:
        """The words that name the command."""
        return " ".join(self.words[: 2 if self.words[0] == "sink" else 1])


Answers = Mapping[str, list[Said]]
"""The words by situation."""

SITUATIONS: Mapping[str, tuple[str, str]] = {
    "healthy": (
        "Healthy",
        """\
Three batches are committed, and the driver is at work. There is nothing to do.""",
    ),
    "in-doubt": (
        "In doubt",
        """\
The driver died in the middle of its fourth batch, and has left the batch's transaction open: readers wait for it. Start
the query again: it ends the transaction, and writes the batch anew. If it can't be started, `eos sink abort` frees the
readers at once.""",
    ),
    "fenced": (
        "Fenced",
        """\
A second driver of the same query has taken the sink over, and the first one, which lives, has failed with `Fenced`. The
sink is well: `eos sink show` has both runs, and `eos doctor` says which one owns it. Stop the other.""",
    ),
    "frozen": (
        "Frozen",
        """\
Another program has sent a frame into the third batch after its commit. Readers get what lies before that frame, and
nothing behind it. `eos sink verify` finds the batch still: its rows vanish with the healing, for readers that start
later, and the sink's next batch heals. So stop the query, write the rows again, and free the readers with `eos doctor
--heal --accept-loss`.""",
    ),
}
"""{situation: (its title, what it is and what to do)}"""

_TEXT_HEAD = """\
# Command output by situation

<!-- made by `make situations`, from what the commands said of sinks on a real Pulsar -->

Each command of `eos` on a sink that is healthy, in doubt, fenced or frozen. A test brings four sinks into these
situations on a real Pulsar, runs the commands, and compares. `make situations` writes the page again.
docs/how-to/runbook.md says what to do in each situation.

The addresses of the brokers come from the environment. What varies has a fixed value, so that the page
is the same each time:
"""

_JSON_HEAD = """\
# What the commands say with --json, by situation

<!-- made by `make situations`, from what the commands said of sinks on a real Pulsar -->

What the commands of as_text.md print for programs, in the same four situations. What
varies has the same fixed values. Standard output has the JSON alone.
What is told beside it goes to standard error, and is left out
here; where there is no JSON, standard error is shown."""

_CODES = """
0: done, all is well. 1: something is not as it should be. 2: nothing was found out or done, because of what was asked
or because a server did not answer. 3: it can't be known."""


def text_page(answers: Answers) -> str:
    """The page for people."""
    lines = [_TEXT_HEAD, *_varying(), "", "## Exit codes", "", *_codes(answers), _CODES, *_sections(answers)]
    return "\n".join(lines) + "\n"


def json_page(answers: Answers) -> str:
    """The page for programs."""
    return "\n".join([_JSON_HEAD, *_sections(answers)]) + "\n"


def _varying() -> Iterator[str]:
    yield "| what | shown as |"
    yield "|---|---|"
    yield from (f"| {rule.what} | `{rule.shown}` |" for rule in RULES if rule.shown)
    yield "| the checkpoint's folder, the Python of the workers | `checkpoints/old`, `/opt/job/bin/python` |"


def _codes(answers: Answers) -> Iterator[str]:
    """A row for each command, a column for each situation."""
    commands = list(dict.fromkeys(said.verb for said in next(iter(answers.values()))))
    yield f"| command | {' | '.join(SITUATIONS[name][0].lower() for name in answers)} |"
    yield f"|---|{'---|' * len(answers)}"
    for command in commands:
        codes = (
            ", ".join(dict.fromkeys(str(said.code) for said in several if said.verb == command))
            for several in answers.values()
        )
        yield f"| `eos {command}` | {' | '.join(codes)} |"


def _sections(answers: Answers) -> Iterator[str]:
    for name, several in answers.items():
        title, what = SITUATIONS[name]
        yield from ("", f"## {title}", "", what)
        for said in several:
            yield from (
                "",
                "```text",
                f"$ eos {' '.join(said.words)}",
                said.text.rstrip(),
                f"exit code {said.code}",
                "```",
            )


def compare(page: Path, found: str, *, write: bool) -> str | None:
    """Write the page, or say where it differs from what was found; None where it doesn't."""
    if write:
        page.write_text(found, encoding="utf-8")
        return None
    there = page.read_text(encoding="utf-8") if page.exists() else ""
    if there == found:
        return None
    pairs = zip([*there.splitlines(), ""], [*found.splitlines(), ""], strict=False)
    differing = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
    there, here = differing
    return f"{page.name} has\n  {there}\nand what was said is\n  {here}\nLook at it, and run make situations"
