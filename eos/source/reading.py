"""How a task reads its range: from the start on, that one included, until the end has come.

A reader begins *at* the start. A start that is a delivered message must come first; anything else
proves that data was lost. The end can be delivered, so it comes, and reading never hangs.
Silence is no end: long passages of aborted entries are skipped inside the broker, which says
nothing meanwhile. After a while of it the broker is asked for the last message: when that lies
before the end, the end was deleted, and otherwise it is still to come.

Ledgers are deleted whole, oldest first. So after a range of several ledgers its start is looked for once more, or
the first message that came, where the start proves nothing: if it is still there, nothing behind it was deleted while
the range was read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

from eos.errors import TopicMissing
from eos.pulsar.wire.compression import MAX_BYTES
from eos.pulsar.wire.encryption import Decrypt, as_it_is
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.source.chunked import whole_messages
from eos.source.errors import Damaged, DataLost, lost, refused
from eos.source.offsets import Position
from eos.source.ranges import Found, Range
from eos.source.readers import SILENCE_S, Entries, Open

BATCH_BYTES = 1024 * 1024
"""Bytes of the entries that are decoded together, about, once they are decompressed; a larger entry comes alone."""


def read_range(
    part: Range,
    open_reader: Open,
    lose: Callable[[str], None],
    decrypt: Decrypt = as_it_is,
    damaged: Damaged = refused,
    max_bytes: int = MAX_BYTES,
    stored: Iterator[Entry] | None = None,
) -> Iterator[list[Entry]]:
    """Yield the entries of a range, in order, in groups to be decoded together; chunked messages in one piece.

    Args:
        part: the range.
        open_reader: opens a reader.
        lose: called with what was lost; it raises, or only warns.
        decrypt: what is yielded. Default: encrypted entries stay so.
        damaged: called with what is wrong with an entry that can't be read; it raises, or the entry is left out.
        max_bytes: of a message in chunks, and of an entry once it is decompressed.
        stored: the first of its entries, as far as they could be read past the brokers. Default: none.

    Raises what the reader raises, and decrypting.
    """
    entries = _through_brokers(part, open_reader, lose)
    if stored is not None:
        entries = _stored_first(part, stored, open_reader, lose)
    try:
        yield from _groups(whole_messages(part.topic, entries, open_reader, lose, decrypt, damaged, max_bytes))
    except TopicMissing as missing:
        lose(lost(part.topic, f"{missing} It was deleted before {part} was read"))


def _through_brokers(part: Range, open_reader: Open, lose: Callable[[str], None]) -> Iterator[Entry]:
    came: list[EntryId] = []
    with closing(open_reader(part.topic, _first(part), None)) as reader:
        yield from _entries(part, reader, lose, came)
    if came and came[0].ledger < part.end.ledger and not part.compacted:
        _look_again(part, came[0], open_reader, lose)


def _stored_first(
    part: Range, stored: Iterator[Entry], open_reader: Open, lose: Callable[[str], None]
) -> Iterator[Entry]:
    """Yield what could be read past the brokers, and what is left of the range through them.

    They begin with the last message that came, so that nothing between the two can be left out.
    """
    last = part.start.entry
    for entry in stored:
        yield entry
        last = entry.id
    if last < part.end:
        rest = part if last == part.start.entry else replace(part, start=Position(last), first=None)
        yield from _through_brokers(rest, open_reader, lose)


def first_behind(topic: str, entry: EntryId, open_reader: Open) -> Found:
    """Return the first message at or behind an entry, waiting for it.

    Raises DataLost when there is none any more, and what the reader raises.
    """
    found = _behind(topic, entry, open_reader)
    if isinstance(found, str):
        raise DataLost(found)
    return found


def _behind(topic: str, entry: EntryId, open_reader: Open) -> Found | str:
    """Return the first message at or behind an entry, waiting for it; the words of the loss, where there is none."""
    with closing(open_reader(topic, entry if entry.ledger >= 0 else None, 1)) as reader:
        while True:
            for found in reader.read(SILENCE_S):
                if found.id >= entry:
                    return Found(found.id, found.size)
            last, _ = reader.last_message_id()
            if last is None or last < entry:
                return lost(topic, f"a message was stored behind {entry}, but the last one is now {last}")


def _first(part: Range) -> EntryId | None:
    entry = part.start.entry
    return EntryId(entry.ledger, max(entry.entry, 0)) if entry.ledger >= 0 else None


def _entries(part: Range, reader: Entries, lose: Callable[[str], None], came: list[EntryId]) -> Iterator[Entry]:
    """Yield the entries of a range; the first that came is put into `came`, the start itself where it is a message."""
    proof = None if part.compacted else part.start.entry if part.start.delivered else part.first
    while True:
        arrived = reader.read(SILENCE_S)
        for entry in arrived:
            if not part.start.delivered and entry.id <= part.start.entry:
                continue
            if not came:
                if proof is not None and entry.id != proof:
                    lose(_gone(part, entry.id))
                came.append(entry.id)
            if part.start.entry < entry.id <= part.end:
                yield entry
            if entry.id >= part.end:
                if entry.id > part.end and part.end_delivered and not part.compacted:
                    lose(lost(part.topic, f"{part} ends with a message, but {entry.id} came in its place"))
                return
        if not arrived:
            last, _ = reader.last_message_id()
            if last is None or last < part.end:
                if part.compacted:
                    return
                lose(lost(part.topic, f"{part} was to be read, but the last message is now {last}"))
                return


def _groups(entries: Iterator[Entry]) -> Iterator[list[Entry]]:
    group: list[Entry] = []
    held = 0
    for entry in entries:
        if group and held + entry.unpacked_size > BATCH_BYTES:
            yield group
            group, held = [], 0
        group.append(entry)
        held += entry.unpacked_size
    if group:
        yield group


def _look_again(part: Range, first: EntryId, open_reader: Open, lose: Callable[[str], None]) -> None:
    found = _behind(part.topic, first, open_reader)
    if isinstance(found, str):
        lose(found)
    elif found.entry != first:
        lose(_gone(part, found.entry) if part.start.delivered else _gone_meanwhile(part, first, found.entry))


def _gone(part: Range, found: EntryId) -> str:
    if part.first is not None:
        return lost(
            part.topic,
            f"when the read was planned its first message was {part.first}, and now it begins with {found}. Messages "
            "between them were deleted meanwhile, by retention or by a command such as truncate",
        )
    return lost(
        part.topic,
        f"the query has read up to {part.start.entry}, and the broker still had to have it, but reading there begins "
        f"with {found}. Messages behind {part.start.entry} and before {found} are gone: deleted by retention, or by a "
        "command such as skip, expire or truncate that moved the subscription",
    )


def _gone_meanwhile(part: Range, first: EntryId, found: EntryId) -> str:
    return lost(
        part.topic,
        f"reading {part} began with {first}, and now it would begin with {found}. What was deleted meanwhile, by "
        "retention or by a command such as truncate, may have been deleted before it was read",
    )
