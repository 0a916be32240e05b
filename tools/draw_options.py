"""Draws tables of options, and schemas of outputs, in docs/ from the code: `python tools/draw_options.py [--check]`.

Without --check the pages are written; with it, the exit code is 1 when one is stale.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from eos.cli.client_conf import KEYS
from eos.cli.layers import WAYS
from eos.credentials import OAUTH2
from eos.metrics import opentelemetry, prometheus
from eos.metrics.figures import FIGURES, Figure
from eos.metrics.source_figures import SOURCE_FIGURES
from eos.schema.primitives import PRIMITIVES
from eos.schema.spark_types import OF_PRIMITIVES
from eos.source.columns import PARTS
from statestore.hadoop.options import OPTIONS
from tools import command_pages, configuration_table, output_schemas

DOCS = Path(__file__).parent.parent / "docs"


def figures(of: Iterable[Figure]) -> str:
    """Return the table of figures, by the names of both exporters."""
    rows = (
        (
            f"`{prometheus.name_of(one)}`<br>`{opentelemetry.name_of(one)}`, {opentelemetry.unit_of(one)}",
            ", ".join(f"`{label}`" for label in one.labels),
            f"{one.kind}: {one.meaning}",
        )
        for one in of
    )
    return _table(rows, "figure | labels | meaning")


def bk_options() -> str:
    """Return the table of the options `fs.bk.…` that have a default; the page tells of the others."""
    return _table(
        (f"`fs.bk.{name}`", f"`{option.default}`" if option.default else "none", option.meaning)
        for name, option in OPTIONS.items()
    )


def source_columns() -> str:
    """Return the table of the columns that the source gives."""
    rows = ((f"`{one.name}`", " or ".join(kind.simpleString() for kind in one.types), one.meaning) for one in PARTS)
    return _table(rows, "column | type | meaning")


def oauth2_options() -> str:
    """Return the table of the options of OAuth 2.0."""
    rows = ((f"`{name}`", ", ".join(f"`{one}`" for one in told.others), told.meaning) for name, told in OAUTH2.items())
    return _table(rows, "option | also called | meaning")


def connection_options() -> str:
    """Return the table of the options that each command of `eos` takes that connects, with the key in a client.conf."""
    taken = [(group, row) for group, rows in configuration_table.tables().items() for row in rows]
    rows = []
    for group, (option, *_, flag, variable, _meaning) in taken:
        if flag:
            name = option.strip("`")
            key = "authPlugin" if name in WAYS else KEYS.get(name)
            rows.append((f"[{flag}](configuration.md#{group.lower()})", variable, f"`{key}`" if key else ""))
    return _table(rows, "option | environment | client.conf")


def primitive_types() -> str:
    """Return the table of Pulsar's primitives and Spark's types."""
    rows = ((f"`{kind}`", type_.simpleString(), _layout(kind)) for kind, type_ in OF_PRIMITIVES.items())
    return _table(rows, "schema | Spark's type | bytes of a value")


def configuration(group: str) -> str:
    """Return the table of a group of options."""
    head, rows = configuration_table.table(group)
    return _table(rows, head)


def _layout(kind: str) -> str:
    layout = PRIMITIVES[kind]
    return "any" if layout is None else str(layout.parts.itemsize)


def _table(rows: Iterable[tuple[str, ...]], head: str = "option | default | meaning") -> str:
    lines = (f"| {' | '.join(' '.join(cell.split()) for cell in row)} |" for row in rows)
    return f"| {head} |\n|{'---|' * (head.count('|') + 1)}\n" + "\n".join(lines)


DRAWN: tuple[tuple[Path, str, Callable[[], str]], ...] = (
    (DOCS / "reference" / "metrics.md", "sink figures", partial(figures, FIGURES)),
    (DOCS / "reference" / "metrics.md", "source figures", partial(figures, SOURCE_FIGURES)),
    (DOCS / "reference" / "source.md", "source columns", source_columns),
    (DOCS / "reference" / "schemas.md", "primitive types", primitive_types),
    (DOCS / "how-to" / "state-on-bookkeeper.md", "bk options", bk_options),
    (DOCS / "how-to" / "authentication.md", "oauth2 options", oauth2_options),
    (DOCS / "reference" / "commands.md", "connection options", connection_options),
    (DOCS / "reference" / "commands.md", "verbs of eos", partial(command_pages.drawn, "eos")),
    (DOCS / "reference" / "commands.md", "verbs of statestore", partial(command_pages.drawn, "statestore")),
    *(
        (DOCS / "reference" / "configuration.md", group, partial(configuration, group))
        for group in configuration_table.GROUPS
    ),
)


def drawn(text: str, name: str, table: str) -> str:
    """Return a page with what stands between its two marks replaced."""
    begin, end = f"<!-- drawn: {name}, by tools/draw_options.py -->\n\n", "\n\n<!-- end of what is drawn -->"
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"a page lacks the marks of the table of {name}")
    return f"{before}{begin}{table}{end}{after}"


def wanted() -> dict[Path, str]:
    """Return what each page and each schema should have."""
    found = output_schemas.files()
    for page, name, table in DRAWN:
        found[page] = drawn(found.get(page) or page.read_text(encoding="utf-8"), name, table())
    return found


def main(arguments: list[str]) -> int:
    """Write the pages and the schemas, or with --check only compare them. Returns the exit code."""
    fresh = wanted()
    there = [path for path in (*fresh, *output_schemas.FOLDER.iterdir()) if path.exists()]
    held = {path: path.read_text(encoding="utf-8") for path in there}
    stale = sorted(path for path in held.keys() | fresh.keys() if held.get(path) != fresh.get(path))
    if stale and "--check" in arguments:
        names = ", ".join(str(path.relative_to(DOCS.parent)) for path in stale)
        print(f"stale: {names}; run python tools/draw_options.py", file=sys.stderr)
        return 1
    for path in stale:
        if path in fresh:
            path.write_text(fresh[path], encoding="utf-8")
        else:  # the schema of a command that is gone
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
