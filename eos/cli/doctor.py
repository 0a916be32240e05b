"""`eos doctor` and `eos abort`: what holds readers up, and what a dead driver has left open."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from eos.cli.connection import Connection, Namespace, connecting
from eos.cli.console import FINDINGS, Yes, tell

if TYPE_CHECKING:
    from eos.doctor.doctor import Finding

DEFAULT_ADMIN_URL = "http://localhost:8080"


@connecting
def doctor(
    to: Connection,
    topics: Annotated[list[str] | None, typer.Argument(help="Topics. Default: all of the namespace.")] = None,
    namespace: Namespace = "public/default",
    older_than: Annotated[
        float, typer.Option(help="Pass over transactions that are open for less, in seconds.")
    ] = 60.0,
    heal: Annotated[bool, typer.Option("--heal", help="Free what is frozen.")] = False,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="With --heal: also where that hides rows that were committed.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="A JSON list, one object for each partition held up.")
    ] = False,
) -> None:
    """Find the partitions whose readers are held up, say by which sink's transaction, and free the frozen ones.

    Readers wait for each batch that is being written; only what lasts longer than --older-than is told.

    Waiting: a coordinator has the transaction open; it ends with its batch, by its sink's next driver, by `eos abort`,
    or by its time-out. Frozen: no coordinator knows it any more; --heal ends empty transactions there until the broker
    throws it away. A broker that may show readers aborted rows after a restart is told of too. Exit codes: 0 when
    nothing is held up at the end, 1 when something is, 2 when that was not found out.
    """
    from eos.doctor.doctor import Doctor, State, summary
    from eos.doctor.recovery import danger
    from eos.pulsar.net.admin import Admin
    from eos.pulsar.net.client import Client

    cluster, admin_url = to.cluster, to.admin_url or DEFAULT_ADMIN_URL
    with Client(cluster) as client, Admin(admin_url, cluster.credentials, cluster.tls) as admin:
        one = Doctor(client, admin)
        partitions = list(one.partitions(topics)) if topics else one.namespace(namespace)
        found = one.look(partitions, older_than)
        if heal:
            for finding in found:
                if finding.state is State.FROZEN and (accept_loss or not finding.loses_rows):
                    one.heal(finding)
                    tell(f"{finding.partition} is free.")
            found = one.look(partitions, older_than)
        if told := danger(admin):
            tell(told.text)
    if as_json:
        print(json.dumps([summary(finding) for finding in found], indent=2))
    elif found:
        _show(found)
    else:
        tell(f"{len(partitions)} partitions, none held up.")
    if found:
        raise typer.Exit(FINDINGS)


@connecting
def abort(
    to: Connection,
    name: Annotated[str, typer.Argument(help="The sink's name.")],
    namespace: Namespace = "public/default",
    yes: Yes = False,
) -> None:
    """Abort the transaction that a sink's dead driver has left open, so that readers need not wait for its time-out.

    Nothing is lost: the sink writes the batch again when its query starts. Refused while a driver owns the sink. With
    --admin-url a superuser also aborts what another role has opened.
    """
    from eos.doctor import abort as aborting
    from eos.pulsar.net.admin import Admin
    from eos.pulsar.net.client import Client

    with ExitStack() as stack:
        client = stack.enter_context(Client(to.cluster))
        found = aborting.abandoned(client, name, namespace)
        if found is None:
            tell(f'The sink "{name}" has left no transaction open.')
            return
        if not yes and not typer.confirm(f"Abort {found}?", err=True):
            tell("Nothing was done.")
            raise typer.Exit(1)
        admin = None
        if to.admin_url is not None:
            admin = stack.enter_context(Admin(to.admin_url, to.cluster.credentials, to.cluster.tls))
        if aborting.abort(client, found, admin):
            tell(f"Aborted {found}.")
        elif found.intent.principal and admin is None:
            tell(
                f"Nothing of that name is open for us: it has ended, or only the role {found.intent.principal} may end "
                "it. Use its credentials, or give --admin-url as a superuser."
            )
        else:
            tell(f"It had ended before: {found}.")


def _show(found: list[Finding]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("partition", "state", "transaction", "open for", "whose", "what to do")
    for one in found:
        whose = "not known" if one.trace is None else f"{one.trace.sink}, batch {one.trace.intent.batch_id}"
        age = "" if one.age_s is None else f"{one.age_s:.0f} s"
        table.add_row(one.partition, one.state, str(one.txn or "not known"), age, whose, one.remedy)
    Console(highlight=False, soft_wrap=not sys.stdout.isatty()).print(table)
