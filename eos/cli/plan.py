"""`eos plan`: where the segments of a topic are stored, and which reader takes each."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from eos.cli.connection import DEFAULT_ADMIN_URL, ConnectionOptions, connecting
from eos.cli.console import print_table, tell


@connecting
def plan(
    to: ConnectionOptions,
    topic: Annotated[str, typer.Argument(help="A topic, or one partition by its own name.")],
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list, one object for each segment.")] = False,
) -> None:
    """Show the segments of a topic: where each is stored, and whether the source reads it from bookies or brokers.

    The reader is the one of read.from=auto. The command reads no row.
    """
    from dataclasses import asdict

    from eos.inspect.segments import segments
    from eos.pulsar.net.admin import Admin
    from eos.pulsar.net.client import Client
    from eos.pulsar.protocol.topics import full_name

    cluster, admin_url = to.cluster, to.admin_url or DEFAULT_ADMIN_URL
    with Client(cluster) as client, Admin(admin_url, cluster.credentials, cluster.tls) as admin:
        found = list(segments(client, admin, full_name(topic)))
    if as_json:
        print(json.dumps([asdict(one) for one in found], indent=2))
        return
    rows = [
        (one.topic, str(one.ledger), str(one.entries), str(one.bytes), one.storage, ", ".join(one.bookies), one.reader)
        for one in found
    ]
    print_table(("topic", "ledger", "entries", "bytes", "stored", "bookies", "read from"), rows)
    past = [one for one in found if one.reader == "bookies"]
    told = f"{sum(one.entries for one in past)} of {sum(one.entries for one in found)} entries"
    tell(f"{len(found)} segments. read.from=auto reads {told} from bookies, and the others through the brokers.")
