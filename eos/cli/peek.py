"""`eos peek`: the rows of a topic that are committed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from eos.cli.connection import ConnectionOptions, connecting
from eos.cli.console import count, print_table, printable, tell, time_of

if TYPE_CHECKING:
    from eos.inspect.rows import TopicRow
    from eos.pulsar.net.admin import Admin

LIMIT = 20

_Told = TypeVar("_Told")


@connecting
def peek(
    to: ConnectionOptions,
    topic: Annotated[str, typer.Argument(help="A topic, or one partition by its own name.")],
    start: Annotated[
        str,
        typer.Option(
            "--from", help="earliest, latest, a time (ISO 8601 with a zone, or ms since 1970), or an entry as 8:13."
        ),
    ] = "earliest",
    limit: Annotated[
        int | None, typer.Option(min=1, help=f"Most rows to show. Default {LIMIT}, with --follow no limit.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new rows until Ctrl-C.")] = False,
    decryption_keys: Annotated[
        str | None,
        typer.Option(help='Files of private keys, {"NAME": "file:PATH"}, as for the source.'),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object for each row, one on a line.")] = False,
) -> None:
    """Show committed rows of a topic, partition by partition. The command acknowledges nothing.

    Bytes that are not UTF-8 and control characters are shown as \\xNN, \\n and the like. With --follow a row is a line
    of partition, place, key and value, with tabs between them. Only with --admin-url does it report lost data.
    """
    from itertools import islice

    from eos.errors import InvalidInput
    from eos.inspect.rows import TopicRows
    from eos.pulsar.wire.encryption import as_it_is, decryptor_of
    from eos.pulsar.wire.encryption_keys import key_files

    if start == "latest" and not follow:
        raise InvalidInput("--from latest shows what comes from now on. Give --follow too, or another place to begin")
    decrypt = as_it_is if decryption_keys is None else decryptor_of(key_files(decryption_keys))
    with to.admin() as admin:
        if admin is not None:
            _tell_of(admin, topic)
        asked = () if admin is None else (admin.entry_kind, admin.may_pass_over)
        rows = TopicRows(to.cluster, topic, start, tell, decrypt, *asked)
        shown = islice(rows.coming() if follow else rows.stored(), limit if limit or follow else LIMIT)
        if not as_json and not follow:
            _show(list(shown))
            return
        for row in shown:
            print(json.dumps(_plain(row)) if as_json else _line(row), flush=follow)


def _tell_of(admin: Admin, topic: str) -> None:
    """Say why a topic may show fewer rows than are committed, or others."""
    from eos.pulsar.net.policies import entry_filters_apply

    if filters := _asked(admin.entry_filters, topic, f"Whether the brokers apply entry filters to {topic}"):
        tell(f"{entry_filters_apply(filters, topic)} The command does not show these entries.")
    if source := _asked(admin.shadow_source, topic, f"Whether {topic} is a shadow topic"):
        tell(
            f"{topic} is a shadow topic of {source}. Brokers deliver messages of aborted and of open transactions from "
            f"it as if they were committed. Look at {source}."
        )


def _asked(question: Callable[[str], _Told], topic: str, what: str) -> _Told | None:
    """Ask about a topic; say so, and return None, where nobody tells."""
    from eos.errors import NetworkError
    from eos.pulsar.net.admin import if_there
    from eos.pulsar.protocol.topics import full_name

    try:
        return if_there(question, full_name(topic))
    except NetworkError as error:
        tell(f"{what} is not known: {error}")
        return None


def _show(rows: list[TopicRow]) -> None:
    head = ("partition", "place", "published", "event time", "key", "value", "properties")
    lines = [
        (
            _number(row),
            row.message_id.place,
            time_of(row.publish_time_ms),
            time_of(row.event_time_ms),
            _text(row.key) or "",
            "null" if row.value is None else _text(row.value) or "",
            ", ".join(f"{name}={value}" for name, value in row.properties.items()),
        )
        for row in rows
    ]
    filled = [place for place in range(len(head)) if any(line[place] for line in lines)]
    if lines:
        print_table([head[place] for place in filled], [[line[place] for place in filled] for line in lines])
    tell(f"{count(len(rows), 'row')}.")


def _text(data: bytes | None) -> str | None:
    """Return bytes as text; what is not UTF-8 as \\xNN."""
    return None if data is None else data.decode(errors="backslashreplace")


def _line(row: TopicRow) -> str:
    value = "null" if row.value is None else printable(_text(row.value) or "")
    return "\t".join((_number(row), row.message_id.place, printable(_text(row.key) or ""), value))


def _plain(row: TopicRow) -> dict[str, object]:
    place = row.message_id
    return {
        "partition": row.partition,
        "ledger": place.ledger,
        "entry": place.entry,
        "batch_index": place.batch_index,
        "publish_time_ms": row.publish_time_ms,
        "event_time_ms": row.event_time_ms,
        "key": _text(row.key),
        "value": _text(row.value),
        "properties": dict(row.properties),
    }


def _number(row: TopicRow) -> str:
    return "" if row.partition is None else str(row.partition)
