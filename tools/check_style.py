"""Hold pages and messages to how this project writes: `python tools/check_style.py [--list] [--lower]`.

It finds what a pattern can find: "is no X", "of which", "no more" for "no longer", "to be had", "gone on", "behind" for
"after", "whole or not at all" of what readers see, a sentence that begins with a headless Who or What, and more than
0.2 colons and semicolons a sentence. Texts that were there before the check count against `tools/style_counts.json`: a
number for each file or package and each rule, which may only fall. `--list` shows each place, and `--lower` writes the
numbers that have fallen. The exit code is 1 where a number is exceeded.

Messages are the texts in the code of `eos` and `statestore` of four words and more: errors, log lines, helps, findings.
Pages that are drawn from code or recorded from commands are not looked at.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
COUNTS = Path(__file__).with_name("style_counts.json")
SEPARATORS_A_SENTENCE = 0.2
TOP = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
SKIPPED = ("docs/protocol-states.md", "docs/reference/api/")
PATTERNS = {
    "is no X": re.compile(r"(?<!there )\b(?:is|are|was|were) no (?!longer\b)\w+", re.IGNORECASE),
    "of which": re.compile(r"\bof (?:which|whom)\b", re.IGNORECASE),
    "no more": re.compile(r"\bno more\b(?! than)", re.IGNORECASE),
    "to be had": re.compile(r"\bto be had\b", re.IGNORECASE),
    "gone on": re.compile(r"\bgone on\b", re.IGNORECASE),
    "behind": re.compile(r"(?<!wait )(?<!waits )(?<!waiting )(?<!blocked )(?<!left )\bbehind\b", re.IGNORECASE),
    "two strengths": re.compile(r"\bseen whole\b|\bin all topics at once\b", re.IGNORECASE),
    "headless": re.compile(r"\A(?:What|Who|Whoever|Whatever)\b(?!.*\?)", re.DOTALL),
}
Counts = dict[str, dict[str, int]]
"""How often each rule is broken in each page or package."""

_FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_DRAWN = re.compile(r"<!-- drawn: .*?<!-- end of what is drawn -->", re.DOTALL)
_CODE = re.compile(r"``.+?``|`[^`\n]*`")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)")
_MARK = re.compile(r"^(?:[-*+]|\d+\.) +", re.MULTILINE)
_TERM = re.compile(r"^\*\*[^*\n]+\*\*( \([^)\n]*\))?:")
_SENTENCE = re.compile(r"(?<=[.!?])[)\"*]* +(?=[\"(*`A-Z])")
_SEPARATOR = re.compile(r"[:;](?=\s)")


class Finding(NamedTuple):
    """One place that reads unlike the rules: the rule, and the text around."""

    rule: str
    text: str


def sentences_of_page(text: str) -> Iterator[str]:
    """Give the sentences of a page in Markdown: no code, no headings, no tables that are drawn; a link is its words."""
    for pattern, instead in ((_DRAWN, ""), (_COMMENT, ""), (_FENCE, "\n"), (_CODE, "`x`"), (_LINK, r"\1")):
        text = pattern.sub(instead, text)
    for block in re.split(r"\n\s*\n|\n(?= *(?:[-*+]|\d+\.) )", text):
        block = block.strip()
        if block.startswith("#"):
            block = block.partition("\n")[2]
        if block.startswith("|"):
            cells = (cell.strip() for line in block.splitlines() for cell in line.strip("|").split("|"))
            for cell in cells:
                if len(cell.split()) > 3:
                    yield from sentences(cell)
        elif block:
            yield from sentences(_TERM.sub(r"\g<0>".replace(":", ""), _MARK.sub("", block)))


def sentences(text: str) -> Iterator[str]:
    """Give the sentences of a text. A term in bold that begins a list's item takes its colon with it."""
    text = _TERM.sub("", " ".join(text.split()))
    yield from (one for one in _SENTENCE.split(text.strip()) if one)


def messages(source: str) -> Iterator[str]:
    """Give the texts in a module that a user may read; what an f-string fills in is `{}`."""
    tree = ast.parse(source)
    silent = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    silent |= {id(part) for one in ast.walk(tree) if isinstance(one, ast.JoinedStr) for part in one.values}
    for node in ast.walk(tree):
        if id(node) in silent:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if len(re.findall(r"(?<![\w-])[A-Za-z']{2,}(?![\w-])", text)) > 3:
            yield text


def findings(told: list[str]) -> list[Finding]:
    """Return what some sentences have against the rules; each separator that is too many is a finding."""
    found = [Finding(rule, one) for one in told for rule, pattern in PATTERNS.items() for _ in pattern.finditer(one)]
    separated = [one for one in told for _ in _SEPARATOR.finditer(one)]
    allowed = int(SEPARATORS_A_SENTENCE * len(told))
    return found + [Finding("separators", one) for one in separated[allowed:]]


def all_findings(root: Path) -> dict[str, list[Finding]]:
    """Return the findings of each page and each package, by its path."""
    told: dict[str, list[str]] = {}
    for page in [*(root / name for name in TOP), *sorted((root / "docs").rglob("*.md"))]:
        name = page.relative_to(root).as_posix()
        if not name.startswith(SKIPPED):
            told[name] = list(sentences_of_page(page.read_text(encoding="utf-8")))
    for folder in ("eos", "statestore"):
        for module in sorted((root / folder).rglob("*.py")):
            name = module.parent.relative_to(root).as_posix()
            if not module.name.endswith("_pb2.py") and not name.startswith("statestore/java"):
                texts = messages(module.read_text(encoding="utf-8"))
                told.setdefault(name, []).extend(one for text in texts for one in sentences(text))
    return {name: findings(texts) for name, texts in told.items()}


def exceeded(numbers: Counts, allowed: Counts) -> dict[tuple[str, str], str]:
    """Say which numbers are greater than those that are allowed, by file and rule."""
    return {
        (name, rule): f'{name} has {number} of "{rule}", and {allowed.get(name, {}).get(rule, 0)} are allowed'
        for name, rules in numbers.items()
        for rule, number in rules.items()
        if number > allowed.get(name, {}).get(rule, 0)
    }


def lowered(numbers: Counts, allowed: Counts) -> Counts:
    """Return the allowed numbers, each fallen to what there is; those that have come to 0 are left out."""
    least = {
        name: {rule: min(most, numbers.get(name, {}).get(rule, 0)) for rule, most in rules.items()}
        for name, rules in allowed.items()
    }
    kept = {name: {rule: number for rule, number in rules.items() if number} for name, rules in least.items()}
    return {name: rules for name, rules in kept.items() if rules}


def main(arguments: list[str]) -> int:
    """Print the findings where a number is exceeded. Returns the exit code."""
    found = all_findings(ROOT)
    numbers: Counts = {name: dict(Counter(one.rule for one in each)) for name, each in found.items()}
    allowed: Counts = json.loads(COUNTS.read_text(encoding="utf-8"))
    worse = exceeded(numbers, allowed)
    for name, each in found.items():
        for one in each:
            if "--list" in arguments or (name, one.rule) in worse:
                print(f"{name}: {one.rule}: {one.text[:240]}", file=sys.stderr)
    print(*worse.values(), sep="\n", end="\n" if worse else "", file=sys.stderr)
    least = lowered(numbers, allowed)
    if least != allowed and "--lower" in arguments:
        COUNTS.write_text(json.dumps(least, indent=1) + "\n", encoding="utf-8")
    elif least != allowed:
        print("Fewer findings than are allowed. Write the numbers with python tools/check_style.py --lower")
    return 1 if worse else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
