"""How a task reads its range: from the start on, that one included, until the end has come.

A reader begins *at* a message that is known to be stored: the start, where it is one, or else the first message after
it. It must come first; anything else proves that data was lost. The reader itself proves that nothing was left out
after it (`eos.pulsar.net.read_proof`), but for entries that a broker passes over since their data are gone. The reader
looks for these where entries do not follow one another (`eos.source.lost_ledgers`, `eos.source.lost_entries`). The end
can be delivered, so it comes. Silence does not mean the end: long passages of aborted entries are skipped inside the
broker, which says nothing meanwhile. After a while of it the broker is asked for the last message: when that lies
before the end, the end was deleted, and otherwise it is still to come. In a long silence a second reader looks whether
the end itself still comes, and the first one begins again. A silence in which the broker does not get on ends the read
(`eos.source.silence`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from operator import attrgetter

from eos.errors import EntriesGone, Refused, TopicMissing
from eos.pulsar.wire.compression import MAX_BYTES
from eos.pulsar.wire.decoding import GROUP_BYTES
from eos.pulsar.wire.encryption import Decrypt, as_it_is
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.txn import TxnId
from eos.source.chunked_messages import whole_messages
from eos.source.compacted_topic import newest_messages
from eos.source.errors import Damaged, DataLost, lost, refused
from eos.source.lost_entries import Gaps, no_admin_api
from eos.source.lost_ledgers import KindOf, not_known
from eos.source.offsets import Position
from eos.source.ranges import Found, Range
from eos.source.silence import SILENCE_S, USUAL_TIMEOUT, Entries, Open, ReadTimeout, Silence

BATCH_BYTES = GROUP_BYTES
"""Bytes of the entries that are decoded together, about, once they are decompressed; a larger entry comes alone. With
more the decoder would cut the group, and join the parts again."""

BATCH_ROWS = 24_000
"""Messages of the entries that are decoded together, from which no entry is added. A call for typed values takes 0.4 to
1 ms, however few they are. With more its arrays leave the processor's cache. Measured in Spark, in turn, as CPU over
that of bytes: 16,000 AVRO 1.29 and JSON 1.52; 24,000 1.27 and 1.40; 32,000 1.27 and 1.45."""

_ID = attrgetter("id")
_LOOKS_AT_END = 8
_TOGETHER = 100  # entries that are passed on together, of those read past the brokers


def read_range(
    part: Range,
    open_reader: Open,
    lose: Callable[[str], None],
    decrypt: Decrypt = as_it_is,
    damaged: Damaged = refused,
    max_bytes: int = MAX_BYTES,
    stored: Iterator[Entry] | None = None,
    kind_of: KindOf = not_known,
    timeout: ReadTimeout = USUAL_TIMEOUT,
    may_pass_over: Callable[[], bool | None] = no_admin_api,
    open_compacted: Open | None = None,
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
        kind_of: tells what an entry is that did not come. Default: nobody can, so that a warning says so.
        timeout: how long a read waits when nothing comes. Default: 300 s.
        may_pass_over: whether the broker may pass over entries. Default: nobody can tell that, nor what they are.
        open_compacted: opens a reader of what compaction left, for a range that is read so. Default: `open_reader`.

    Raises Unanswered when nothing comes for so long; what the reader raises, and decrypting.
    """
    gaps = Gaps(part.topic, lose, open_reader, kind_of, may_pass_over)
    entries = _through_brokers(part, open_reader, lose, gaps, timeout)
    if part.compacted:
        entries = newest_messages(part, open_compacted or open_reader, lose, timeout)
    elif stored is not None:
        entries = _stored_first(part, stored, open_reader, lose, gaps, timeout)
    try:
        whole = whole_messages(
            part.topic, entries, open_reader, lose, decrypt, damaged, max_bytes, timeout, compacted=part.compacted
        )
        yield from _groups(whole)
    except TopicMissing as missing:
        lose(lost(part.topic, f"{missing} It was deleted before {part} was read"))


def _through_brokers(
    part: Range, open_reader: Open, lose: Callable[[str], None], gaps: Gaps, timeout: ReadTimeout
) -> Iterator[list[Entry]]:
    proof = _proof(part, open_reader, lose, timeout)
    begin = _first(part) if proof is None else proof
    with closing(open_reader(part.topic, begin, None, stored=proof is not None)) as reader:
        before: Entry | None = None
        for entries in _entries(part, proof, reader, open_reader, lose, timeout):
            reached = part.start.entry if before is None else before.id
            if entries[-1].id != EntryId(reached.ledger, reached.entry + len(entries)):  # they rise: there is a gap
                for one, entry in zip((before, *entries[:-1]), entries, strict=True):
                    _note(gaps, part, one, entry, reader)
            before = entries[-1]
            yield entries if before.id <= part.end else entries[:-1]
        gaps.look()


def _note(gaps: Gaps, part: Range, before: Entry | None, came: Entry, reader: Entries) -> None:
    """Note the gap between two messages, if there is one. Args: the first, None at the start of the range; the next."""
    behind = part.start if before is None else Position(before.id)
    if came.id == behind.entry.next:
        return
    expected = any(TxnId.of(one.metadata) is not None for one in (before, came) if one is not None)
    try:
        gaps.note(behind, came.id, part.end, expected=expected)
    except Refused:  # such as that the topic has room for one consumer
        reader.begin_again()
        gaps.note(behind, came.id, part.end, expected=expected)


def _stored_first(
    part: Range,
    stored: Iterator[Entry],
    open_reader: Open,
    lose: Callable[[str], None],
    gaps: Gaps,
    timeout: ReadTimeout,
) -> Iterator[list[Entry]]:
    """Yield what could be read past the brokers, and what is left of the range through them.

    They begin with the last message that came, so that nothing between the two can be left out.
    """
    last = part.start.entry
    while entries := list(islice(stored, _TOGETHER)):
        yield entries
        last = entries[-1].id
    if last < part.end:
        rest = part if last == part.start.entry else replace(part, start=Position(last), first=None)
        yield from _through_brokers(rest, open_reader, lose, gaps, timeout)


def first_behind(topic: str, entry: EntryId, open_reader: Open, timeout: ReadTimeout = USUAL_TIMEOUT) -> Found:
    """Return the first message at or after an entry, waiting for it.

    Raises DataLost when none is left, Unanswered when nothing comes for too long, and the reader's errors.
    """
    found = _behind(topic, entry, open_reader, timeout)
    if isinstance(found, str):
        raise DataLost(found)
    return found


def _behind(topic: str, entry: EntryId, open_reader: Open, timeout: ReadTimeout) -> Found | str:
    """Return the first message at or after an entry, waiting for it, or the words of the loss, if there is none."""
    after = EntryId(entry.ledger, entry.entry - 1)
    with (
        closing(open_reader(topic, entry if entry.ledger >= 0 else None, 1)) as reader,
        closing(Silence(topic, open_reader, timeout)) as silence,
    ):
        while True:
            try:
                arrived = reader.read(SILENCE_S)
            except EntriesGone as gone:
                return lost(topic, str(gone))
            for found in arrived:
                if found.id >= entry:
                    return Found(found.id, found.size)
            last, _ = reader.last_message_id()
            if last is None or last < entry:
                return lost(topic, f"a message was stored after {entry}, but the last one is now {last}")
            if arrived:
                silence.ends()
            else:
                silence.lasts(after, last)


def _first(part: Range) -> EntryId | None:
    entry = part.start.entry
    return EntryId(entry.ledger, max(entry.entry, 0)) if entry.ledger >= 0 else None


def _proof(part: Range, open_reader: Open, lose: Callable[[str], None], timeout: ReadTimeout) -> EntryId | None:
    """Return the message with which the reader must begin; None where it may begin with any."""
    if part.start.delivered or part.first is not None:
        return part.start.entry if part.start.delivered else part.first
    entry = part.start.entry
    found = _behind(part.topic, entry.next, open_reader, timeout)
    if isinstance(found, Found):
        return found.entry
    lose(found)
    return None


def _entries(
    part: Range,
    proof: EntryId | None,
    reader: Entries,
    open_reader: Open,
    lose: Callable[[str], None],
    timeout: ReadTimeout,
) -> Iterator[list[Entry]]:
    """Yield the entries of a range, and last the one that came after them, where one did in place of the end."""
    came = part.start.entry
    with closing(Silence(part.topic, open_reader, timeout)) as silence:
        while True:
            try:
                arrived = reader.read(SILENCE_S, part.end)
            except EntriesGone as gone:
                lose(_left_out(part, proof, gone))
                if gone.found is None:
                    return
                continue
            end = bisect_left(arrived, part.end, key=_ID)
            if wanted := arrived[bisect_right(arrived, part.start.entry, key=_ID) : end + 1]:
                yield wanted
            if end < len(arrived):
                if arrived[end].id > part.end and part.end_delivered:
                    lose(lost(part.topic, f"{part} ends with a message, but {arrived[end].id} came in its place"))
                return
            if arrived:
                came = arrived[-1].id
                silence.ends()
                continue
            last, _ = reader.last_message_id()
            if last is None or last < part.end:
                lose(lost(part.topic, f"{part} was to be read, but the last message is now {last}"))
                return
            if silence.lasts(came, part.end):
                if hidden := _end_gone(part, open_reader):
                    lose(hidden)
                    return
                reader.begin_again()


def _end_gone(part: Range, open_reader: Open) -> str:
    """Return the words of a loss when the end of a range, which is a message, does not come by itself either."""
    if not part.end_delivered:
        return ""
    with closing(open_reader(part.topic, part.end, 1, stored=True)) as reader:
        try:
            any(reader.read(SILENCE_S) for _ in range(_LOOKS_AT_END))
        except EntriesGone as gone:
            return lost(part.topic, f"{part} ends with a message that does not come: {gone}")
    return ""


def _groups(entries: Iterator[Entry]) -> Iterator[list[Entry]]:
    group: list[Entry] = []
    rows = held = 0
    for entry in entries:
        size = entry.unpacked_size
        if group and (held + size > BATCH_BYTES or rows >= BATCH_ROWS):
            yield group
            group, rows, held = [], 0, 0
        group.append(entry)
        rows += entry.num_messages
        held += size
    if group:
        yield group


_CAUSES = "deleted by retention, or by a command such as skip, expire or truncate that moved the subscription"


def _left_out(part: Range, proof: EntryId | None, gone: EntriesGone) -> str:
    if gone.found is None or gone.after != proof or proof is None:
        return lost(part.topic, f"{part} cannot be read whole: {gone}")
    if part.start.delivered:
        return lost(
            part.topic,
            f"the query has read up to {part.start.entry}, and the broker still had to have it, but reading there "
            f"begins with {gone.found}. Messages after {part.start.entry} and before {gone.found} are gone: {_CAUSES}",
        )
    return lost(
        part.topic,
        f"when the read was planned its first message was {proof}, and now it begins with {gone.found}. Messages "
        "between them were deleted meanwhile, by retention or by a command such as truncate",
    )
