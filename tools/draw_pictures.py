"""Draw docs/pictures/*.svg from the descriptions beside them, docs/pictures/*.txt.

`--check` writes nothing. It exits with 1 when a picture is missing or differs from its description, or when a page
shows a picture without an alt text. A description has one statement a line, `word … : text`. Its first line names
the kind (flow, sequence, entries, bars or terminal) and the title, its second line the alt text. "|" breaks a line
within a box. Bars are drawn from a table of a page, so that the picture has the page's figures. A terminal shows
lines of a real run. The pictures follow the light or dark setting of the reader, and load nothing.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from html import escape
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
_STYLE = """\
text{font:14px sans-serif;fill:#1f2328}.t{font-weight:bold}.s{font-size:12px}
.o{paint-order:stroke;stroke:#fff;stroke-width:4px}.p{fill:#fff}.l{stroke:#57606a;fill:none}.h{fill:#57606a}
.strong,.seen{fill:#d2f4d9;stroke:#1a7f37}.weak,.open{fill:#fff1c2;stroke:#9a6700}
.aborted,.crash{fill:#ffdcd7;stroke:#cf222e}.wait,.ask{fill:#e6eaef;stroke:#6e7781}
@media(prefers-color-scheme:dark){
.p{fill:#1e2129}.o{stroke:#1e2129}text{fill:#e6edf3}.l{stroke:#9198a1}.h{fill:#9198a1}
.strong,.seen{fill:#12361f}.weak,.open{fill:#3f3000}.aborted,.crash{fill:#4c1512}.wait,.ask{fill:#2b313a}}"""
_PLAYED = """
.m{font:12px monospace}.y{font-weight:bold}.g{fill:#57606a}
g{animation:shown .2s both}@keyframes shown{from{opacity:.15}}
@media(prefers-color-scheme:dark){.g{fill:#9198a1}}@media print,(prefers-reduced-motion:reduce){g{animation:none}}"""
"""The style of a terminal's lines. They come one after the other, and stay. Without motion all are there."""

Line = tuple[str, str]
"""A statement: what stands before its first colon, and the text after it."""
_LINE, _BOX = 20, (300, 56)
_LETTER = 7.2
"""The width of a letter in a terminal."""


def _text(x: float, y: float, words: str, *, anchor: str = "middle", name: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{name}">{escape(words)}</text>'


def _rect(x: float, y: float, width: float, height: float, name: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" class="{name}"/>'


def _arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    if x == to_x:
        head = f"{to_x - 5:g},{to_y - 9:g} {to_x + 5:g},{to_y - 9:g} {to_x:g},{to_y:g}"
    else:
        back = to_x - 9 if to_x > x else to_x + 9
        head = f"{back:g},{to_y - 5:g} {back:g},{to_y + 5:g} {to_x:g},{to_y:g}"
    line = f'<line x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}" class="l"/>'
    return f'{line}<polygon points="{head}" class="h"/>'


def flow(lines: list[Line]) -> tuple[list[str], int, int]:
    """Boxes on a grid, `box NAME COLUMN ROW STYLE: text`, and arrows to the right or down, `NAME -> NAME: text`."""
    width, height = _BOX
    at: dict[str, tuple[float, float]] = {}
    parts: list[str] = []
    for left, words in lines:
        if left.startswith("box "):
            _, name, column, row, style = left.split()
            at[name] = x, y = 20.0 + int(column) * (width + 90), 50.0 + int(row) * (height + 44)
            parts.append(_rect(x, y, width, height, style))
            shown = words.split("|")
            first = y + height / 2 + 5 - (len(shown) - 1) * _LINE / 2
            parts += [_text(x + width / 2, first + number * _LINE, one) for number, one in enumerate(shown)]
        else:
            (x, y), (to_x, to_y) = (at[name.strip()] for name in left.split("->"))
            if y == to_y:
                parts.append(_arrow(x + width, y + height / 2, to_x, y + height / 2))
                parts.append(_text((x + width + to_x) / 2, y + height / 2 - 6, words))
            else:
                parts.append(_arrow(x + width / 2, y + height, x + width / 2, to_y))
                parts.append(_text(x + width / 2 + 10, (y + height + to_y) / 2 + 5, words, anchor="start"))
    across, down = (max(place[axis] for place in at.values()) for axis in (0, 1))
    return parts, int(across) + width + 20, int(down) + height + 20


def sequence(lines: list[Line]) -> tuple[list[str], int, int]:
    """Lanes, `lanes: a, b`, messages from lane to lane in their order, `a -> b: text`, and `crash: what it leaves`."""
    lanes = [name.strip() for name in dict(lines)["lanes"].split(",")]
    at = {name: 80 + 180 * number for number, name in enumerate(lanes)}
    parts, y = [], 104
    for left, words in lines:
        if left == "lanes":
            continue
        if left == "crash":
            parts.append(_rect(20, y - 20, at[lanes[-1]] + 40, 28, "crash"))
            parts.append(_text(32, y - 1, f"✕ Crash here: {words}", anchor="start", name="s"))
        else:
            x, to_x = (at[name.strip()] for name in left.split("->"))
            if x == to_x:
                parts.append(f'<circle cx="{x}" cy="{y}" r="5" class="h"/>')
                parts.append(_text(x + 12, y + 5, words, anchor="start", name="o"))
            else:
                parts.append(_arrow(x, y, to_x, y))
                parts.append(_text(min(x, to_x) + 10, y - 6, words, anchor="start", name="o"))
        y += 42
    posts = [f'<line x1="{x}" y1="72" x2="{x}" y2="{y - 20}" class="l" stroke-dasharray="3 5"/>' for x in at.values()]
    heads = [_rect(x - 62, 44, 124, 28, "ask") + _text(x, 63, name, name="t") for name, x in at.items()]
    return [*posts, *heads, *parts], at[lanes[-1]] + 80, y


def entries(lines: list[Line]) -> tuple[list[str], int, int]:
    """Entries in order, `entry STYLE: text`, and `limit N: text` after N of them.

    `row: text` begins a row of its own, and `legend STYLE: text` says what a style means.
    """
    parts: list[str] = []
    count = most = legends = 0
    y = 52
    for left, words in lines:
        word, _, value = left.partition(" ")
        if word == "row":
            y = y + 96 if parts else 60
            count = 0
            parts.append(_text(20, y, words, anchor="start"))
        elif word == "entry":
            parts.append(_rect(20 + count * 116, y + 8, 108, 44, value))
            parts.append(_text(74 + count * 116, y + 35, words, name="s"))
            count += 1
            most = max(most, count)
        elif word == "limit":
            x = 16 + int(value) * 116
            parts.append(f'<line x1="{x}" y1="{y - 4}" x2="{x}" y2="{y + 76}" class="l" stroke-width="3"/>')
            parts.append(_text(x - 8, y + 74, words, anchor="end"))
        else:
            parts.append(_rect(20 + legends * 232, y + 96, 18, 18, value))
            parts.append(_text(46 + legends * 232, y + 110, words, anchor="start"))
            legends += 1
    return parts, max(most * 116, legends * 232) + 32, y + 132


def bars(lines: list[Line]) -> tuple[list[str], int, int]:
    """A bar for each row of a table, `table PAGE COLUMN: words of the table's head`. The first cell names the bar."""
    ((left, head),) = lines
    _, page, column = left.split()
    rows = _rows((PICTURES.parent / page).read_text(encoding="utf-8"), head)
    values = [float(re.sub(r"[^\d.]", "", row[int(column)])) for row in rows]
    parts: list[str] = []
    for number, (row, value) in enumerate(zip(rows, values, strict=True)):
        y, width = 48 + number * 34, max(2, 380 * value / max(values))
        parts.append(_text(330, y + 17, row[0].replace("`", ""), anchor="end", name="s"))
        parts.append(_rect(340, y, width, 24, "strong" if row[0].startswith("this sink") else "ask"))
        parts.append(_text(348 + width, y + 17, row[int(column)], anchor="start", name="s"))
    return parts, 820, 48 + len(rows) * 34 + 8


def terminal(lines: list[Line]) -> tuple[list[str], int, int]:
    """What a terminal showed: commands, `typed: …`, what they printed, `said: …`, and `later: …` for time that passed.

    The lines come one after the other, once. A reader has a moment before each command, and before what it prints.
    """
    parts: list[str] = [f"<style>{_PLAYED}</style>"]
    at, before = 0.0, "later"
    for number, (left, words) in enumerate(lines):
        at += 0.1 if before == left == "said" else 1.2
        before = left
        shown, name = {"typed": (f"$ {words}", "y"), "later": (f"({words})", "g")}.get(left, (words, ""))
        place = f'x="20" y="{52 + number * 16}" textLength="{len(shown) * _LETTER:g}" xml:space="preserve"'
        parts.append(f'<g style="animation-delay:{at:.1f}s"><text {place} class="m {name}">{escape(shown)}</text></g>')
    widest = max(len(words) for _, words in lines) + 2
    return parts, int(widest * _LETTER) + 40, 52 + len(lines) * 16


def _rows(page: str, head: str) -> list[list[str]]:
    """Return the cells of the first table on a page whose head has these words."""
    lines = iter(page.splitlines())
    if not any(line.startswith("|") and head in line for line in lines):
        raise LookupError(f'no table has "{head}" in its head')
    next(lines)
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in takewhile(lambda one: one.startswith("|"), lines)
    ]


KINDS: dict[str, Callable[[list[Line]], tuple[list[str], int, int]]] = {
    "flow": flow,
    "sequence": sequence,
    "entries": entries,
    "bars": bars,
    "terminal": terminal,
}


def drawn(description: str) -> str:
    """Return the SVG of a description."""
    pairs = [line.partition(":") for line in description.splitlines() if line]
    (kind, title), (_, alt), *lines = [(left.strip(), right.strip()) for left, _, right in pairs]
    parts, width, height = KINDS[kind](lines)
    body = "\n".join([f"<title>{escape(title)}</title>", f"<desc>{escape(alt)}</desc>", f"<style>{_STYLE}</style>"])
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">'
    # A ground of its own, since a page can be light where the reader's setting is dark.
    ground = f'<rect width="{width}" height="{height}" class="p"/>'
    shown = "\n".join([ground, _text(20, 26, title, anchor="start", name="t"), *parts])
    return f"{head}\n{body}\n{shown}\n</svg>\n"


def without_alt() -> Iterator[str]:
    """Give the pictures that a page shows without an alt text."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for found in re.finditer(r"!\[\s*\]\(([^)]*)\)", page.read_text(encoding="utf-8")):
            yield f"{page.relative_to(ROOT)} shows {found[1]} without an alt text"


def main(arguments: list[str]) -> int:
    """Draw the pictures, or compare them. Returns the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args(arguments).check
    wanted = {
        source.with_suffix(".svg"): drawn(source.read_text(encoding="utf-8")) for source in PICTURES.glob("*.txt")
    }
    wrong = list(without_alt())
    for picture in sorted(PICTURES.glob("*.svg")):
        if picture not in wanted:
            wrong.append(f"{picture.relative_to(ROOT)} has no description beside it")
    for picture, svg in sorted(wanted.items()):
        if not picture.exists() or picture.read_text(encoding="utf-8") != svg:
            if check:
                wrong.append(f"{picture.relative_to(ROOT)} differs from its description: run tools/draw_pictures.py")
            else:
                picture.write_text(svg, encoding="utf-8")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
