"""A bookie in this process, for what a real one does only when it is broken: it is silent, slow or old, or damages."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

from eos.bookkeeper.wire.bookkeeper_pb2 import AuthMessage, BKPacketHeader, Response
from eos.bookkeeper.wire.frames import BookieFrames, Code, Operation
from eos.closing import Closing

_VERSION = 2
_HEAD = _VERSION << 24


@dataclass
class SimulatedBookie(Closing):
    """Serves stored entries on a port of 127.0.0.1.

    Attributes:
        entries: what it stores: (ledger, entry) → the stored bytes.
        silent: it takes requests and never answers.
        slow: it sends 16 bytes of an answer every 20 ms.
        old: it closes the connection at a batch read, as bookies before 4.17 do.
        refuses: it answers each read with this code.
        password: what a client must show by its plug-in "password" first, or None.
        tls: with which it begins TLS when it is asked to, or None: it says no.
        before_tls: what it sends in plain text after its answer to START_TLS.
        max_batch: the most entries that it gives in one batch.
        asked: what it was asked for: (operation, first entry).
    """

    entries: dict[tuple[int, int], bytes] = field(default_factory=dict)
    silent: bool = False
    slow: bool = False
    old: bool = False
    refuses: int | None = None
    password: bytes | None = None
    tls: ssl.SSLContext | None = None
    before_tls: bytes = b""
    max_batch: int = 1000
    asked: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.id = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Be gone: nobody can connect, and who is connected no longer is."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        frames = BookieFrames(2**20)
        known = self.password is None
        with suppress(OSError), ExitStack() as opened:
            opened.enter_context(connection)
            while data := connection.recv(2**16):
                for frame in frames.feed(data):
                    operation = frame[1]
                    if self.silent:
                        continue
                    if frame[0] != _VERSION:
                        connection = opened.enter_context(self._begin_tls(connection))
                        continue
                    if operation == Operation.AUTH:
                        known = AuthMessage.FromString(frame[4:]).payload == self.password
                        said = AuthMessage(authPluginName="password", payload=b"yes" if known else b"no")
                        _send(connection, struct.pack(">I", _HEAD | operation << 16) + said.SerializeToString())
                        continue
                    if operation == Operation.BATCH_READ and self.old:
                        return
                    answer = self._answer(operation, frame, known)
                    _send_slowly(connection, answer) if self.slow else _send(connection, answer)

    def _begin_tls(self, connection: socket.socket) -> socket.socket:
        header = BKPacketHeader(version=3, operation=9, txnId=1)
        yes = Response(header=header, status=0 if self.tls is not None else 501).SerializeToString()
        connection.sendall(struct.pack(">I", len(yes)) + yes + self.before_tls)
        return connection if self.tls is None else self.tls.wrap_socket(connection, server_side=True)

    def _answer(self, operation: int, frame: bytes, known: bool) -> bytes:
        ledger, entry = struct.unpack_from(">qq", frame, 4)
        self.asked.append((operation, entry))
        batch = operation == Operation.BATCH_READ
        request, count, most = struct.unpack_from(">qiq", frame, 20) if batch else (0, 1, 2**31)
        stored: list[bytes] = []
        size = 0
        while len(stored) < min(count, self.max_batch) and (ledger, entry + len(stored)) in self.entries:
            size += len(self.entries[ledger, entry + len(stored)])
            if stored and size > most:
                break
            stored.append(self.entries[ledger, entry + len(stored)])
        code = Code.OK if stored else Code.NO_ENTRY
        if not any(one == ledger for one, _ in self.entries):
            code = Code.NO_LEDGER
        if self.refuses is not None:
            code, stored = Code(self.refuses), []
        if not known:
            code, stored = Code.UNAUTHORIZED, []
        answer = struct.pack(">Iiqq", _HEAD | operation << 16, code, ledger, entry)
        if not batch:
            return answer + b"".join(stored)
        return answer + struct.pack(">q", request) + b"".join(struct.pack(">I", len(one)) + one for one in stored)


def _send_slowly(connection: socket.socket, frame: bytes) -> None:
    whole = struct.pack(">I", len(frame)) + frame
    for at in range(0, len(whole), 16):
        connection.sendall(whole[at : at + 16])
        time.sleep(0.02)


def _send(connection: socket.socket, frame: bytes) -> None:
    connection.sendall(struct.pack(">I", len(frame)) + frame)
