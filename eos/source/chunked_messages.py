"""Messages that were sent in chunks, put together: one belongs to the range in which its last chunk lies.

Where a range begins between the chunks of a message, its task looks back for the earlier ones, up to a bound.

Compaction takes each chunk for a message of its own, and leaves the last one alone. The others are looked for in the
topic itself, which has them as long as retention or a subscription keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import chain

from eos.errors import DamagedFrame, EntriesGone
from eos.pulsar.wire.chunks import ChunkAssembler, ChunksMissing, message_of
from eos.pulsar.wire.compression import MAX_BYTES
from eos.pulsar.wire.encryption import Decrypt
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.source.errors import Damaged, lost, refused
from eos.source.silence import SILENCE_S, USUAL_TIMEOUT, Open, ReadTimeout, Silence

LOOK_BACK = (100, 10_000)
"""Entries to look back for the first chunk of a message: so many, and if it is not among them, so many."""

_CAUSES = "Retention has deleted them, the producer was slow between them, or it has more bytes than maxMessageBytes"
_COMPACTED = f"Compaction keeps only the last chunk of a message. {_CAUSES}"
_NAMED = 3
"""Entries that can't be read, named in one message."""


def whole_messages(
    topic: str,
    entries: Iterator[list[Entry]],
    open_reader: Open,
    lose: Callable[[str], None],
    decrypt: Decrypt,
    damaged: Damaged = refused,
    max_bytes: int = MAX_BYTES,
    timeout: ReadTimeout = USUAL_TIMEOUT,
    *,
    compacted: bool = False,
) -> Iterator[Entry]:
    """Yield the entries of a range, with each chunked message in one, in the place of its last chunk.

    Args: the physical topic; the entries in their order, as many together as came so; opens a reader of all that is
    stored; is told of a message whose first chunks are gone; decrypts; is told of an entry that can't be read; bytes of
    a message, at most; how long a read waits when nothing comes; whether the entries are those that compaction left.
    """
    assembler = ChunkAssembler(max_bytes, decrypt)
    for entry in chain.from_iterable(entries):
        if entry.plain and entry.size <= max_bytes:
            yield entry
            continue
        try:
            whole = assembler.take(entry)
        except DamagedFrame as damage:
            damaged(damage)
            continue
        except ChunksMissing as missing:
            unread: set[EntryId] = set()
            try:
                whole = _look_back(topic, entry, open_reader, decrypt, timeout, unread)
            except DamagedFrame as damage:
                damaged(damage)
                continue
            except ChunksMissing as again:
                if unread and not isinstance(again.__cause__, EntriesGone):
                    named = ", ".join(map(str, sorted(unread)[-_NAMED:]))
                    damaged(entry.damaged(f"{missing}, and before it lie entries that can't be read ({named})"))
                    continue
                lose(
                    lost(
                        topic,
                        f"{missing}. They are not among the {LOOK_BACK[-1]:,} entries before it either. "
                        f"{_COMPACTED if compacted else _CAUSES}",
                    )
                )
                continue
        if whole is not None:
            yield whole


def _look_back(
    topic: str, last: Entry, open_reader: Open, decrypt: Decrypt, timeout: ReadTimeout, unread: set[EntryId]
) -> Entry | None:
    """Return the message whose last chunk this is; None when this chunk came a second time.

    Adds to `unread` the entries before it that nobody can read: one may be a chunk. Raises ChunksMissing.
    """
    for count in LOOK_BACK[:-1]:
        first = back_from(topic, last.id, count, open_reader)
        try:
            return _read_again(topic, first, last, open_reader, decrypt, timeout, unread)
        except ChunksMissing:
            continue
    first = back_from(topic, last.id, LOOK_BACK[-1], open_reader)
    return _read_again(topic, first, last, open_reader, decrypt, timeout, unread)


def back_from(topic: str, entry: EntryId, count: int, open_reader: Open) -> EntryId:
    """Return the entry that is so many before this one, or the first one of the topic."""
    while entry.entry < count:
        # A reader that begins with a ledger's first entry stands after the last one of the ledger before.
        with closing(open_reader(topic, EntryId(entry.ledger, 0), 1)) as reader:
            _, behind = reader.last_message_id()
        if behind is None or behind.ledger >= entry.ledger:
            return EntryId(entry.ledger, 0)
        count -= entry.entry + 1
        entry = behind
    return EntryId(entry.ledger, max(entry.entry - count, 0))


def _read_again(
    topic: str,
    first: EntryId,
    last: Entry,
    open_reader: Open,
    decrypt: Decrypt,
    timeout: ReadTimeout,
    unread: set[EntryId],
) -> Entry | None:
    assembler = ChunkAssembler(last.most, decrypt)
    came = EntryId(first.ledger, first.entry - 1)
    with (
        closing(open_reader(topic, first, None)) as reader,
        closing(Silence(topic, open_reader, timeout)) as silence,
    ):
        while True:
            try:
                arrived = reader.read(SILENCE_S)
            except EntriesGone as gone:
                raise ChunksMissing(str(gone), last.id) from gone
            end = arrived[-1].id if arrived else reader.last_message_id()[0]
            unread.update(entry.id for entry in arrived if entry.damage and entry.id < last.id)
            for entry in arrived:
                if message_of(entry) != message_of(last):
                    continue  # of an earlier range: perhaps of a key that nobody has any longer
                try:
                    whole = assembler.take(entry)
                except ChunksMissing:
                    if entry.id == last.id:
                        raise
                    continue  # the last chunk came twice, and this is the first time
                if entry.id == last.id:
                    return whole
            # Silence proves a loss only where the topic ends before the last chunk: otherwise it may still come.
            if end is None or (end > last.id if arrived else end < last.id):
                raise ChunksMissing(f"the last chunk of a message, entry {last.id} of {topic}, is gone by now", last.id)
            if arrived:
                came = end
                silence.ends()
            else:
                silence.lasts(came, last.id)
