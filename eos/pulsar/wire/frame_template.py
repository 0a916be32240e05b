"""Messages that came right after one another, read all at once where their frames have one form.

What a broker sends in a row mostly differs in a few numbers (entry, sequence id, times, how many messages) and texts (a
producer's name, a key, a property's value). Protobuf finds fields by their tags, by the sizes of what they hold, and by
the top bit of each byte of a number, which says whether another byte follows. So two heads of frames that agree in all
these bits have the same fields at the same places. A template is the head of a frame that protobuf has parsed, with a
mask of the bits that must agree: all, but for the numbers' and texts' own. What agrees is read by arithmetic on whole
arrays, and its metadata is parsed only if someone asks for it. What does not agree is parsed as the first one was.

    head      total  size  command            magic  checksum  size  metadata                        | payload
    differs   all          of the entry's id         all             of texts, and of most numbers
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat

import numpy as np

from eos.pulsar.wire.checksum import crc32c_of_each
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.fields import Bytes, Places
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import BaseCommand, CommandMessage, KeyValue, MessageIdData, MessageMetadata
from eos.pulsar.wire.stored_entry import CHECKSUM, MAGIC_CHECKSUM

_VARINT, _SIZED = 0, 2  # wire types
_FIELDS = MessageMetadata.DESCRIPTOR.fields_by_name
_ENTRY_ID = (
    BaseCommand.MESSAGE_FIELD_NUMBER << 3 | _SIZED,
    CommandMessage.MESSAGE_ID_FIELD_NUMBER << 3 | _SIZED,
    MessageIdData.ENTRY_ID_FIELD_NUMBER << 3 | _VARINT,
)
"""The tags that lead to it."""

_NUM_MESSAGES = MessageMetadata.NUM_MESSAGES_IN_BATCH_FIELD_NUMBER << 3 | _VARINT
_NUMBERS = {
    _FIELDS[name].number << 3 | _VARINT
    for name in (
        "sequence_id",
        "publish_time",
        "uncompressed_size",
        "num_messages_in_batch",
        "event_time",
        "txnid_least_bits",
        "txnid_most_bits",
        "highest_sequence_id",
    )
}
"""The tags of the numbers that may differ."""

_TEXTS = {_FIELDS[name].number << 3 | _SIZED for name in ("producer_name", "partition_key", "ordering_key")}
"""The same of texts."""

_PROPERTY = MessageMetadata.PROPERTIES_FIELD_NUMBER << 3 | _SIZED
_PROPERTY_VALUE = KeyValue.VALUE_FIELD_NUMBER << 3 | _SIZED
_NOWHERE = slice(0)
_SIZE = struct.Struct(">I")
_COMMAND = 2 * _SIZE.size  # where it begins
_TOP = 0x80  # the bit of a number's byte that must agree
_MANY = 16
"""Frames, from which looking for those of one form costs less than parsing as many."""

_LOOKS = 2
"""So many looks may find fewer: each frame may have a form of its own."""

_entry_id: Callable[[tuple[int, int]], EntryId] = partial(tuple.__new__, EntryId)  # half as dear as a call of it


@dataclass(slots=True)
class FrameTemplate:
    """The form of a parsed frame.

    Attributes:
        command, entry: what was parsed.
        head: the frame's bytes before the payload; shape (bytes,).
        fixed: the bits that must agree; shape (bytes,).
        checksum: where the magic number before the checksum is in the head.
        entry_id, num_messages: where these numbers are in it; None where there is none, which counts as 1.
    """

    command: BaseCommand
    entry: Entry
    head: Bytes
    fixed: Bytes
    checksum: int
    entry_id: slice
    num_messages: slice | None

    @classmethod
    def of(cls, received: bytes, start: int, end: int, command: BaseCommand, entry: Entry) -> FrameTemplate | None:
        """Return the template of a message's frame; None where it is damaged, or has what this doesn't know.

        Args: the bytes; where the frame lies in them; what was parsed.
        """
        size = end - start - len(entry.packed)
        head = received[start : start + size]
        checksum = _COMMAND + _SIZE.unpack_from(head, _SIZE.size)[0]
        if entry.damage or CHECKSUM.unpack_from(head, checksum)[0] != MAGIC_CHECKSUM:
            return None
        fixed = np.full(size, 0xFF, np.uint8)
        fixed[: _SIZE.size] = fixed[checksum + 2 : checksum + CHECKSUM.size] = 0
        try:
            entry_id = _number_at(head, _COMMAND, checksum, _ENTRY_ID)
            fields = list(_fields(head, checksum + CHECKSUM.size + _SIZE.size, size))
            pairs = [list(_fields(head, place.start, place.stop)) for tag, place in fields if tag == _PROPERTY]
        except ValueError:
            return None
        fixed[entry_id] = _TOP
        for tag, place in chain(*pairs):
            if tag == _PROPERTY_VALUE:
                fixed[place] = 0
        num_messages = None
        for tag, place in fields:
            if tag in _NUMBERS or tag in _TEXTS:
                fixed[place] = _TOP if tag in _NUMBERS else 0
            if tag == _NUM_MESSAGES:
                num_messages = place
        own = entry.like(entry.id, entry.num_messages, b"", b"", 0)  # whoever gets the parsed one may change it
        return cls(command, own, np.frombuffer(head, np.uint8), fixed, checksum, entry_id, num_messages)

    def entries(self, received: bytes, bounds: Sequence[int], first: int) -> dict[int, Entry]:
        """Return, by their places, what those frames carry that have this form and a right checksum.

        Args: the bytes; where the first of all frames begins and where each one ends; the first one to look at.
        """
        size, body = len(self.head), self.checksum + CHECKSUM.size
        places = np.array(bounds, np.int64)
        large = first + np.flatnonzero(np.diff(places[first:]) >= size)
        heads = _rows(received, places[large], size)
        alike = ~((heads ^ self.head) & self.fixed).any(axis=1)
        which, heads = large[alike], heads[alike]
        ends = places[which + 1].tolist()
        bodies = [received[start:end] for start, end in zip((places[which] + body).tolist(), ends, strict=True)]
        right = heads[:, body - _SIZE.size : body].copy().view(">u4")[:, 0] == crc32c_of_each(bodies)
        ids = zip(repeat(self.entry.id.ledger), _numbers(heads[:, self.entry_id]).tolist())
        counts = [1] * len(heads)
        if self.num_messages is not None:
            counts = _numbers(heads[:, self.num_messages]).astype(np.int32).tolist()
        like, metadata, payload = self.entry.like, _SIZE.size, size - body
        entries = [  # each message comes by here
            like(where, count, one[metadata:payload], one[payload:], len(one) + CHECKSUM.size)
            for where, count, one in zip(map(_entry_id, ids), counts, bodies, strict=True)
        ]
        return {
            place: entry for place, entry, good in zip(which.tolist(), entries, right.tolist(), strict=True) if good
        }


class AlikeMessages:
    """Messages among frames that came together, whose frames have the form of one that was parsed.

    Attributes:
        entries, commands: what they carry, and the command of the parsed one, by their places.
        form: that many of the last ones have; None where no known form is of many.
    """

    def __init__(self, received: bytes, bounds: Sequence[int], form: FrameTemplate | None) -> None:
        """Args: the bytes; where the first frame begins and where each one ends; the form of earlier ones."""
        self._received, self._bounds = received, bounds
        self._looks = _LOOKS
        self.entries: dict[int, Entry] = {}
        self.commands: dict[int, BaseCommand] = {}
        self.form = form
        if form is not None and len(bounds) > _MANY and not self._found(form, 0):
            self.form = None

    def learn(self, place: int, command: BaseCommand, entry: Entry) -> None:
        """Look for messages after this one with its form. Args: its place; what was parsed."""
        if self._looks == 0 or len(self._bounds) - place <= _MANY:
            return
        form = FrameTemplate.of(self._received, self._bounds[place], self._bounds[place + 1], command, entry)
        if form is None:
            return
        if self._found(form, place + 1):
            self.form = form
        else:
            self._looks -= 1

    def _found(self, form: FrameTemplate, first: int) -> bool:
        """Take the messages of this form, from this place on. Return whether there were many."""
        found = form.entries(self._received, self._bounds, first)
        self.entries.update(found)
        self.commands.update(dict.fromkeys(found, form.command))
        return len(found) >= _MANY


def _numbers(varints: Bytes) -> Places:
    """Return the numbers of varints of one width. As in protobuf, bits above the 64th are lost."""
    return (varints & ~np.uint8(_TOP)) @ (1 << 7 * np.arange(varints.shape[1]))


def _rows(data: bytes, places: Places, size: int) -> Bytes:
    """Return so many bytes from each of these places on; shape (places, size)."""
    each = np.ndarray((max(0, len(data) - size + 1),), dtype=f"V{size}", buffer=data, strides=(1,))
    return each[places].view(np.uint8).reshape(len(places), size)


def _number_at(data: bytes, at: int, end: int, path: Sequence[int]) -> slice:
    """Return where the number is to which these tags lead: as for protobuf, the last one. Raises ValueError."""
    found = _NOWHERE
    for tag, place in _fields(data, at, end):
        if tag == path[0]:
            inner = _number_at(data, place.start, place.stop, path[1:]) if len(path) > 1 else place
            found = inner if inner.stop else found
    return found


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, slice]]:
    """Yield the tag of each field, and where its number or its bytes are.

    Raises ValueError for a field that is neither: what follows it may be part of it.
    """
    while at < end:
        tag, at = _varint(data, at)
        number, behind = _varint(data, at)
        if tag & 7 == _VARINT:
            yield tag, slice(at, behind)
        elif tag & 7 == _SIZED:
            yield tag, slice(behind, behind + number)
            behind += number
        else:
            raise ValueError(f"wire type {tag & 7}")
        at = behind


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins here, and where it ends. Protobuf has read it before."""
    number = shift = 0
    while data[at] >= _TOP:
        number |= (data[at] & ~_TOP) << shift
        at, shift = at + 1, shift + 7
    return number | data[at] << shift, at + 1
