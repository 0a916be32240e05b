from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from statestore.drills.chaos.frames import FrameBoundary
from statestore.drills.chaos.proxy import Proxy
from tests.waiting import PATIENCE_S, until


@pytest.fixture
def echo() -> Iterator[tuple[str, int]]:
    """A server that sends back what it gets, until it is told that no more comes."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(connection: socket.socket) -> None:
        with connection:
            try:
                while chunk := connection.recv(65_536):
                    connection.sendall(chunk)
            except OSError:
                return

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@pytest.fixture
def proxy(echo: tuple[str, int]) -> Iterator[Proxy]:
    with Proxy(echo) as made:
        yield made


def connect(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=PATIENCE_S)


def read(connection: socket.socket, length: int) -> bytes:
    told = b""
    while len(told) < length and (chunk := connection.recv(length - len(told))):
        told += chunk
    return told


def test_passes_bytes_both_ways_whatever_their_number(proxy: Proxy) -> None:
    data = bytes(range(256)) * 20_000  # more than sockets buffer
    with connect(proxy) as connection:
        sender = threading.Thread(target=connection.sendall, args=(data,))
        sender.start()
        assert read(connection, len(data)) == data
        sender.join()


def test_passes_on_that_one_side_sends_no_more(proxy: Proxy) -> None:
    with connect(proxy) as connection:
        connection.sendall(b"last words")
        connection.shutdown(socket.SHUT_WR)
        assert read(connection, 100) == b"last words"
    until(lambda: proxy.connections == 0)


def test_delays_each_packet(proxy: Proxy) -> None:
    with connect(proxy) as connection:
        proxy.delay(0.2)
        began = time.monotonic()
        connection.sendall(b"ping")
        assert read(connection, 4) == b"ping"
        assert time.monotonic() - began >= 0.4


def test_cut_resets_what_is_open_and_takes_new_connections(proxy: Proxy) -> None:
    with connect(proxy) as connection:
        connection.sendall(b"ping")
        read(connection, 4)
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            connection.recv(1)
    with connect(proxy) as connection:
        connection.sendall(b"again")
        assert read(connection, 5) == b"again"


def test_swallows_bytes_without_a_word_and_resets_when_it_is_healed(proxy: Proxy) -> None:
    with connect(proxy) as connection:
        connection.sendall(b"ping")
        read(connection, 4)
        proxy.swallow()
        connection.sendall(b"lost")
        with connect(proxy) as late:
            until(lambda: proxy.connections == 2)
            late.sendall(b"lost too")
            late.settimeout(0.2)
            with pytest.raises(TimeoutError):
                late.recv(1)
            connection.settimeout(0.2)
            with pytest.raises(TimeoutError):
                connection.recv(1)
            proxy.heal()
            for silent in (connection, late):
                silent.settimeout(PATIENCE_S)
                with pytest.raises(ConnectionResetError):
                    silent.recv(1)
    with connect(proxy) as connection:
        connection.sendall(b"again")
        assert read(connection, 5) == b"again"


def test_swallows_answers_alone_and_resets_when_it_is_healed(proxy: Proxy, echo: tuple[str, int]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as target:
        proxy.target = target.getsockname()
        with connect(proxy) as connection:
            server, _ = target.accept()
            server.settimeout(PATIENCE_S)
            with server:
                proxy.swallow_answers()
                server.sendall(b"lost")
                connection.sendall(b"asked")
                assert read(server, 5) == b"asked"
                connection.settimeout(0.2)
                with pytest.raises(TimeoutError):
                    connection.recv(1)
                proxy.heal()
                connection.settimeout(PATIENCE_S)
                with pytest.raises(ConnectionResetError):
                    connection.recv(1)
    proxy.target = echo
    with connect(proxy) as connection:
        connection.sendall(b"again")
        assert read(connection, 5) == b"again"


def test_resets_while_there_is_no_target() -> None:
    # The reset may come while connecting already.
    with Proxy() as proxy, pytest.raises(ConnectionResetError), connect(proxy) as connection:
        connection.recv(1)


def test_frees_its_port(echo: tuple[str, int]) -> None:
    with Proxy(echo) as proxy:
        connection = connect(proxy)
        until(lambda: proxy.connections == 1)
    with pytest.raises(ConnectionError):
        connection.recv(1)
    connection.close()
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)


def test_goes_silent_at_a_frame_and_passes_what_came_before_it(echo: tuple[str, int]) -> None:
    def frame(kind: int) -> bytes:
        return (8).to_bytes(4) + (4).to_bytes(4) + bytes([8, kind, 0, 0])

    boundary = FrameBoundary({56}, 2)
    with Proxy(echo, in_frames=True) as proxy, connect(proxy) as connection:
        proxy.stop_at(boundary)
        connection.sendall(frame(18) + frame(56))  # it comes back, which is the second
        assert read(connection, 12) == frame(18)
        assert boundary.reached.wait(PATIENCE_S)
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        proxy.heal()
        until(lambda: proxy.connections == 0)
        with connect(proxy) as other:
            other.sendall(frame(56))
            assert read(other, 12) == frame(56)
