"""Messages that each are an entry of their own, as a producer without batches sends them.

What describes such a message stands in the entry's metadata, which protobuf parses one by one. The wanted texts, the
properties and the payload of all messages are laid side by side in one array of bytes, so that their columns are made
as those of batches are.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from itertools import chain

import numpy as np

from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.fields import Bytes, Fields, MessageField, Places, joined
from eos.pulsar.wire.headers import (
    EVENT_TIME,
    KEY_B64_ENCODED,
    NULL_KEY,
    NULL_VALUE,
    ORDERING_KEY,
    PARTITION_KEY,
    PROPERTIES,
    Headers,
)
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata, SingleMessageMetadata

_TEXTS = {PARTITION_KEY: "partition_key", ORDERING_KEY: "ordering_key"}
_NUMBERS = {
    EVENT_TIME: "event_time",
    KEY_B64_ENCODED: "partition_key_b64_encoded",
    NULL_VALUE: "null_value",
    NULL_KEY: "null_partition_key",
}
"""Fields of SingleMessageMetadata by their numbers. In MessageMetadata each has the same name."""

_SIZE = struct.Struct(">I")


def laid_out(entries: Sequence[Entry], keep: Collection[int], each: Collection[int]) -> tuple[Bytes, Headers]:
    """Return the bytes of messages, and where in them each one's fields and value are.

    Args: entries without a batch; fields of SingleMessageMetadata that are wanted, as of `fields.parse`.

    Raises DamagedFrame.
    """
    told = [entry.metadata for entry in entries]
    texts = [number for number in _TEXTS if number in keep]
    parts = [[getattr(one, _TEXTS[number]) for one in told] for number in texts]
    pairs = [[pair.SerializeToString() for pair in one.properties] for one in told] if PROPERTIES in each else []
    if pairs:
        parts.append([b"".join(own) for own in pairs])
    parts.append([entry.payload for entry in entries])
    data, bounds = joined(list(chain.from_iterable(zip(*parts, strict=True))))
    places = bounds[:-1].reshape(len(told), len(parts))
    sizes = np.diff(bounds).reshape(places.shape)
    fields = Fields(np.ones(len(told), np.bool_), {}, {})
    for column, number in enumerate(texts):
        fields.by_number[number] = MessageField(_there(told, _TEXTS[number], places[:, column]), sizes[:, column])
    for number, name in _NUMBERS.items():
        if number in keep:
            numbers = np.array([getattr(one, name) for one in told], np.uint64).astype(np.int64)
            fields.by_number[number] = MessageField(_there(told, name, places[:, -1]), numbers)
    if pairs:
        fields.each[PROPERTIES] = _in_turn(pairs, places[:, -2])
    return data, Headers(places[:, 0], places[:, -1], sizes[:, -1], fields)


def batch_of_one(entry: Entry) -> bytes:
    """Return a message that stands alone as a batch: what describes it moves from the entry to the message.

    Raises DamagedFrame.
    """
    told, payload = entry.metadata, entry.payload
    own = SingleMessageMetadata(properties=told.properties, payload_size=len(payload))
    for name in (*_TEXTS.values(), *_NUMBERS.values()):
        if told.HasField(name):
            setattr(own, name, getattr(told, name))
    own.DiscardUnknownFields()  # of its properties, whose fields are found without protobuf
    described = own.SerializeToString()
    return b"".join((_SIZE.pack(len(described)), described, payload))


def _there(told: Sequence[MessageMetadata], name: str, places: Places) -> Places:
    """Return the places of a field, -1 where a message does not have it."""
    return np.where([one.HasField(name) for one in told], places, -1)


def _in_turn(pairs: Sequence[Sequence[bytes]], places: Places) -> tuple[Places, Places, Places]:
    """Return of each property its message, its place and its size. Args: those of each message; where they begin."""
    owner = np.repeat(np.arange(len(pairs)), [len(own) for own in pairs])
    sizes = np.array([len(pair) for own in pairs for pair in own], np.int64)
    behind = np.cumsum(sizes) - sizes  # the first property of all
    first = np.searchsorted(owner, owner)
    return owner, places[owner] + behind - behind[first], sizes
