"""A TCP proxy that can delay what passes, swallow it, and cut its connections."""

from __future__ import annotations

import selectors
import socket
import struct
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field

from eos.closing import Closing
from statestore.drills.chaos.frames import FrameBoundary, FrameStream

_CHUNK = 65_536
_TICK_S = 0.02
_BUFFERED = 4 * 1024 * 1024
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER with no time: close() sends RST


@dataclass(eq=False)
class _End:
    """One socket of a connection, and what is on its way to it: when it is due, and the bytes."""

    socket: socket.socket
    far: bool = False  # the target's
    due: deque[tuple[float, bytes]] = field(default_factory=deque)
    other: _End | None = None
    ended: bool = False  # the other side sends nothing further
    shut: bool = False  # and this side knows it
    waiting: int = 0
    frames: FrameStream = field(default_factory=FrameStream)  # of what comes from it

    def close(self, reset: bool = False) -> None:
        if reset:
            with suppress(OSError):
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        with suppress(OSError):
            self.socket.close()


class Proxy(Closing):
    """Passes TCP connections on to `target`, from a port of its own on 127.0.0.1; one thread serves all.

    The port is there as soon as the proxy is made, the target may come later: until then, and while the target doesn't
    answer, connections are reset. Faults last until `heal`.
    """

    def __init__(self, target: tuple[str, int] | None = None, in_frames: bool = False) -> None:
        """`in_frames`: what passes are Pulsar's frames, so that `stop_at` can tell them apart."""
        self.target = target
        self._in_frames = in_frames
        self._boundary: FrameBoundary | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._delay_s = 0.0
        self._silent = self._mute = False
        self._ends: dict[socket.socket, _End] = {}
        self._cut = threading.Event()
        self._closing = threading.Event()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name=f"proxy-{self.port}", daemon=True)
        self._thread.start()

    @property
    def connections(self) -> int:
        """How many connections pass through it now."""
        return len(self._ends) // 2

    def delay(self, seconds: float) -> None:
        """Let each packet arrive so much later, in both directions."""
        self._delay_s = seconds

    def swallow(self) -> None:
        """Go silent: connections stay open, and new ones are taken, but nothing passes any longer."""
        self._silent = True

    def swallow_answers(self) -> None:
        """Let nothing through that the target sends; what is sent to it arrives."""
        self._mute = True

    def stop_at(self, boundary: FrameBoundary) -> None:
        """Go silent when a frame is there, on whichever link: it and all that comes later doesn't arrive."""
        assert self._in_frames
        self._boundary = boundary

    def cut(self) -> None:
        """Reset every connection now. New ones are taken, unless the proxy is silent."""
        self._cut.set()

    def heal(self) -> None:
        """End all faults. Swallowed bytes stay lost, so connections from a silent time are reset."""
        if self._silent or self._mute:
            self._cut.set()
        self._delay_s, self._silent, self._mute, self._boundary = 0.0, False, False, None

    def close(self) -> None:
        """Reset every connection and free the port."""
        self._closing.set()
        self._thread.join()
        for end in list(self._ends.values()):
            end.close(reset=True)
        self._selector.close()
        self._listener.close()

    def _serve(self) -> None:
        while not self._closing.is_set():
            for key, _ in self._selector.select(_TICK_S):
                if key.fileobj is self._listener:
                    self._accept()
                elif (end := self._ends.get(key.fileobj)) is not None:  # type: ignore[call-overload]
                    self._receive(end)
            if self._cut.is_set():
                self._cut.clear()
                for end in list(self._ends.values()):
                    self._drop(end, reset=True)
            self._deliver()

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:
            return
        near = _End(client)
        try:
            if self.target is None:
                raise ConnectionRefusedError
            far = _End(socket.create_connection(self.target, timeout=2.0), far=True)
        except OSError:
            near.close(reset=True)
            return
        near.other, far.other = far, near
        for end in (near, far):
            end.socket.setblocking(False)
            end.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._ends[end.socket] = end
            self._selector.register(end.socket, selectors.EVENT_READ)

    def _receive(self, end: _End) -> None:
        to = end.other
        if to is None or to.waiting > _BUFFERED:
            return
        try:
            chunk = end.socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            self._drop(end, reset=True)
            return
        if not chunk:
            self._selector.unregister(end.socket)
            to.ended = True
        elif not (self._silent or (self._mute and end.far)):
            self._pass(chunk, end, to)

    def _pass(self, chunk: bytes, end: _End, to: _End) -> None:
        boundary = self._boundary
        for kind, piece in end.frames.split(chunk) if self._in_frames else [(None, chunk)]:
            if boundary is not None and not boundary.passes(kind):
                self._silent = True
                return
            to.due.append((time.monotonic() + self._delay_s, piece))
            to.waiting += len(piece)

    def _deliver(self) -> None:
        now = time.monotonic()
        for end in list(self._ends.values()):
            while end.due and end.due[0][0] <= now:
                at, chunk = end.due[0]
                try:
                    sent = end.socket.send(chunk)
                except BlockingIOError:
                    break
                except OSError:
                    self._drop(end, reset=True)
                    break
                end.waiting -= sent
                end.due.popleft()
                if sent < len(chunk):
                    end.due.appendleft((at, chunk[sent:]))
            if end.ended and not end.due and not self._silent:
                self._shut(end)

    def _shut(self, end: _End) -> None:
        if end.shut:
            return
        end.shut = True
        with suppress(OSError):
            end.socket.shutdown(socket.SHUT_WR)
        if end.other is None or end.other.shut:
            self._drop(end, reset=False)

    def _drop(self, end: _End, reset: bool) -> None:
        for one in (end, end.other):
            if one is None or self._ends.pop(one.socket, None) is None:
                continue
            with suppress(KeyError, ValueError):
                self._selector.unregister(one.socket)
            one.close(reset)
