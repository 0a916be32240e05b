"""The fields of many small protobuf messages at once, for messages that lie in one array of bytes.

All messages are read in step: the first field of each, then the second of each, and so on. A field
is a tag (field number * 8 + wire type) and a varint: a number, or the size of the bytes that follow.
The first byte of all varints is read, then the second of all, until none goes on: most have one or two, and numpy takes
a single byte from many places in a fifth of the time of eight, which lie at no multiple of eight. No message becomes a
Python object.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from eos.pulsar.wire.checksum import Buffer

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

PADDING = 40
"""Zeros that follow the last message in the array. The longest look ahead is 32 bytes (`eos.schema.json_text`)."""

MOST_VARINT = 10
"""Bytes that a number of 64 bits has at most."""

_SEVEN = np.uint8(0x7F)
_BYTES = 2  # the wire type of a size and so many bytes


@dataclass(slots=True)
class MessageField:
    """One field in all messages.

    Attributes:
        at: where its varint, or its bytes, begin; -1 in a message without the field; shape (messages,).
        number: the varint: a number (as a signed one), or the size of the bytes; shape (messages,).
    """

    at: Places
    number: Places


@dataclass(slots=True)
class Fields:
    """The fields that were read.

    Attributes:
        valid: messages that were read to their end, and had no tag but the allowed ones; shape (messages,).
        by_number: the last occurrence of each field that was asked for and came at all.
        each: {field number: (message, at, size)} of every occurrence of the fields asked for so, in order.
    """

    valid: Flags
    by_number: dict[int, MessageField]
    each: dict[int, tuple[Places, Places, Places]]

    def of(self, number: int) -> MessageField:
        """Return a field; if no message has it, one that is missing everywhere."""
        count = len(self.valid)
        return self.by_number.get(number) or MessageField(np.full(count, -1), np.zeros(count, np.int64))

    def only(self, rows: Places) -> Fields:
        """Return these messages alone, with new numbers. `rows` rises."""
        place = np.full(len(self.valid), -1)
        place[rows] = np.arange(len(rows))
        each = {}
        for number, (who, at, size) in self.each.items():
            kept = place[who] >= 0
            each[number] = place[who[kept]], at[kept], size[kept]
        by_number = {
            number: MessageField(field.at[rows], field.number[rows]) for number, field in self.by_number.items()
        }
        return Fields(self.valid[rows], by_number, each)


def joined(parts: Sequence[Buffer]) -> tuple[Bytes, Places]:
    """Return these bytes one after the other, and PADDING; and where each part begins, and at last the last one ends.

    Shapes: (bytes,), (parts + 1,).
    """
    data = np.frombuffer(b"".join([*parts, bytes(PADDING)]), dtype=np.uint8)
    return data, np.cumsum([0, *map(len, parts)])


def window(data: Bytes, kind: str = "<u8") -> npt.NDArray[Any]:
    """Return what lies in `data` from each place on, as one item of this type of numpy's. Default: a number of 8 bytes.

    Shape: a place for each item that ends within the bytes.
    """
    dtype = np.dtype(kind)
    return np.ndarray((len(data) - dtype.itemsize + 1,), dtype=dtype, buffer=data.data, strides=(1,))


def varints(data: Bytes, at: Places, first: Bytes) -> tuple[npt.NDArray[np.uint64], Bytes, Bytes]:
    """Read a varint at each place.

    Args:
        data: all bytes, with PADDING after the last one.
        at: the places; shape (numbers,).
        first: the byte at each.

    Returns the numbers, without what the tenth byte has beyond 64 bits, as protobuf reads them; how many bytes each
    has; and 1 for each that doesn't end with its tenth byte, or else 0. Shapes: (numbers,).
    """
    number = (first & _SEVEN).astype(np.uint64)
    more = first >> np.uint8(7)
    size = np.ones(len(at), np.uint8)
    for place in range(1, MOST_VARINT):
        if not more.any():
            break
        byte = data[at + place] & -more  # 0 behind the last byte of a number
        number |= (byte & _SEVEN).astype(np.uint64) << np.uint64(7 * place)
        size += more
        more = byte >> np.uint8(7)
    return number, size, more


def parse(
    data: Bytes, starts: Places, ends: Places, tags: Flags, keep: Collection[int], each: Collection[int] = ()
) -> Fields:
    """Read the messages that lie at `starts` to `ends`.

    Args:
        data: all bytes, with PADDING after the last message.
        starts, ends: where each message begins and ends; shape (messages,).
        tags: which tags are allowed; shape (256,).
        keep: the field numbers whose last occurrence is wanted.
        each: the field numbers of bytes whose every occurrence is wanted.
    """
    count = len(starts)
    fields = Fields(np.ones(count, np.bool_), {}, {})
    found: dict[int, list[tuple[Places, Places, Places]]] = {number: [] for number in each}
    who, at = np.arange(count), starts
    while True:
        going = at < ends
        if not going.all():
            who, at, ends = who[going], at[going], ends[going]
        if len(who) == 0:
            break
        tag, behind = data[at], at + 1
        unsigned, size, endless = varints(data, behind, data[behind])
        number, behind = unsigned.view(np.int64), behind + size
        kinds = [int(tag[0])] if (tag == tag[0]).all() else np.flatnonzero(np.bincount(tag)).tolist()
        follows = np.where((tag & 7) == _BYTES, number, 0)
        good = tags[tag] & (endless == 0) & (follows >= 0) & (follows <= ends - behind)
        for kind in kinds:
            here = slice(None) if len(kinds) == 1 else np.flatnonzero(tag == kind)
            if kind >> 3 in keep:
                _store(fields, kind >> 3, who[here], behind[here], number[here])
            if kind >> 3 in found:
                found[kind >> 3].append((who[here], behind[here], number[here]))
        if not good.all():
            fields.valid[who[~good]] = False
            who, behind, follows, ends = who[good], behind[good], follows[good], ends[good]
        at = behind + follows
    for wanted, parts in found.items():
        fields.each[wanted] = _in_order(parts)
    return fields


def _store(fields: Fields, number: int, who: Places, at: Places, value: Places) -> None:
    count = len(fields.valid)
    if len(who) == count:  # then `who` is all messages, in order
        fields.by_number[number] = MessageField(at, value)
        return
    field = fields.by_number.setdefault(number, MessageField(np.full(count, -1), np.zeros(count, np.int64)))
    field.at[who] = at
    field.number[who] = value


def _in_order(parts: list[tuple[Places, Places, Places]]) -> tuple[Places, Places, Places]:
    if not parts:
        none = np.empty(0, np.int64)
        return none, none, none
    who, at, size = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(who, kind="stable")
    return who[order], at[order], size[order]
