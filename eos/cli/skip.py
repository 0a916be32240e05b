"""`eos skip`: a sink goes on without the rows of a batch that failed."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Annotated

import typer

from eos.cli.connection import ConnectionOptions, ControlNamespace, connecting
from eos.cli.console import FINDINGS, Yes, agreed, tell
from eos.commit.control_topic import DEFAULT_NAMESPACE


@connecting
def skip(
    to: ConnectionOptions,
    name: Annotated[str, typer.Argument(help="The sink's name.")],
    batch: Annotated[int, typer.Option(min=0, help="The batch to go on without.")],
    namespace: ControlNamespace = DEFAULT_NAMESPACE,
    yes: Yes = False,
    as_json: Annotated[bool, typer.Option("--json", help="The skipped batch, as a JSON object.")] = False,
) -> None:
    """Give up the rows of a batch that failed, so that the sink's query may go on with the next one.

    The command commits the batch without rows. Use it when the query's checkpoint has passed the batch and the sink
    refuses the next one. Refused while a driver owns the sink. Exit codes: 0, 1 you said no.
    """
    from eos.doctor import skip as skipping
    from eos.pulsar.net.admin import Admin
    from eos.pulsar.net.client import Client

    with ExitStack() as stack:
        client = stack.enter_context(Client(to.cluster))
        admin = None
        if to.admin_url is not None:
            admin = stack.enter_context(Admin(to.admin_url, to.cluster.credentials, to.cluster.tls))
        found = skipping.look(client, name, batch, namespace, admin)
        tell(skipping.what_it_means(found, batch))
        if not yes and not agreed(f'Skip batch {batch} of the sink "{name}"?'):
            tell("Nothing was done.")
            raise typer.Exit(FINDINGS)
        skipping.skip(client, found, batch, namespace)
    if as_json:
        print(json.dumps({"sink": name, "batch_id": batch, "query_id": found.query_id}, indent=2))
    tell(f'Batch {batch} of the sink "{name}" is committed without rows.')
