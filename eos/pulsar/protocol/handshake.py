"""The start of a connection.

The client sends CONNECT with its credentials and its protocol version. The broker answers CONNECTED with its maximum
message size, or ERROR, or it asks again with AUTH_CHALLENGE as often as the authentication method needs. Later, on a
live connection, AUTH_CHALLENGE means that the credentials have expired and that the broker wants new ones (PIP-30).

Transactions need protocol version 19 or newer. The client refuses an older broker here, before the broker can take a
transaction id for an unknown field and store the message as a plain one.
"""

from __future__ import annotations

from enum import StrEnum

from eos.errors import UnexpectedFrame
from eos.pulsar.protocol.machine import Machine, TransitionTable
from eos.pulsar.protocol.refusals import refused
from eos.pulsar.protocol.requests import Type, granted
from eos.pulsar.wire.frames import DEFAULT_MAX_MESSAGE_SIZE
from eos.pulsar.wire.pulsar_pb2 import AuthData, BaseCommand, CommandAuthResponse, CommandConnect, FeatureFlags

PROTOCOL_VERSION = 21
"""The version we speak: the newest that Pulsar 4.2.4 knows (ProtocolVersion)."""

TRANSACTIONS_SINCE = 19
"""The first version with TC_CLIENT_CONNECT."""

MOST_CHALLENGES = 10
"""How often a broker may ask before it says whether the client is connected. Each method here takes one answer."""

CLIENT_VERSION = "eos"


class State(StrEnum):
    """Where the handshake stands."""

    NEW = "new"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    REFUSED = "refused"


class Input(StrEnum):
    """Its inputs."""

    CONNECT = "connect"
    CHALLENGE = "auth challenge"
    CONNECTED = "connected"
    ERROR = "error"


HANDSHAKE: TransitionTable[State, Input] = TransitionTable(
    name="handshake",
    start=State.NEW,
    ours=frozenset({Input.CONNECT}),
    moves={
        (State.NEW, Input.CONNECT): State.CONNECTING,
        (State.CONNECTING, Input.CHALLENGE): State.CONNECTING,
        (State.CONNECTING, Input.CONNECTED): State.CONNECTED,
        (State.CONNECTING, Input.ERROR): State.REFUSED,
        (State.CONNECTED, Input.CHALLENGE): State.CONNECTED,
        (State.CONNECTED, Input.ERROR): State.REFUSED,
    },
)

_INPUTS = {
    Type.AUTH_CHALLENGE: Input.CHALLENGE,
    Type.CONNECTED: Input.CONNECTED,
    Type.ERROR: Input.ERROR,
}


class Handshake:
    """One connection's handshake.

    Attributes:
        max_message_size: bytes; what the broker accepts, known once connected.
        server_version: the broker's own name for its version, known once connected.
        creates_topics_unasked: the broker can't look up a topic's partitions without creating
            it (older than PIP-344); known once connected.
    """

    def __init__(self, auth_method: str, proxied_broker: str | None = None) -> None:
        """Args: Pulsar's name of the method. Then "host:port" of the broker that a proxy connects to, or None."""
        self._machine = Machine(HANDSHAKE)
        self._auth_method = auth_method
        self._proxied_broker = proxied_broker
        self._challenges = 0
        self.max_message_size = DEFAULT_MAX_MESSAGE_SIZE
        self.server_version = ""
        self.creates_topics_unasked = False

    @property
    def state(self) -> State:
        """Where the handshake stands."""
        return self._machine.state

    def connect(self, auth_data: bytes) -> BaseCommand:
        """Return the first command of the connection."""
        self._machine.take(Input.CONNECT)
        connect = CommandConnect(
            client_version=CLIENT_VERSION,
            protocol_version=PROTOCOL_VERSION,
            auth_method_name=self._auth_method,
            auth_data=auth_data,
            feature_flags=FeatureFlags(
                supports_auth_refresh=True,
                supports_get_partitioned_metadata_without_auto_creation=True,
            ),
        )
        if self._proxied_broker is not None:
            connect.proxy_to_broker_url = self._proxied_broker
        return BaseCommand(type=Type.CONNECT, connect=connect)

    def receive(self, command: BaseCommand) -> State:
        """Take the broker's answer. After a challenge the caller sends `response`.

        Raises Refused on ERROR, when the broker is too old for transactions, or when it asks without end, and
        UnexpectedFrame for a command that has no place here.
        """
        happening = _INPUTS.get(command.type)
        if happening is None:
            raise UnexpectedFrame(f"handshake: received {Type.Name(command.type)} while {self.state}")
        self._machine.take(happening)
        self._challenges += happening is Input.CHALLENGE and self.state is State.CONNECTING
        if self._challenges > MOST_CHALLENGES:
            words = f"it asked for credentials {self._challenges} times, and never said whether they are accepted"
            raise refused("connect", "AuthenticationError", words)
        if happening is Input.CONNECTED:
            self._connected(command)
        elif happening is Input.ERROR:
            granted(command, "connect")
        return self.state

    def response(self, auth_data: bytes) -> BaseCommand:
        """Return the answer to a challenge."""
        return BaseCommand(
            type=Type.AUTH_RESPONSE,
            auth_response=CommandAuthResponse(
                client_version=CLIENT_VERSION,
                protocol_version=PROTOCOL_VERSION,
                response=AuthData(auth_method_name=self._auth_method, auth_data=auth_data),
            ),
        )

    def _connected(self, command: BaseCommand) -> None:
        connected = command.connected
        if connected.protocol_version < TRANSACTIONS_SINCE:
            raise refused(
                "connect",
                "UnsupportedVersionError",
                f"it speaks protocol version {connected.protocol_version}; transactions need {TRANSACTIONS_SINCE}",
            )
        self.server_version = connected.server_version
        if connected.HasField("max_message_size"):
            self.max_message_size = connected.max_message_size
        flags = connected.feature_flags
        self.creates_topics_unasked = not flags.supports_get_partitioned_metadata_without_auto_creation
