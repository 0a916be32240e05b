"""`statestore gc | orphans`: the ledgers of a tree of files, by the jar's own sweeper."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from statestore.bk.address import Address
from statestore.cli import console
from statestore.cli.options import AsJson, HadoopOptions, parse_options
from statestore.hadoop.file_systems import Hadoop

Tree = Annotated[str, typer.Argument(metavar="URI", help="Any bk:// address in the tree.")]


def gc(uri: Tree, as_json: AsJson = False, option: HadoopOptions = None) -> None:
    """Run the sweeper once: free what nothing has referred to for the grace time, and empty sparse packs.

    Jobs do the same every few minutes by themselves. A ledger that is seen without references for the first time is
    freed by a later round, after fs.bk.grace.ms (1 hour); what a round moves out of sparse packs, by the next but one.
    """
    freed = _asked(uri, option, "sweep")
    line = f"Freed {console.count(len(freed), 'ledger')}" + (f": {', '.join(map(str, freed))}" if freed else ".")
    console.show({"freed": freed}, as_json, line)


def orphans(uri: Tree, as_json: AsJson = False, option: HadoopOptions = None) -> None:
    """List ledgers that a dead writer left behind unregistered. Exit code 1 if there are any."""
    found = _asked(uri, option, "orphans")
    if as_json:
        console.show_json({"orphans": found})
    elif found:
        console.show_table(("ledger",), [(ledger,) for ledger in found])
        console.tell("A round of `statestore gc` deletes them, once their writers have been dead for the grace time.")
    else:
        console.tell("No orphans: every ledger of this tree is registered.")
    if found:
        sys.exit(console.FINDINGS)


def _asked(uri: str, option: list[str] | None, what: str) -> list[int]:
    address = Address.parse(uri, parse_options(option))
    hadoop = Hadoop.of(options=address.options, make_root=False, own_jvm=True)
    maintenance: Any = hadoop.jvm.eos.bk.Maintenance
    with hadoop.explained(address.uri):
        return sorted(int(ledger) for ledger in getattr(maintenance, what)(hadoop.file_system(address.uri)))


COMMANDS: tuple[Callable[..., None], ...] = (gc, orphans)
