"""`statestore rescale`: the state of a query in another number of partitions, as a new checkpoint."""

from __future__ import annotations

from typing import Annotated

import typer

from statestore.cli import console
from statestore.cli.options import AsJson, Conf, HadoopOptions, parse_options
from statestore.cli.spark import spark_for
from statestore.json_fields import to_json


def rescale(
    source: Annotated[str, typer.Argument(help="A checkpoint whose query has ended, or a savepoint's name.")],
    target: Annotated[
        str, typer.Argument(help="An empty place for the new checkpoint. For a name, bk:// in its tree.")
    ],
    partitions: Annotated[int, typer.Option(help="The new number of partitions.")],
    conf: Conf = None,
    option: HadoopOptions = None,
    as_json: AsJson = False,
) -> None:
    """Make a new checkpoint with a query's state in so many partitions. The original stays as it is.

    The command compares the new state with the old one. Start the query on the new checkpoint. Never run it on both.
    """
    from statestore.rewriting import rescale as rescale_checkpoint

    options = parse_options(option)
    with spark_for(options, conf, source, target) as spark, console.bar("copying") as show:

        def progress(done: int, total: int, size: int) -> None:
            show(done, total, f"{console.count(done, 'file')}, {console.size(size)}")

        made = rescale_checkpoint(source, target, partitions, spark=spark, options=options, progress=progress)
    said = f"{target}: {console.count(made.rows, 'row')} of state in {console.count(made.partitions, 'partition')}"
    said = f"{said} in place of {made.partitions_before}, of batch {made.state_of}. Start the query on it"
    console.show(to_json(made), as_json, said)
