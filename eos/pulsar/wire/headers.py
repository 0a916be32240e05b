"""Where each message of a batch begins: found by what headers look like, proven as a chain.

A batch is, for each message, the size of its metadata (u32, big-endian), the metadata, the value. Where a message
begins is known only once the one before it was read, so reading them one after another takes a Python object or more
for each. Instead it looks at every place that can be a header: a size below 64 KB, so two bytes of zero, and after it a
tag that a metadata can begin with. All these candidates are read at once (`fields`). Most metadata has less than 256
bytes, so three bytes of zero: two of these lie at an even place, and half of the places are looked at first.

The proof: the first message begins where its batch begins. If that place is a candidate, what was read
there is right, so the next message begins where that one ends; and so on, exactly as reading one after
another would go. If the chain arrives, by candidates alone, at the end of each batch with the number
of messages that the batch has, it is the batch, whatever the values look like: a candidate inside a value is
never arrived at. If it does not arrive, nothing was found, and the batch must be read one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eos.pulsar.wire.fields import Bytes, Fields, Flags, Places, parse, window

# Field numbers of SingleMessageMetadata.
PROPERTIES = 1
PARTITION_KEY = 2
PAYLOAD_SIZE = 3
COMPACTED_OUT = 4
EVENT_TIME = 5
KEY_B64_ENCODED = 6
ORDERING_KEY = 7
SEQUENCE_ID = 8
NULL_VALUE = 9
NULL_KEY = 10

_SIZED = {PROPERTIES, PARTITION_KEY, ORDERING_KEY}
_ALWAYS = {PAYLOAD_SIZE, COMPACTED_OUT}
_SIZE_BYTES = 4
_SMALLEST = 2  # bytes of a metadata: it has at least a payload size
_TOO_MANY, _SOME = 4, 16  # candidates for each message, and more, from which reading one by one costs less
_STRETCH = 256 * 1024  # bytes that are looked at together: of zeros each one may be a candidate, and takes 40 bytes


_Look = Callable[[Bytes, int, int], Places]


def _tags() -> Flags:
    tags = np.zeros(256, np.bool_)
    for number in range(PROPERTIES, NULL_KEY + 1):
        tags[number << 3 | (2 if number in _SIZED else 0)] = True
    return tags


_TAGS = _tags()


@dataclass(slots=True)
class Headers:
    """The messages of a group of batches, in order.

    Attributes:
        starts: where each begins, at the size of its metadata; shape (messages,).
        values: where its value begins; shape (messages,).
        sizes: bytes of its value; shape (messages,).
        fields: what its metadata holds.
    """

    starts: Places
    values: Places
    sizes: Places
    fields: Fields

    def only(self, rows: Places) -> Headers:
        """Return these messages alone; `rows` rises."""
        return Headers(self.starts[rows], self.values[rows], self.sizes[rows], self.fields.only(rows))


def find(data: Bytes, bounds: Places, counts: Places, keep: Collection[int], each: Collection[int]) -> Headers | None:
    """Return the messages of the batches in `data`, or None when no chain proves where they are.

    Args:
        data: the batches one after the other, and PADDING.
        bounds: where each batch begins, and at last where the last one ends; shape (batches + 1,).
        counts: messages in each batch; shape (batches,).
        keep, each: field numbers, as of `parse`.
    """
    small = _sizes(window(data)[:1])[0] < 256  # those of a topic are most often alike
    for look in (_below_256, _below_64k) if small else (_below_64k,):
        headers = _found(data, bounds, counts, look, keep, each)
        if headers is not None:
            return headers
    return None


def _found(
    data: Bytes, bounds: Places, counts: Places, look: _Look, keep: Collection[int], each: Collection[int]
) -> Headers | None:
    """Return the messages, if `look` gives the place of each of them. Args, but for it: as of `find`."""
    total, messages = int(bounds[-1]), int(counts.sum())
    candidates = _candidates(data, total, _TOO_MANY * messages + _SOME, look)
    if candidates is None:
        return None
    headers = read(data, candidates, total, keep, each)
    chain = _chain(headers.starts, headers.values + headers.sizes, total)
    if chain is None or len(chain) != messages:
        return None
    if len(chain) < len(headers.starts):
        headers = headers.only(chain)
    places = np.append(headers.starts, total)  # of the message after each batch too
    begin = places[np.cumsum(counts)]
    return headers if (begin == bounds[1:]).all() and bounds[0] == 0 else None


def read(data: Bytes, starts: Places, total: int, keep: Collection[int], each: Collection[int]) -> Headers:
    """Return those of the messages at `starts` that can be read, and that end at `total` at the latest.

    Args: as of `find`.
    """
    metadata = starts + _SIZE_BYTES
    values = metadata + _sizes(window(data)[starts])
    fields = parse(data, metadata, values, _TAGS, _ALWAYS.union(keep), each)
    payload = fields.of(PAYLOAD_SIZE)
    good = fields.valid & (payload.at >= 0) & (payload.number >= 0) & (payload.number <= total - values)
    headers = Headers(starts, values, payload.number, fields)
    return headers if good.all() else headers.only(np.flatnonzero(good))


def _below_64k(data: Bytes, start: int, end: int) -> Places:
    """Return the places from one up to another where a size below 64 KB can begin."""
    zero = data[start : end + 1] == 0
    return np.flatnonzero(zero[:-1] & zero[1:]) + start


def _below_256(data: Bytes, start: int, end: int) -> Places:
    """Return the places where a size below 256 can begin, whose first two zeros at an even place lie in these bounds.

    If the third zero follows these two, the size begins with them, and otherwise one place before. A place of -1 leads
    to the padding at the end, where a size of 0 is refused.
    """
    even = 2 * np.flatnonzero(data[start : end + end % 2].view(np.uint16) == 0) + start
    starts: Places = even - (data[even + 2] != 0)
    return starts


def _candidates(data: Bytes, total: int, most: int, look: _Look) -> Places | None:
    """Return the places that can be a header; None where there are more than so many. Args: where to look for them."""
    end = max(0, total - _SIZE_BYTES - _SMALLEST + 2)  # zeros at an even place may be those of a header before it
    found = []
    count = 0
    for start in range(0, end, _STRETCH):
        places = look(data, start, min(start + _STRETCH, end))
        head = window(data)[places]
        sizes = _sizes(head)
        tags = (head >> np.uint64(32) & np.uint64(0xFF)).astype(np.uint8)
        found.append(places[_TAGS[tags] & (sizes >= _SMALLEST) & (sizes <= total - places - _SIZE_BYTES)])
        count += len(found[-1])
        if count > most:
            return None
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def _sizes(head: npt.NDArray[np.uint64]) -> Places:
    """Return the sizes, of four bytes, that these eight bytes begin with."""
    return head.astype("<u4").byteswap().astype(np.int64)


def _is_chain(starts: Places, ends: Places, total: int) -> bool:
    """Whether these follow one another from byte 0 to `total`, all of them."""
    return bool(len(starts) and starts[0] == 0 and ends[-1] == total and (ends[:-1] == starts[1:]).all())


def _chain(starts: Places, ends: Places, total: int) -> Places | None:
    """Return the places in `starts` that follow one another from byte 0 to `total`; None when they don't arrive."""
    count = len(starts)
    if _is_chain(starts, ends, total):
        return np.arange(count)
    begins = np.zeros(total + 1, np.bool_)
    begins[0] = True
    begins[ends] = True
    led_to = np.flatnonzero(begins[starts])  # a candidate inside a value rarely begins where another one ends
    if _is_chain(starts[led_to], ends[led_to], total):
        return led_to
    following = np.searchsorted(starts, ends)
    arrives = np.append(starts, -1)[following] == ends
    steps: list[int] = np.where(arrives, following, np.where(ends == total, count, -1)).tolist()
    chain = []
    place = 0 if count and starts[0] == 0 else -1
    while 0 <= place < count:
        chain.append(place)
        place = steps[place]
    return np.array(chain) if place == count else None
