"""`statestore gc | orphans`: the ledgers of a tree of files, by the jar's own sweeper."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statestore.bk.address import BkAddress
from statestore.cli import console
from statestore.cli.options import AsJson, HadoopOptions, parse_options
from statestore.hadoop.file_systems import Hadoop

if TYPE_CHECKING:
    from statestore.savepoints.store import SavepointStore

Tree = Annotated[str, typer.Argument(metavar="URI", help="Any bk:// address in the tree.")]


def gc(uri: Tree, as_json: AsJson = False, option: HadoopOptions = None) -> None:
    """Run the sweeper once. It frees ledgers without references after the grace time, and empties sparse packs.

    Jobs do the same every few minutes. The grace time is fs.bk.grace.ms (1 hour) after a round first
    sees a ledger without references. Leftovers of a killed command are removed after a day.
    """
    from statestore.savepoints.bookkeeper import remove_left

    store = _store(uri, option)
    removed = remove_left(store)
    freed, left_alone = _asked(store, "swept")
    line = f"Freed {console.count(len(freed), 'ledger')}" + (f": {', '.join(map(str, freed))}" if freed else ".")
    if removed:
        line += f"\nRemoved what killed commands had left: {', '.join(removed)}"
    console.show({"freed": freed, "removed": removed, "left_alone": left_alone}, as_json, line)
    _tell_left(left_alone, as_json)


def orphans(uri: Tree, as_json: AsJson = False, option: HadoopOptions = None) -> None:
    """List unregistered ledgers of dead processes, and savepoints that they read or copied.

    Exit code 1 if there are any, 3 if there are none, but ledgers could not be read.
    """
    from statestore.savepoints.bookkeeper import left_behind

    store = _store(uri, option)
    found, left_alone = _asked(store, "found")
    left = [one.name for one in left_behind(store)]
    if as_json:
        console.show_json({"orphans": found, "readings": left, "left_alone": left_alone})
    elif found:
        console.print_table(("ledger",), [(ledger,) for ledger in found])
        console.tell("A round of `statestore gc` deletes them, once their writers have been dead for the grace time.")
    elif not left_alone:
        console.tell("No orphans: every ledger of this tree is registered.")
    _tell_left(left_alone, as_json)
    if left and not as_json:
        console.print_table(("left by a killed command",), [(name,) for name in left])
        console.tell(
            f"`statestore savepoint delete {left[0]} {uri}` removes one with what it holds; `statestore gc`, and the "
            "next command that reads or copies a savepoint, those that are a day old."
        )
    if found or left:
        sys.exit(console.FINDINGS)
    if left_alone:
        sys.exit(console.UNKNOWN)


def _store(uri: str, option: list[str] | None) -> SavepointStore:
    address = BkAddress.parse(uri, parse_options(option))
    from statestore.savepoints.store import SavepointStore

    return SavepointStore(Hadoop.of(options=address.options, make_root=False, own_jvm=True), address)


def _tell_left(left_alone: Mapping[str, str], as_json: bool) -> None:
    if left_alone and not as_json:
        console.tell(
            f"{console.count(len(left_alone), 'ledger')} or their records could not be read or deleted, and whether "
            "anything needs them is not known. Another user of ZooKeeper may own them, or they are damaged. The first "
            f"is {next(iter(left_alone))} ({next(iter(left_alone.values()))}). --json names them all."
        )


def _asked(store: SavepointStore, what: str) -> tuple[list[int], dict[str, str]]:
    """Return ledgers, and {what was left alone since it can't be read or deleted: why}."""
    hadoop, where = store.hadoop, store.address.uri
    maintenance: Any = hadoop.jvm.eos.bk.Maintenance
    with hadoop.explained(where):
        said = json.loads(getattr(maintenance, what)(hadoop.file_system(where)))
    return sorted(said["ledgers"]), said["left"]


COMMANDS: tuple[Callable[..., None], ...] = (gc, orphans)
