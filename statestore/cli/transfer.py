"""`statestore cp` and `statestore rescale`: a checkpoint in another place, or in another number of partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from statestore.bk.address import BkAddress, is_bk
from statestore.cli import console
from statestore.cli.options import AsJson, Conf, HadoopOptions, Operators, parse_options
from statestore.cli.spark import spark_for
from statestore.errors import InvalidInput, NotFound
from statestore.hadoop.file_systems import Hadoop
from statestore.json_fields import to_json

if TYPE_CHECKING:
    from statestore.checkpoint.transfer import Progress


def cp(
    source: Annotated[str, typer.Argument(help="A file, a folder or a query's checkpoint, which may run.")],
    target: Annotated[str, typer.Argument(help="An empty place.")],
    operators: Operators = None,
    as_json: AsJson = False,
    option: HadoopOptions = None,
) -> None:
    """Copy between bk://, file:// and any other Hadoop file system.

    It copies a query's checkpoint as a consistent cut at its newest committed batch, also while the query runs. Never
    run the query on both.
    """
    from statestore.checkpoint import transfer
    from statestore.checkpoint.logs import is_checkpoint
    from statestore.checkpoint.place import find_checkpoints

    options = parse_options(option)
    for uri in filter(is_bk, (source, target)):
        BkAddress.parse(uri, options)
    # Where nothing is to be copied, no tree of names is begun.
    status = Hadoop.of(options=options, make_root=False, own_jvm=True).status(source)
    if status is None:
        raise NotFound(f"{source} does not exist")
    hadoop = Hadoop.of(options=options, own_jvm=True)
    found = hadoop.list(source) if status.is_directory else []
    with console.bar("copying") as show:

        def progress(done: int, total: int, count: int) -> None:
            show(done, total or None, f"{console.count(done, 'file')}, {console.size(count)}")

        if is_checkpoint({one.name for one in found}):
            copied = transfer.copy_checkpoint(hadoop, source, target, progress, operators=operators)
            facts, what = to_json(copied), f"{console.count(copied.files, 'file')}, up to batch {copied.batch_id}"
            count = copied.bytes
        else:
            for files in find_checkpoints(hadoop, source) if status.is_directory else ():
                raise InvalidInput(f"{files.uri('')} is a query's checkpoint. Copy it by itself, as a consistent cut")
            lengths: list[int] = []
            count = hadoop.copy(source, target, _counting(lengths, progress))
            facts, what = {"files": len(lengths), "bytes": count}, console.count(len(lengths), "file")
    console.show(facts, as_json, f"{target}: {what}, {console.size(count)}")


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


def _counting(lengths: list[int], progress: Progress) -> Callable[[int], None]:
    def one(length: int) -> None:
        lengths.append(length)
        progress(len(lengths), 0, sum(lengths))

    return one
