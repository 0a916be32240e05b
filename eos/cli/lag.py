"""`eos lag`: how many messages a subscription has not read, and how old the oldest of them is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from eos.cli.connection import ConnectionOptions, connecting
from eos.cli.console import count, print_json, print_table, show_progress, tell, time_of

if TYPE_CHECKING:
    from eos.inspect.lag import SubscriptionLag

_MOST = 1_000_000


@connecting
def lag(
    to: ConnectionOptions,
    topic: Annotated[str, typer.Argument(help="A topic, or one partition by its own name.")],
    subscription: Annotated[
        str | None, typer.Argument(help="A durable subscription, by its whole name. Default all.")
    ] = None,
    at_most: Annotated[int, typer.Option("--at-most", min=1, help="Most messages to count in each partition.")] = _MOST,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list, one object for each line.")] = False,
) -> None:
    """Count the messages that subscriptions of a topic have not acknowledged, and show the oldest one's time.

    The broker's msgBacklog, shown beside it, also counts markers and the entries of aborted transactions. The command
    reads the messages that it counts, and acknowledges nothing.
    """
    from eos.inspect.lag import lag as lag_of
    from eos.pulsar.net.client import Client
    from eos.pulsar.protocol.topics import full_name

    with to.needed_admin() as admin, Client(to.cluster) as client:
        found = list(lag_of(client, admin, full_name(topic), subscription, at_most, show_progress))
    if as_json:
        print_json(found)
        return
    heads = ("topic", "subscription", "acknowledged to", "messages", "entries", "oldest", "msgBacklog")
    print_table(heads, map(_row, found))
    least = "" if all(one.whole for one in found) else "at least "
    messages = sum(one.messages for one in found)
    tell(f"{least}{count(messages, 'message')} {'was' if messages == 1 else 'were'} not acknowledged.")


def _row(one: SubscriptionLag) -> tuple[str, ...]:
    least = "" if one.whole else "at least "
    counted = f"{least}{one.messages}", f"{least}{one.entries}", time_of(one.oldest_ms)
    return (one.topic, one.subscription, one.position, *counted, str(one.broker_backlog))
