"""Draw the figures in docs/ARCHITECTURE.md from the imports: the packages of eos and statestore, and who calls whom.

`--check` writes nothing and exits with 1 when an arrow is missing or drawn without need, or when a package has no row
in the page's tables, or a row no package. Needs grimp, which comes with import-linter.
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
"""Packages that have packages of their own."""
_FIGURE = re.compile(r"(<!-- packages of (?P<root_package>\w+) -->\n).*?(<!-- end of the packages -->)", re.DOTALL)
_FILE = re.compile(r"`((?:eos|statestore)/[\w/]+\.py)`")
_ROW = re.compile(r"^\| `(?P<package>[\w/]+)/` \|", re.MULTILINE)

Arrows = set[tuple[str, str]]


def package_of(module: str, parents: set[str]) -> str | None:
    """Return the package that a module lies in, "eos" for its front; None for what all of them share (`eos.errors`)."""
    if module == "eos":
        return module
    for depth in (3, 2):
        package = ".".join(module.split(".")[:depth])
        if package in parents and package.count(".") == depth - 1 and (depth == 2 or package.startswith(DEEPER)):
            return package
    return None


def arrows(graph: grimp.ImportGraph) -> tuple[set[str], Arrows]:
    """Return the packages that have code, and an arrow for each pair of packages where one imports the other."""
    parents = {module for module in graph.modules if graph.find_children(module)}
    packages: set[str] = set()
    found: Arrows = set()
    for module in graph.modules:
        package = package_of(module, parents)
        if package is None:
            continue
        if module not in parents:
            packages.add(package)
        for imported in graph.find_modules_directly_imported_by(module):
            to = package_of(imported, parents)
            if to is not None and to != package:
                found.add((package, to))
    return packages, found


def figure(root_package: str, packages: set[str], found: Arrows) -> str:
    """Return the figure of one root_package; in that of statestore, all packages of eos are one box."""

    def box(package: str) -> str:
        return (
            package.removeprefix(f"{root_package}.").replace(".", "/")
            if package.startswith(f"{root_package}.")
            else "eos"
        )

    own = {package for package in packages if package.startswith(f"{root_package}.")}
    drawn = sorted({(box(a), box(b)) for a, b in found if a in own})
    names = sorted({box(package) for package in own} | {name for arrow in drawn for name in arrow})
    lines = [f'    {name.replace("/", "_")}["{name}"]' for name in names]
    lines += [f"    {a.replace('/', '_')} --> {b.replace('/', '_')}" for a, b in drawn]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```", ""])


def drawn_anew(page: str, packages: set[str], found: Arrows) -> str:
    """Return the page with its figures as the code is."""
    return _FIGURE.sub(lambda old: old[1] + figure(old["root_package"], packages, found) + old[3], page)


def rows_amiss(page: str, packages: set[str]) -> list[str]:
    """Say which packages have no row, and which rows no package."""
    rows = {row["package"].replace("/", ".") for row in _ROW.finditer(page)}
    return [f"{package} has no row" for package in sorted(packages - rows)] + [
        f"there is no {r}" for r in sorted(rows - packages)
    ]


def files_gone(page: str, root: Path) -> list[str]:
    """Say which files the page sends a reader to that do not exist."""
    return [f"there is no {name}" for name in sorted(set(_FILE.findall(page))) if not (root / name).exists()]


def main() -> int:
    """Draw, or check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the page is not as the code")
    check = parser.parse_args().check
    packages, found = arrows(grimp.build_graph("eos", "statestore", cache_dir=None))
    page = PAGE.read_text(encoding="utf-8")
    anew = drawn_anew(page, packages, found)
    amiss = rows_amiss(page, packages) + files_gone(page, ROOT)
    if not check:
        PAGE.write_text(anew, encoding="utf-8")
    elif anew != page:
        amiss.append("a figure is not as the imports are: run python tools/draw_packages.py")
    for line in amiss:
        print(f"{PAGE.relative_to(ROOT)}: {line}", file=sys.stderr)
    return 1 if amiss else 0


if __name__ == "__main__":
    raise SystemExit(main())
