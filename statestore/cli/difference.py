"""`statestore diff`: what differs between the state in two checkpoints or savepoints."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statestore.cli import console
from statestore.cli.options import AsJson, Conf, HadoopOptions, parse_options
from statestore.cli.spark import spark_for
from statestore.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SIDE = "A checkpoint, on any Hadoop file system, or a savepoint's name."
_WIDEST = 200  # characters of a key or value in a table


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help=_SIDE)],
    b: Annotated[str, typer.Argument(metavar="B", help=_SIDE)],
    batch_a: Annotated[int | None, typer.Option(help="A committed batch of A, by default the newest.")] = None,
    batch_b: Annotated[int | None, typer.Option(help="A committed batch of B, by default the newest.")] = None,
    tree: Annotated[
        str | None, typer.Option(help="For names, any bk:// address in their tree, by default that of the other side.")
    ] = None,
    limit: Annotated[int, typer.Option(help="How many differences to show. All are counted.", min=0)] = 20,
    conf: Conf = None,
    option: HadoopOptions = None,
    as_json: AsJson = False,
) -> None:
    """Compare the state in two checkpoints or savepoints, key by key, however it is stored.

    Exit code 0 if it is the same, 1 if it differs.
    """
    from statestore.checkpoint.difference import state_difference
    from statestore.savepoints.bookkeeper import opened
    from statestore.savepoints.savepoint import is_name

    options = parse_options(option)
    with spark_for(options, conf, a, b, tree) as spark, contextlib.ExitStack() as stack:
        addresses = []
        for side, other in ((a, b), (b, a)):
            if is_name(side):
                place = tree or other
                if is_name(place):
                    raise InvalidInput(f"{side} is a savepoint's name. Say in which tree, --tree bk://host:port/")
                side = stack.enter_context(opened(side, place, options=options, spark=spark))
            addresses.append(side)
        first, second = addresses
        found = state_difference(
            first, second, spark=spark, batch_a=batch_a, batch_b=batch_b, options=options
        ).persist()
        counts = _counts(found)
        shown = [row.asDict() for row in found.orderBy("operator", "store", "key").limit(limit).collect()]
    total = sum(sum(one["changes"].values()) for one in counts)
    if as_json:
        console.show_json({"same": not total, "differences": total, "stores": counts, "shown": shown})
    else:
        _tell(counts, shown, total)
    sys.exit(console.FINDINGS if total else 0)


def _counts(found: DataFrame) -> list[dict[str, Any]]:
    stores: dict[tuple[int, str], dict[str, Any]] = {}
    for row in found.groupBy("operator", "operator_name", "store", "change").count().collect():
        about = {"operator": row.operator, "name": row.operator_name, "store": row.store, "changes": {}}
        stores.setdefault((row.operator, row.store), about)["changes"][row.change] = row["count"]
    return [stores[key] for key in sorted(stores)]


def _tell(counts: list[dict[str, Any]], shown: list[dict[str, Any]], total: int) -> None:
    if not total:
        console.tell("The state is the same")
        return
    console.print_table(
        ("operator", "name", "store", "change", "key", "A", "B"),
        [
            (
                *(row["operator"], row["operator_name"], row["store"], row["change"]),
                *(_short(row[column]) for column in ("key", "a", "b")),
            )
            for row in shown
        ],
    )
    for one in counts:
        changes = ", ".join(f"{count} {change}" for change, count in sorted(one["changes"].items()))
        console.tell(f"operator {one['operator']} ({one['name']}), {one['store']}: {changes}")
    if len(shown) < total:
        console.tell(f"{len(shown)} of {total} are shown: --limit shows more")


def _short(text: str | None) -> str:
    return "" if text is None else text if len(text) <= _WIDEST else f"{text[:_WIDEST]}…"
