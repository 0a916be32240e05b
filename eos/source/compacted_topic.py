"""How a task reads what compaction left of a topic: to the last message there is, not to the end that was planned.

Compaction takes a message away once a newer one of its key is stored, wherever that lies. So between the plan and the
read it takes away the message of each key that has a newer one after the planned end. A read that ends there has
neither of the two, and the key is missing. But compaction never takes away the newest message of a key that has one. So
a task that has read to the last message has the newest of each key, as of then.

For the same reason one task reads all of it: of two, the first may have had its part before a newer message came there,
and the second its part after the older one was taken away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

from eos.errors import EntriesGone
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.source.errors import lost
from eos.source.ranges import Range
from eos.source.silence import SILENCE_S, Open, ReadTimeout, Silence

LOOKS = 8
"""How often the last message is asked for, at most, where the topic is written to faster than it answers.

What came meanwhile is read within some milliseconds. Compaction would have to begin and end within them to take any of
it away."""


def newest_messages(
    part: Range, open_reader: Open, lose: Callable[[str], None], timeout: ReadTimeout
) -> Iterator[list[Entry]]:
    """Yield what compaction left after the start of a range, and what came later, to the last message there is, as
    many entries together as come so.

    Args: the range, whose end is read at least; opens a reader; takes what was lost; how long a read waits.

    Raises Unanswered when nothing comes for too long, and the reader's errors.
    """
    start = came = part.start.entry
    end, looks = part.end, 0
    begin = EntryId(start.ledger, max(start.entry, 0)) if start.ledger >= 0 else None
    with (
        closing(open_reader(part.topic, begin, None)) as reader,
        closing(Silence(part.topic, open_reader, timeout)) as silence,
    ):
        while looks < LOOKS:
            try:
                arrived = reader.read(SILENCE_S)
            except EntriesGone as gone:
                lose(lost(part.topic, f"{part} cannot be read whole: {gone}"))
                if gone.found is None:
                    return
                continue
            yield [entry for entry in arrived if start < entry.id]
            if arrived:
                came = arrived[-1].id
                silence.ends()
                if came < end:
                    continue
            last, _ = reader.last_message_id()
            if last is None or last <= came:
                return
            if arrived:
                end, looks = last, looks + 1
            elif silence.lasts(came, last):
                reader.begin_again()
