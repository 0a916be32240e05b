"""`eos local topic` and `eos local read`: a topic to write to, and the rows that came out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from eos.cli.console import tell
from eos.cli.tables import key_and_value, text

if TYPE_CHECKING:
    from eos.inspect.rows import TopicRow
    from eos.local.topics import LocalTopic

Topic = Annotated[str, typer.Argument(help="name, tenant/namespace/name or persistent://tenant/namespace/name.")]
Name = Annotated[str, typer.Option("--name", "-n", help="The instance, as for `eos local up`.")]


def topic(
    name_of_topic: Annotated[str, typer.Argument(metavar="TOPIC", help="As for `eos local read`.")],
    partitions: Annotated[int, typer.Option(min=0, help="0: a topic without partitions.")] = 0,
    name: Name = "default",
) -> None:
    """Create a topic. Run twice, it finds the topic there."""
    from eos.local.topics import create
    from eos.pulsar.protocol.topics import valid_topic

    full = valid_topic(name_of_topic)
    made = create(_place(name), full, partitions)
    tell(f"{full} is {'made' if made else 'there already'}. See what is in it with: eos local read {name_of_topic}")


def read(
    topic: Topic,
    name: Name = "default",
    limit: Annotated[int | None, typer.Option(min=1, help="Print at most so many rows.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object for each row, one on a line.")] = False,
) -> None:
    """Print the rows of a topic that are committed now: key, a tab, value; partition by partition.

    Nothing is acknowledged, so it can be run again. Bytes that are no UTF-8, and control characters, are
    shown as \\xNN, \\n and the like; with --json as JSON has them.
    """
    from itertools import islice

    from eos.inspect.rows import TopicRows
    from eos.pulsar.protocol.topics import valid_topic

    full = valid_topic(topic)
    count = 0
    for row in islice(TopicRows(_place(name).cluster, full, "earliest", tell).stored(), limit):
        print(json.dumps(_plain(row)) if as_json else key_and_value(row))
        count += 1
    tell(f"{count} rows of {full}.")


def _place(name: str) -> LocalTopic:
    from eos.local.instances import place

    return place(name)


def _plain(row: TopicRow) -> dict[str, object]:
    return {
        "partition": row.partition,
        "key": text(row.key),
        "value": text(row.value),
        "event_time_ms": row.event_time_ms,
        "properties": dict(row.properties),
    }
