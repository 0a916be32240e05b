"""Reading a control topic from its beginning, and folding its records."""

from __future__ import annotations

from collections.abc import Callable

from eos.commit.control_log import LogView, OwnerRecord, Record, decode
from eos.commit.patience import Settings
from eos.commit.ports import ClientPort
from eos.errors import DamagedLog, NetworkError
from eos.pulsar.wire.message_id import EARLIEST


def read_log(
    client: ClientPort,
    topic: str,
    settings: Settings,
    until: OwnerRecord | None = None,
    each: Callable[[Record], None] = lambda record: None,
) -> LogView:
    """Fold the log up to the record `until`, or without it up to the last record that is readable now.

    Args:
        client: the cluster.
        topic: the control topic.
        settings: how long to wait for a record, and how many markers to retain.
        until: a record that is known to have been written.
        each: told every record in turn.

    Raises DamagedLog, and what the network layer raises.
    """
    reader = client.reader(topic)
    view = LogView(settings.markers_retained, settings.markers_retained_since)
    try:
        last = None if until is not None else reader.last_message_id()
        seen = EARLIEST
        while last is None or seen < last:
            message = reader.read(settings.read_timeout_s)
            if message is None:
                break
            record = decode(message.data or b"")
            view.apply(record, message.message_id)
            each(record)
            if record == until:
                break
            seen = message.message_id
    except (NetworkError, DamagedLog):
        reader.close()
        raise
    reader.close()
    return view
