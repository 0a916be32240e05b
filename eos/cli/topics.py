"""`eos topics` and `eos topics create`: which topics there are, and a new one."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated

import typer

from eos.cli.connection import ConnectionOptions, Namespace, connecting
from eos.cli.console import print_json, print_table, tell

if TYPE_CHECKING:
    from eos.pulsar.net.admin import Admin
    from eos.pulsar.net.client import Client

app = typer.Typer(invoke_without_command=True)


@app.callback()
@connecting
def topics(
    context: typer.Context,
    to: ConnectionOptions,
    namespace: Namespace = "public/default",
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list, one object for each topic.")] = False,
) -> None:
    """List the topics of a namespace with their partitions and the kind of their schema.

    Those that begin with two underscores are left out.
    """
    from eos.errors import InvalidInput
    from eos.inspect.tables import tables
    from eos.pulsar.net.client import Client

    if context.invoked_subcommand is not None:
        if any(getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE" for name in context.params):
            raise InvalidInput(
                f"Options of eos topics {context.invoked_subcommand} come after the verb. Nothing was done."
            )
        return
    with Client(to.cluster) as client:
        found = tables(client, namespace)
    if not found:
        tell(f"{namespace} has no topics, or does not exist.")
    if as_json:
        print_json(found)
    if as_json or not found:
        return
    rows = [(one.topic, str(one.partitions or "none"), one.schema or "none") for one in found]
    print_table(("topic", "partitions", "schema"), rows)


@app.command()
@connecting
def create(
    to: ConnectionOptions,
    topic: Annotated[str, typer.Argument(help="name, tenant/namespace/name or persistent://tenant/namespace/name.")],
    partitions: Annotated[int, typer.Option(min=0, help="0: a topic without partitions.")] = 0,
) -> None:
    """Create a topic by the admin API. A second run finds the topic there."""
    from eos.pulsar.net.client import Client
    from eos.pulsar.protocol.topics import valid_topic

    full = valid_topic(topic)
    with to.needed_admin() as admin, Client(to.cluster) as client:
        made = _made(client, admin, full, partitions)
    tell(f"{full} is {'made' if made else 'there already'}. `eos peek {topic}` shows its rows.")


def _made(client: Client, admin: Admin, topic: str, partitions: int) -> bool:
    """Create a topic; False where it was there with as many partitions.

    Raises InvalidInput where it has others, and where the namespace is missing.
    """
    from eos.errors import InvalidInput, Refused

    try:
        admin.create(topic, partitions)
    except Refused as refused:
        if refused.code == str(HTTPStatus.NOT_FOUND.value):
            raise InvalidInput(
                f"{topic} was not created. Its namespace does not exist. Create the namespace, or name another one."
            ) from refused
        if refused.code != str(HTTPStatus.CONFLICT.value):
            raise
        if (found := client.partitions(topic)) != partitions:
            raise InvalidInput(
                f"{topic} is there already, with {found} partitions, not {partitions}. Nothing was done. Take another "
                "name, or leave the topic as it is."
            ) from None
        return False
    return True
