"""Draw the figures in docs/ARCHITECTURE.md from the imports: the rooms of eos and statestore, and who calls whom.

`--check` writes nothing and exits with 1 when an arrow is missing or drawn in vain, or when a room has no row in the
page's tables, or a row no room. Needs grimp, which comes with import-linter.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "ARCHITECTURE.md"
DEEPER = ("eos.pulsar", "statestore.drills")
"""Rooms that have rooms of their own."""
_FIGURE = re.compile(r"(<!-- rooms of (?P<package>\w+) -->\n).*?(<!-- end of the rooms -->)", re.DOTALL)
_ROW = re.compile(r"^\| `(?P<room>[\w/]+)/` \|", re.MULTILINE)

Arrows = set[tuple[str, str]]


def room_of(module: str, packages: set[str]) -> str | None:
    """Return the room that a module lies in, "eos" for its front; None for what all rooms share, as `eos.errors`."""
    if module == "eos":
        return module
    for depth in (3, 2):
        room = ".".join(module.split(".")[:depth])
        if room in packages and room.count(".") == depth - 1 and (depth == 2 or room.startswith(DEEPER)):
            return room
    return None


def arrows(graph: grimp.ImportGraph) -> tuple[set[str], Arrows]:
    """Return the rooms that have code, and an arrow for each pair of rooms of which one imports the other."""
    packages = {module for module in graph.modules if graph.find_children(module)}
    rooms: set[str] = set()
    found: Arrows = set()
    for module in graph.modules:
        room = room_of(module, packages)
        if room is None:
            continue
        if module not in packages:
            rooms.add(room)
        for imported in graph.find_modules_directly_imported_by(module):
            to = room_of(imported, packages)
            if to is not None and to != room:
                found.add((room, to))
    return rooms, found


def figure(package: str, rooms: set[str], found: Arrows) -> str:
    """Return the figure of one package; in that of statestore, all rooms of eos are one box."""

    def box(room: str) -> str:
        return room.removeprefix(f"{package}.").replace(".", "/") if room.startswith(f"{package}.") else "eos"

    own = {room for room in rooms if room.startswith(f"{package}.")}
    drawn = sorted({(box(a), box(b)) for a, b in found if a in own})
    names = sorted({box(room) for room in own} | {name for arrow in drawn for name in arrow})
    lines = [f'    {name.replace("/", "_")}["{name}"]' for name in names]
    lines += [f"    {a.replace('/', '_')} --> {b.replace('/', '_')}" for a, b in drawn]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```", ""])


def drawn_anew(page: str, rooms: set[str], found: Arrows) -> str:
    """Return the page with its figures as the code is."""
    return _FIGURE.sub(lambda old: old[1] + figure(old["package"], rooms, found) + old[3], page)


def rows_amiss(page: str, rooms: set[str]) -> list[str]:
    """Say which rooms have no row, and which rows no room."""
    rows = {row["room"].replace("/", ".") for row in _ROW.finditer(page)}
    return [f"{room} has no row" for room in sorted(rooms - rows)] + [f"there is no {r}" for r in sorted(rows - rooms)]


def main() -> int:
    """Draw, or check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the page is not as the code")
    check = parser.parse_args().check
    rooms, found = arrows(grimp.build_graph("eos", "statestore", cache_dir=None))
    page = PAGE.read_text(encoding="utf-8")
    anew = drawn_anew(page, rooms, found)
    amiss = rows_amiss(page, rooms)
    if not check:
        PAGE.write_text(anew, encoding="utf-8")
    elif anew != page:
        amiss.append("a figure is not as the imports are: run python tools/draw_rooms.py")
    for line in amiss:
        print(f"{PAGE.relative_to(ROOT)}: {line}", file=sys.stderr)
    return 1 if amiss else 0


if __name__ == "__main__":
    raise SystemExit(main())
