"""The connections of one client, one for each broker, remade when they are gone."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError, Future

from eos.config import Cluster
from eos.errors import (
    AuthorizationUnknown,
    BadCertificates,
    EosError,
    InvalidInput,
    NoCredentials,
    RateLimited,
    Refused,
    RefusedForGood,
    Unanswered,
    Unreachable,
)
from eos.pulsar.net.authentication import kept_no_longer
from eos.pulsar.net.connection import Connection
from eos.pulsar.net.service_url import Address, addresses
from eos.pulsar.protocol.coordinator import LOADING
from eos.pulsar.protocol.lookup import BrokerAddress

Key = tuple[Address, Address | None]

_FULL = "Reached the maximum number of connections"
"""A broker's words to a client that connects, of its brokerMaxConnections and brokerMaxConnectionsPerIp (ServerCnx)."""


def _nothing() -> None:
    """Do nothing."""


def not_yet(refused: Refused) -> bool:
    """Tell whether the same request can be granted a moment later, though nobody changes anything."""
    passes = refused.code in LOADING or isinstance(refused, (RateLimited, AuthorizationUnknown))
    return passes and not isinstance(refused, InvalidInput)


class Pool:
    """Connections by address, and by the broker that a proxy connects to.

    A forked child starts with no connections. It drops those of its parent, unharmed.

    Attributes:
        ever_connected: whether a connection was made.
        dialled: called after each connection that was made.
    """

    def __init__(self, cluster: Cluster) -> None:
        """Args: the cluster. Raises InvalidInput for a wrong service URL."""
        self._cluster = cluster
        self._services = addresses(cluster.service_url)
        self._first = 0
        self._connections: dict[Key, Connection] = {}
        self._guard = threading.Lock()
        self._dialling: dict[Key, Future[Connection]] = {}
        self.ever_connected = False
        self.dialled: Callable[[], object] = _nothing
        _POOLS.add(self)

    @property
    def tls(self) -> bool:
        """Whether the service URL asks for TLS."""
        return self._services[0].tls

    def service(self) -> Connection:
        """Return a connection to one of the service URL's hosts, the one that answered last if it can.

        Raises Unreachable when none of them can be reached, Unanswered when there is one, which says nothing, and the
        refusal of one that takes no connection now, or that has no room for one.
        """
        problems: list[EosError] = []
        first = self._first  # another thread may change it meanwhile, and each host is to be asked once
        for step in range(len(self._services)):
            place = (first + step) % len(self._services)
            try:
                connection = self.get(self._services[place])
            except (NoCredentials, BadCertificates):  # nothing of a host: no other one would help
                raise
            except (Unreachable, Unanswered) as error:  # a broker that hangs takes connections, and says nothing
                problems.append(error)
            except Refused as refused:  # a broker that starts or stops, or has too many connections, is not all of them
                if not not_yet(refused) and _FULL not in refused.detail:
                    raise
                problems.append(refused)
            else:
                self._first = place
                return connection
        raise _of_all(problems)

    def pass_over(self, asked: Connection) -> None:
        """Let the next host of the service URL be asked first. Args: where nothing came of a request."""
        first = self._first
        if asked.address == self._services[first]:  # else another thread has done so
            self._first = (first + 1) % len(self._services)

    def reach(self, broker: BrokerAddress, asked: Connection) -> Connection:
        """Return a connection to a broker that a lookup named. Args: the answer; where it came from."""
        (address,) = addresses(broker.url)
        if broker.proxied and address != asked.address:
            return self.get(asked.address, address)
        return self.get(address)

    def get(self, address: Address, proxied: Address | None = None) -> Connection:
        """Return the live connection to this address, made now if need be. Raises what Connection raises.

        Threads that want the same connection while it is being made share the result, also a failure: an address
        that can't be reached costs all of them one time-out.
        """
        key = (address, proxied)
        while True:
            with self._guard:
                connection = self._connections.get(key)
                if connection is not None and connection.alive:
                    return connection
                under_way = self._dialling.get(key)
                if under_way is None:
                    mine = self._dialling[key] = Future[Connection]()
            if under_way is None:
                return self._dial(key, mine)
            try:
                return under_way.result()
            except CancelledError:  # the thread that dialled was interrupted, which says nothing about the address
                continue

    def _dial(self, key: Key, result: Future[Connection]) -> Connection:
        """Make a connection, and tell those that wait for it."""
        try:
            connection = self._connect(key)
        except EosError as error:
            self._told(key)
            result.set_exception(error)
            raise
        except BaseException:
            self._told(key)
            result.cancel()
            raise
        self.ever_connected = True
        with self._guard:
            self._connections[key] = connection
            self._dialling.pop(key, None)
        result.set_result(connection)
        self.dialled()
        return connection

    def _connect(self, key: Key) -> Connection:
        try:
            return Connection(key[0], self._cluster, key[1])
        except RefusedForGood:
            if not kept_no_longer(self._cluster.credentials):
                raise
        return Connection(key[0], self._cluster, key[1])  # by a token that is asked for now

    def _told(self, key: Key) -> None:
        with self._guard:
            self._dialling.pop(key, None)

    def close(self) -> None:
        """End every connection."""
        with self._guard:
            connections, self._connections = self._connections, {}
        for connection in connections.values():
            connection.close()

    def close_idle(self) -> bool:
        """End the connections on which nothing is open and no answer is awaited. Returns whether none are left."""
        with self._guard:
            self._connections = {key: one for key, one in self._connections.items() if not one.close_idle()}
            return not self._connections and not self._dialling

    def forget_after_fork(self) -> None:
        """Start over in a forked child."""
        for connection in self._connections.values():
            connection.forget_after_fork()
        self._connections = {}
        self._guard = threading.Lock()
        self._dialling = {}


def _of_all(problems: list[EosError]) -> EosError:
    """Return one error for what all hosts of a service URL answered: it can pass where one of them can."""
    if len(problems) == 1:
        return problems[0]
    words = "; ".join(map(str, problems))
    refusals = [problem for problem in problems if isinstance(problem, Refused)]
    passing = [refused for refused in refusals if not_yet(refused)]
    if passing or len(refusals) == len(problems):
        one = (passing or refusals)[0]
        return type(one)("connect to one of the hosts in the service URL", one.code, words)
    return Unreachable(f"none of the hosts in the service URL can be reached ({words})")


_POOLS: weakref.WeakSet[Pool] = weakref.WeakSet()


def _forget_all() -> None:
    for pool in _POOLS:
        pool.forget_after_fork()


os.register_at_fork(after_in_child=_forget_all)
