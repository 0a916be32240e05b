"""Pulsar's frames as they pass a proxy: where each begins, its kind, and when a certain one is there."""

from __future__ import annotations

import struct
import threading
from collections.abc import Collection, Iterator

NEW_TXN, ADD_PARTITION, END_TXN = 50, 52, 56
SEND, RECEIPT, CLOSE_PRODUCER, SUCCESS = 6, 7, 15, 13
"""Numbers of PulsarApi.proto; the answer to one about a transaction is the next number."""

OF_DRIVER = frozenset({NEW_TXN, NEW_TXN + 1, SEND, RECEIPT, ADD_PARTITION, ADD_PARTITION + 1, END_TXN, END_TXN + 1})
"""The frames between a driver and its brokers for a batch, when no other batch is under way."""
OF_TASKS = frozenset({ADD_PARTITION, ADD_PARTITION + 1, SEND, RECEIPT, CLOSE_PRODUCER, SUCCESS})
"""The frames between the tasks of a batch and their brokers."""

_SIZE = struct.Struct(">I")
_HEAD = 10  # total size, command size, the tag of the command's type, its number


class FrameStream:
    """Cuts the bytes of one direction of a connection where frames begin."""

    def __init__(self) -> None:
        self._head = b""
        self._left = 0

    def split(self, chunk: bytes) -> Iterator[tuple[int | None, bytes]]:
        """Give the bytes in pieces, each with the kind of the frame that begins it; None: a frame goes on.

        The first bytes of a frame are kept back until its kind is among them.
        """
        data, self._head = self._head + chunk, b""
        while data:
            kind = None
            if not self._left:
                if len(data) < _HEAD:
                    self._head = data
                    return
                (size,) = _SIZE.unpack_from(data)
                self._left, kind = size + _SIZE.size, data[_HEAD - 1]
            piece, data = data[: self._left], data[self._left :]
            self._left -= len(piece)
            yield kind, piece


class FrameBoundary:
    """Counts frames of some kinds over all links, and knows when the `number`-th is there; from any thread.

    Attributes:
        reached: set when it is there. It and what comes after it must not pass.
        frame: which kind it was.
    """

    def __init__(self, kinds: Collection[int], number: int) -> None:
        self.reached = threading.Event()
        self.frame = -1
        self._kinds, self._number, self._count = kinds, number, 0
        self._lock = threading.Lock()

    def passes(self, kind: int | None) -> bool:
        """Whether a piece may pass: those before the frame that is waited for."""
        with self._lock:
            if kind in self._kinds and not self.reached.is_set():
                self._count += 1
                if self._count == self._number:
                    self.frame = -1 if kind is None else kind
                    self.reached.set()
            return not self.reached.is_set()
