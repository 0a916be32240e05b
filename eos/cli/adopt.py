"""`eos sink adopt`: whether a query of another sink can go on with this one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from eos.cli.connection import ConnectionOptions, connecting
from eos.cli.console import FINDINGS, UNKNOWN, print_json, print_table, tell

if TYPE_CHECKING:
    from eos.inspect.adoption import Adoption


@connecting
def adopt(
    to: ConnectionOptions,
    checkpoint: Annotated[str, typer.Argument(help="The query's checkpointLocation, a folder, or file:, s3:, hdfs: …")],
    topic: Annotated[str, typer.Option(help="The topic that the query wrote to.")],
    sink: Annotated[str, typer.Option(help="The new sink's name, as in eos.sink(name=…).")],
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object.")] = False,
) -> None:
    """Check whether a query of another sink can continue with eos.sink from its own checkpoint.

    Stop the query first. The command changes nothing. The first start with eos.sink takes the checkpoint over. Exit
    codes: 0 good, 1 something needs care, 2 refused, 3 the answer cannot be known.
    """
    from eos.doctor.check import CheckVerdict
    from eos.inspect.adoption import adoption
    from eos.inspect.checkpoints import read_checkpoint
    from eos.pulsar.net.client import Client
    from eos.pulsar.protocol.topics import valid_topic

    read = read_checkpoint(checkpoint)
    with Client(to.cluster) as client, to.admin() as admin:
        found = adoption(client, admin, read, valid_topic(topic), sink)
    if as_json:
        print_json(found)
    else:
        _show(found, to.cluster.service_url)
    verdicts = {one.verdict for one in found.findings}
    if CheckVerdict.UNKNOWN in verdicts:
        raise typer.Exit(UNKNOWN)
    if CheckVerdict.CARE in verdicts:
        raise typer.Exit(FINDINGS)


def _show(found: Adoption, service_url: str) -> None:
    print_table(("about", "verdict", "what was found"), [(one.about, one.verdict, one.said) for one in found.findings])
    options = "".join(f", {name}={value!r}" for name, value in found.options.items())
    call = f"eos.sink({service_url!r}{options})"
    tell(f"Query {found.query_id} goes on at batch {found.next_batch} with foreachBatch({call})")
