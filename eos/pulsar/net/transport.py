"""Bytes over a TCP connection, with or without TLS, written and read by different threads.

TLS runs over memory buffers, because an OpenSSL connection must not be read and written by
two threads at once: a lock guards it, and a thread never waits for the network while it
holds that lock.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import struct
import threading
from collections.abc import Iterator, Sequence
from typing import NoReturn, Protocol

from eos.config import Cluster, Credentials, Tls
from eos.errors import BadCertificates, InvalidInput, Unreachable
from eos.pulsar.net.service_url import Address
from eos.pulsar.wire.checksum import Buffer

_READ = 256 * 1024  # bytes a read may return
_BUFFERS = 512  # buffers a call of sendmsg may take; Linux allows 1024


class Transport(Protocol):
    """One connection. `send` and `receive` may run in two threads, each in one at a time."""

    def send(self, buffers: Sequence[Buffer]) -> None:
        """Send all of these bytes, or raise OSError."""

    def receive(self, timeout_s: float) -> bytes | None:
        """Return some bytes, b"" at the end of the connection, None when none came in time."""

    def shut(self) -> None:
        """End the connection: both directions, also for a thread that waits in `send` or `receive`."""

    def drop(self) -> None:
        """Let go of the connection in this process only, as after a fork."""


class PlainTransport:
    """TCP."""

    def __init__(self, sock: socket.socket, send_timeout_s: float) -> None:
        """Args: a connected socket; seconds after which a send fails when the other side takes nothing."""
        sock.settimeout(None)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(send_timeout_s))
        self._socket = sock
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)

    def send(self, buffers: Sequence[Buffer]) -> None:
        """Send all of these bytes, or raise OSError."""
        for first in range(0, len(buffers), _BUFFERS):
            part = buffers[first : first + _BUFFERS]
            try:
                left = sum(len(buffer) for buffer in part) - self._socket.sendmsg(part)
                if left:
                    self._socket.sendall(b"".join(part)[-left:])
            except BlockingIOError:
                raise OSError("it takes no further data") from None

    def receive(self, timeout_s: float) -> bytes | None:
        """Return some bytes, b"" at the end of the connection, None when none came in time."""
        if not self._poll.poll(timeout_s * 1000):
            return None
        return self._socket.recv(_READ)

    def shut(self) -> None:
        """End the connection for every thread that uses it."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def drop(self) -> None:
        """Close this process's copy of the socket; nothing is sent."""
        self._socket.close()


class TlsTransport:
    """TLS over TCP."""

    def __init__(
        self, sock: socket.socket, send_timeout_s: float, context: ssl.SSLContext, host: str, timeout_s: float
    ) -> None:
        """Shake hands within `timeout_s` seconds for each answer. Raises OSError, ssl.SSLError among them."""
        self._tcp = PlainTransport(sock, send_timeout_s)
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._guard = threading.Lock()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        while not self._shaken():
            data = self._tcp.receive(timeout_s)
            if not data:
                raise OSError("no answer to the TLS handshake" if data is None else "closed during the TLS handshake")
            self._incoming.write(data)

    def send(self, buffers: Sequence[Buffer]) -> None:
        """Send all of these bytes, or raise OSError."""
        with self._guard:
            for buffer in buffers:
                self._tls.write(buffer)
            data = self._outgoing.read()
        self._tcp.send([data])

    def receive(self, timeout_s: float) -> bytes | None:
        """Return some bytes, b"" at the end of the connection, None when none came in time."""
        while True:
            with self._guard:
                try:
                    return self._tls.read(_READ)
                except ssl.SSLWantReadError:
                    pass
            data = self._tcp.receive(timeout_s)
            if not data:
                return data
            with self._guard:
                self._incoming.write(data)

    def shut(self) -> None:
        """End the connection for every thread that uses it."""
        self._tcp.shut()

    def drop(self) -> None:
        """Close this process's copy of the socket; nothing is sent."""
        self._tcp.drop()

    def _shaken(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        finally:
            if self._outgoing.pending:
                self._tcp.send([self._outgoing.read()])
        return True


def connect(address: Address, cluster: Cluster) -> Transport:
    """Make a connection within the cluster's time-out.

    Raises Unreachable, which is BadCertificates for PEM files that can't be read.
    """
    context = tls_context(cluster.tls, cluster.credentials) if address.tls else None
    try:
        sock = socket.create_connection((address.host, address.port), cluster.connect_timeout_s)
    except OSError as error:
        raise Unreachable(
            f"can't reach {address}: {error.strerror or error}. Check that the broker is up, "
            "that the service URL is right and that no firewall is in between"
        ) from error
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if context is None:
        return PlainTransport(sock, cluster.request_timeout_s)
    try:
        return TlsTransport(sock, cluster.request_timeout_s, context, address.host, cluster.connect_timeout_s)
    except OSError as error:
        sock.close()
        advice = (
            tls_advice(str(error)) or "Check that the port is the broker's TLS port. Its plain port takes pulsar://"
        )
        raise Unreachable(f"no TLS connection to {address}: {error}. {advice}") from error


def tls_advice(why: str) -> str | None:
    """Return what to check, by OpenSSL's words, the one thing that passes through every library; None for other words.

    In TLS 1.3 a broker looks at a client's certificate when the client counts itself connected: the alert is then the
    first that is read (RFC 8446, 4.4.2 and 6.2).
    """
    if "CERTIFICATE_VERIFY_FAILED" in why:
        return "Check the trusted certificates (tls_trust_certs), and the host name in the broker's certificate"
    if "alert" in why:
        return (
            "The broker refused the TLS connection. Check the client's certificate (tls_certificate, tls_key), and "
            "whether the broker trusts the authority that signed it"
        )
    return None


def tls_context(tls: Tls, credentials: Credentials) -> ssl.SSLContext:
    """Return how to trust and be trusted. Raises BadCertificates for PEM files that can't be read; InvalidInput."""
    if credentials.method == "tls" and tls.certificate is None:
        raise InvalidInput("'tls' authentication needs Tls(certificate=..., key=...)")
    with _named("trusted certificates", tls.trust_certs):
        context = ssl.create_default_context(cafile=tls.trust_certs)
    if tls.certificate is not None:
        with _named("client certificate and its key", tls.certificate, tls.key):
            context.load_cert_chain(tls.certificate, tls.key, password=lambda: _asks_password(tls))
    context.check_hostname = tls.verify_hostname
    return context


def _asks_password(tls: Tls) -> NoReturn:
    """Refuse a key that needs a password: OpenSSL would ask for it at the terminal, and a job would wait there."""
    raise BadCertificates(
        f"the key {tls.key or tls.certificate} is encrypted by a password, which can't be given here. Use one without, "
        "in a file that only the job's user may read: openssl pkey -in KEY -out FILE"
    )


@contextlib.contextmanager
def _named(what: str, *paths: str | None) -> Iterator[None]:
    """Name the PEM files that can't be used: Python's own error for a missing one names none."""
    named = [path for path in paths if path is not None]
    try:
        for path in named:
            with open(path, "rb"):
                pass
        yield
    except FileNotFoundError as error:
        raise BadCertificates(f"can't read the {what}: there is no file {error.filename}") from error
    except OSError as error:
        files = " and ".join(named)
        raise BadCertificates(f"can't read the {what} in PEM {files}: {error.strerror or error}") from error


def _timeval(seconds: float) -> bytes:
    """Return a `struct timeval`."""
    return struct.pack("@ll", int(seconds), int(seconds % 1 * 1_000_000))
