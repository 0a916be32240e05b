"""Reading a control log, and folding its records.

A record that a replicator brought from another cluster is none of this log: that cluster has a sink of the same name,
and a log of its own. Since its records are marked as local, only those of a version without the mark are replicated.

Silence is not an end: a bookie that hangs makes a reader wait as well. A log ends at the topic's last readable record,
which the broker knows; silence before it means that the log can't be read now, never that records are missing.

A broker moves the position of a reader, and deletes records, where a message TTL, a quota or a command tells it to. A
reader leaves no record out all the same, or raises EntriesGone: then it is not known what the log says, and never
that a batch is not committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from eos.commit.control_log import LogView, OwnerRecord, Record, decode, unreadable
from eos.commit.ports import ClientPort, ControlReaderPort, MessagePort
from eos.commit.retry import OwnerSettings
from eos.errors import DamagedEntry, EntriesGone, NetworkError, Unanswered
from eos.pulsar.wire.message_id import EARLIEST, MessageId

Each = Callable[[Record, MessagePort], None]


def read_log(
    client: ClientPort, topic: str, settings: OwnerSettings, each: Each = lambda record, message: None
) -> LogView:
    """Fold the whole log, from its earliest record to the last one that is readable now.

    Args:
        client: the cluster.
        topic: the control topic.
        settings: how long to wait for a record, and how many markers to retain.
        each: called with every record in turn, and the message that it came in.

    Raises DamagedLog, and what the network layer raises: Unanswered for a log that can't be read to its end now, and
    EntriesGone where records were deleted while it was read.
    """
    view = LogView(settings.markers_retained, settings.markers_retained_since)
    read_on(client, topic, settings, view, each=each)
    return view


def read_on(
    client: ClientPort,
    topic: str,
    settings: OwnerSettings,
    view: LogView,
    until: OwnerRecord | None = None,
    each: Each = lambda record, message: None,
) -> None:
    """Fold the records after `view.read_to` into it, up to the last record that is readable now, or up to `until`.

    `until` is known to have been written, but may be hidden: then the view lacks it. Raises as `read_log`.
    """
    # A record that was read is newer than the last one that is not retained: only what else deletes records takes it.
    read = view.read_to not in (EARLIEST, view.expired)
    with _reader(client, topic, view.read_to, stored=read) as reader:
        last = reader.last_message_id() if until is None else None
        if last is not None and last < view.read_to:
            raise EntriesGone(topic, view.read_to.place, None if last == EARLIEST else last.place)
        while last is None or view.read_to < last:
            message = reader.read(settings.read_timeout_s)
            if message is not None and message.replicated_from is not None:
                view.pass_over(message.message_id)
            elif message is not None:
                record = decode(message.data or b"")
                view.apply(record, message.message_id)
                each(record, message)
                if record == until:
                    return
            elif last is None:
                last = reader.last_message_id()
            else:
                raise _silent(topic, settings, view.read_to, last)


def read_retained(client: ClientPort, topic: str, settings: OwnerSettings) -> LogView:
    """Fold the log from where its last readable record says that reading may begin. Raises as `read_log`."""
    view = view_behind(oldest_needed(client, topic, settings), settings)
    read_on(client, topic, settings, view)
    return view


def view_behind(after: MessageId, settings: OwnerSettings) -> LogView:
    """Return the view of a log that is read after this position, that of the newest marker not retained."""
    view = LogView(settings.markers_retained, settings.markers_retained_since, read_to=after)
    view.expired = None if after == EARLIEST else after
    return view


def oldest_needed(client: ClientPort, topic: str, settings: OwnerSettings) -> MessageId:
    """Return the record after which reading may begin, as the last readable record says: EARLIEST, if it says nothing.

    One from another cluster says nothing: its positions are those of that cluster's log.

    Raises as `read_log`.
    """
    with _reader(client, topic, EARLIEST) as reader:
        last = reader.last_message_id()
    if last == EARLIEST:
        return EARLIEST
    before = MessageId(last.ledger, last.entry - 1)
    with _reader(client, topic, before) as reader:
        message = reader.read(settings.read_timeout_s)
    if message is None:
        raise _silent(topic, settings, before, last)
    return EARLIEST if message.replicated_from is not None else decode(message.data or b"").expired or EARLIEST


@contextmanager
def _reader(client: ClientPort, topic: str, after: MessageId, *, stored: bool = False) -> Iterator[ControlReaderPort]:
    reader = client.reader(topic, after=after, stored=stored)
    try:
        yield reader
    except DamagedEntry as damage:  # for good: to ask again, as of a broker that can't be reached, would never end
        raise unreadable(str(damage)) from damage
    finally:
        with suppress(NetworkError):
            reader.close()


def _silent(topic: str, settings: OwnerSettings, seen: MessageId, last: MessageId) -> Unanswered:
    return Unanswered(
        f"{topic} can't be read to its end now. No record came for {settings.read_timeout_s:g} s after"
        f" {seen.ledger}:{seen.entry}, and the last one lies at {last.ledger}:{last.entry}. Bookies are down or slow,"
        " or a rate limits what the broker sends to readers of the topic. Try again. If it stays so, look at the"
        " bookies, or raise the rate: pulsar-admin topicPolicies set-dispatch-rate, set-subscription-dispatch-rate"
    )
