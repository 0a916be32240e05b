"""`eos plan`: where the segments of a topic are stored."""

from __future__ import annotations

from typing import Annotated

import typer

from eos.cli.connection import ConnectionOptions, connecting
from eos.cli.console import count, print_json, print_table, tell


@connecting
def plan(
    to: ConnectionOptions,
    topic: Annotated[str, typer.Argument(help="A topic, or one partition by its own name.")],
    offload_url: Annotated[
        str | None, typer.Option(help="The source's offload.url, such as s3://my-offloads.", metavar="URL")
    ] = None,
    offload_credentials: Annotated[
        str | None,
        typer.Option(help="The source's offload.credentials, such as file:/etc/offload.json.", metavar="FILE"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list, one object for each segment.")] = False,
) -> None:
    """Show where each segment of a topic is stored, and which reader the source takes for it.

    The reader is the one of read.from=auto, with offload.url where --offload-url is given, and without
    bookie.addresses. The command reads no row.
    """
    from eos.errors import InvalidInput
    from eos.history.offload.ledgers import OffloadedLedgers
    from eos.history.offload.location import offload_location
    from eos.inspect.segments import SegmentReader, segments
    from eos.pulsar.net.client import Client
    from eos.pulsar.protocol.topics import full_name

    if offload_url is None and offload_credentials is not None:
        raise InvalidInput("--offload-credentials is for the storage that --offload-url names. Give that too")
    offloads = None
    if offload_url is not None:
        offloads = OffloadedLedgers(offload_location(offload_url, offload_credentials or "", option="--offload-url"))
    with to.needed_admin() as admin, Client(to.cluster) as client:
        found = list(segments(client, admin, full_name(topic), offloads))
    if as_json:
        print_json(found)
        return
    rows = [
        (one.topic, str(one.ledger), str(one.entries), str(one.bytes), one.storage, ", ".join(one.bookies), one.reader)
        for one in found
    ]
    print_table(("topic", "ledger", "entries", "bytes", "stored", "bookies", "read from"), rows)
    past = [one for one in found if one.reader is not SegmentReader.BROKERS]
    told = f"{sum(one.entries for one in past):,} of {sum(one.entries for one in found):,} entries"
    tell(f"{count(len(found), 'segment')}. read.from=auto reads {told} past the brokers, and the others through them.")
    for why in dict.fromkeys(one.why for one in found if one.why):
        tell(why)
    for one in found:
        if one.storage == "unknown":
            tell(
                f"Ledger {one.ledger} of {one.topic} has no metadata in BookKeeper that the broker can read. Its "
                f"{one.entries} entries may be lost."
            )
