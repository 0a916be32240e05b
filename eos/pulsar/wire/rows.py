"""The messages of a group of entries, laid side by side in one array of bytes."""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from google.protobuf.message import DecodeError

from eos.errors import InvalidInput
from eos.pulsar.wire.encryption import encrypted
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.fields import Bytes, Places, joined
from eos.pulsar.wire.headers import COMPACTED_OUT, Headers, find, read
from eos.pulsar.wire.pulsar_pb2 import SingleMessageMetadata
from eos.pulsar.wire.single_messages import batch_of_one, laid_out

_SIZE = struct.Struct(">I")


@dataclass
class MessageRows:
    """Messages, in order, without those that compaction took out.

    Attributes:
        data: the bytes that the headers' places count in.
        headers: where each message and its fields are.
        counts: messages of each entry, those that compaction took out among them; shape (entries,).
        kept: the places of these messages among all; None where they are all; shape (messages,).
    """

    data: Bytes
    headers: Headers
    counts: Places
    kept: Places | None

    def __len__(self) -> int:
        """Return how many messages there are."""
        return len(self.headers.starts)

    @cached_property
    def entry(self) -> Places:
        """The place of each message's entry in the group; shape (messages,)."""
        owner = np.repeat(np.arange(len(self.counts)), self.counts)
        return owner if self.kept is None else owner[self.kept]

    @cached_property
    def index(self) -> Places:
        """The place of each message in its entry; shape (messages,)."""
        first = np.cumsum(self.counts) - self.counts  # of each entry's messages, among all
        return (np.arange(len(self)) if self.kept is None else self.kept) - first[self.entry]


def rows_of(
    entries: Sequence[Entry], keep: Collection[int], each: Collection[int], *, quick: bool = True
) -> MessageRows:
    """Return the messages of a group of entries.

    Args:
        entries: the group.
        keep, each: fields of SingleMessageMetadata that are wanted, as of `fields.parse`.
        quick: look for all headers at once first.

    Raises InvalidInput, DamagedFrame.
    """
    for entry in entries:
        if not entry.plain:
            _check(entry)
    counts = np.array([entry.num_messages for entry in entries], dtype=np.int64)
    headers = None
    if quick and not any(entry.batched for entry in entries):
        data, headers = laid_out(entries, keep, each)
    elif quick:
        data, bounds = joined([entry.payload if entry.batched else batch_of_one(entry) for entry in entries])
        headers = find(data, bounds, counts, keep, each)
    if headers is None:
        data, headers = _one_by_one(entries, keep, each)
    left_out = headers.fields.by_number.get(COMPACTED_OUT)
    if left_out is not None and left_out.number.any():
        rows = np.flatnonzero(left_out.number == 0)
        return MessageRows(data, headers.only(rows), counts, rows)
    return MessageRows(data, headers, counts, None)


def _check(entry: Entry) -> None:
    if entry.damage:
        raise entry.damaged(entry.damage)
    if entry.metadata.encryption_keys:
        raise InvalidInput(
            f"{encrypted(entry)}, and no private key was given. Give a matching private key, "
            '{"NAME":"file:PATH of the private key"}, as decryption_keys of the source or --decryption-keys of eos peek'
        )
    if entry.chunked:
        raise InvalidInput(f"{entry} is one chunk of a message. Assemble its chunks first")
    if not entry.credible:
        raise entry.damaged(f"it says that it has {entry.num_messages:,} messages, which its bytes can't hold")


def _one_by_one(entries: Sequence[Entry], keep: Collection[int], each: Collection[int]) -> tuple[Bytes, Headers]:
    """Read the messages one after another and write them again, without unknown fields."""
    batches = []
    starts: list[int] = []
    at = 0
    for entry in entries:
        for message in _messages(entry):
            starts.append(at)
            batches.append(message)
            at += len(message)
    data, bounds = joined(batches)
    headers = read(data, bounds[:-1], at, keep, each)
    assert len(headers.starts) == len(starts)
    return data, headers


def _messages(entry: Entry) -> list[bytes]:
    if not entry.batched:
        return [batch_of_one(entry)]
    payload = bytes(entry.payload)
    messages: list[bytes] = []
    at = 0
    try:
        for _ in range(entry.num_messages):
            (size,) = _SIZE.unpack_from(payload, at)
            value = at + _SIZE.size + size
            own = SingleMessageMetadata.FromString(payload[at + _SIZE.size : value])
            end = value + own.payload_size
            if not own.HasField("payload_size") or end < value or end > len(payload):
                raise entry.damaged(f"message {len(messages)} of its batch has no end")
            own.DiscardUnknownFields()
            described = own.SerializeToString()
            messages.append(b"".join((_SIZE.pack(len(described)), described, payload[value:end])))
            at = end
    except (struct.error, DecodeError) as error:
        raise entry.damaged(f"message {len(messages)} of its batch is not valid ({error})") from error
    if at != len(payload):
        raise entry.damaged(f"{len(payload) - at} bytes are left behind the last message of its batch")
    return messages
