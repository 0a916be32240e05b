"""A client against a scripted broker: what it says when things go wrong, and that it recovers."""

from __future__ import annotations

import os
import pickle
import threading

import pytest

from eos.config import Cluster, Credentials
from eos.errors import ConnectionLost, Fenced, InvalidInput, Refused, TopicMissing, Unanswered, Unreachable
from eos.pulsar.net.client import Client
from eos.pulsar.net.connection import Connection
from eos.pulsar.net.service_url import Address
from eos.pulsar.net.transport import PlainTransport
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.frames import Frame, encode
from eos.pulsar.wire.pulsar_pb2 import (
    AuthData,
    BaseCommand,
    CommandAuthChallenge,
    CommandPing,
    ServerError,
)
from tests.unit.pulsar.net.clock import Clock
from tests.unit.pulsar.net.fake_broker import (
    FakeBroker,
    Handler,
    Session,
    answer_well,
    connected,
    cut,
    first_then_well,
    free_port,
    looked_up,
    refusing,
    silent,
)
from tests.waiting import PATIENCE_S, in_a_hurry, until


def challenge(session: Session) -> None:
    data = AuthData(auth_method_name="token", auth_data=b"PulsarAuthRefresh")
    session.send(BaseCommand(type=Type.AUTH_CHALLENGE, auth_challenge=CommandAuthChallenge(challenge=data)))


# ---- connecting


def test_no_answer_names_what_was_asked_of_whom_and_for_how_long(broker: FakeBroker, client: Client) -> None:
    client.partitions("t")
    broker.handlers[Type.PARTITIONED_METADATA] = silent
    with in_a_hurry(client), pytest.raises(Unanswered) as caught:
        client.partitions("t")
    asked = "ask for the partitions of persistent://public/default/t"
    assert str(caught.value) == f"{asked}: no answer from {broker.url} within 0.2 s"


def test_no_answer_to_connect(broker: FakeBroker) -> None:
    broker.handlers[Type.CONNECT] = silent
    with broker.client(0.2) as client, pytest.raises(Unanswered, match=f"connect: no answer from {broker.url}"):
        client.partitions("t")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "answers in HTTP. This is the port of the admin API"),
        (b"\x15\x03\x03\x00\x02\x02\x0a", r"answers in TLS. Use pulsar\+ssl:// and the TLS port"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", r"a frame of 1397966893 bytes"),
        (encode(BaseCommand(type=Type.PING, ping=CommandPing())), "handshake: received PING while connecting"),
    ],
)
def test_a_port_that_speaks_another_protocol_is_named(
    broker: FakeBroker, client: Client, said: bytes, words: str
) -> None:
    broker.handlers[Type.CONNECT] = lambda session, _: session._socket.sendall(said)
    with pytest.raises(Unreachable, match=rf"{broker.url} is not a Pulsar broker \(.*{words}"):
        client.partitions("t")


@pytest.mark.parametrize(
    ("handler", "kind", "words"),
    [
        pytest.param(cut, ConnectionLost, "TLS", id="cut"),
        pytest.param(
            refusing(ServerError.AuthenticationError, "who are you"),
            *(Refused, "connect to pulsar://.*Authentication.*who are"),
            id="refused credentials",
        ),
        pytest.param(
            lambda session, _: connected(session, "2.7", 15), Refused, "transactions need 19", id="an old broker"
        ),
    ],
)
def test_what_connecting_ends_with_is_told(
    broker: FakeBroker, client: Client, handler: Handler, kind: type[Exception], words: str
) -> None:
    broker.handlers[Type.CONNECT] = handler
    with pytest.raises(kind, match=words):
        client.partitions("t")


def test_a_call_under_way_is_lost_and_the_next_one_connects_again(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.PARTITIONED_METADATA] = first_then_well(cut)
    with pytest.raises(ConnectionLost, match=f"ask for the partitions of .*{broker.url} is gone"):
        client.partitions("t")
    assert client.partitions("t") == 0
    assert len(broker.sessions) == 2


def test_unreachable_names_the_address_and_what_to_check(broker: FakeBroker) -> None:
    with free_port() as port:
        gone = f"pulsar://127.0.0.1:{port}"
        with pytest.raises(Unreachable, match=f"can't reach {gone}: .*refused.* Check that the broker is up"):
            Client(Cluster(gone)).partitions("t")
        with Client(Cluster(f"{gone},127.0.0.1:{broker.port}")) as both:
            assert both.partitions("t") == 0


def test_all_unreachable_hosts_are_named() -> None:
    with free_port() as one, free_port() as two:
        client = Client(Cluster(f"pulsar://127.0.0.1:{one},127.0.0.1:{two}"))
        with pytest.raises(Unreachable, match=f"none of the hosts.*{one}.*{two}"):
            client.partitions("t")


def test_a_broker_that_would_create_the_topic_is_not_asked_for_its_partitions(
    broker: FakeBroker, client: Client
) -> None:
    broker.handlers[Type.CONNECT] = lambda session, _: connected(session, "3.0", 20)
    with pytest.raises(InvalidInput, match="PIP-344"):
        client.partitions("t")
    assert broker.commands(Type.PARTITIONED_METADATA) == []


def test_a_challenge_while_connecting_is_answered(broker: FakeBroker) -> None:
    broker.handlers[Type.CONNECT] = lambda session, _: challenge(session)
    broker.handlers[Type.AUTH_RESPONSE] = lambda session, _: connected(session)
    with broker.client(credentials=Credentials("token", "s3cret")) as client:
        assert client.partitions("t") == 0
    (response,) = broker.commands(Type.AUTH_RESPONSE)
    assert response.auth_response.response.auth_data == b"s3cret"


def test_a_broker_that_asks_for_credentials_without_end_is_left(broker: FakeBroker) -> None:
    broker.handlers[Type.CONNECT] = lambda session, _: challenge(session)
    broker.handlers[Type.AUTH_RESPONSE] = lambda session, _: challenge(session)
    words = r"AuthenticationError: it asked for credentials 11 times, and never said whether they are accepted"
    with broker.client(credentials=Credentials("token", "s3cret")) as client, pytest.raises(Refused, match=words):
        client.partitions("t")


def test_expired_credentials_are_read_anew(broker: FakeBroker, tmp_path: object) -> None:
    path = f"{tmp_path}/token"
    for text in ("old", "new"):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        if text == "old":
            client = broker.client(credentials=Credentials("token", f"file:{path}"))
            client.partitions("t")
    answered = threading.Event()
    broker.handlers[Type.AUTH_RESPONSE] = lambda session, _: answered.set()
    challenge(broker.sessions[0])
    assert answered.wait(PATIENCE_S)
    (first,) = broker.commands(Type.CONNECT)
    (second,) = broker.commands(Type.AUTH_RESPONSE)
    assert (first.connect.auth_data, second.auth_response.response.auth_data) == (b"old", b"new")
    client.close()


def test_a_ping_is_answered(broker: FakeBroker, client: Client) -> None:
    answered = threading.Event()
    broker.handlers[Type.PONG] = lambda session, _: answered.set()
    client.partitions("t")
    broker.sessions[0].send(BaseCommand(type=Type.PING, ping=CommandPing()))
    assert answered.wait(PATIENCE_S)


def test_a_silent_broker_is_pinged_and_then_given_up(
    broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eos.pulsar.net.connection.KEEP_ALIVE_S", 0.1)
    broker.handlers[Type.PING] = silent
    broker.handlers[Type.PARTITIONED_METADATA] = silent
    with pytest.raises(ConnectionLost, match=r"no sign of life for 0.2 s"):
        client.partitions("t")
    until(lambda: not broker.sessions[0].alive)  # it has read all that was sent
    assert len(broker.commands(Type.PING)) == 1


def test_a_living_broker_is_kept(broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    receive = PlainTransport.receive
    silences = iter([False, *[True, False] * 3])  # CONNECTED comes, and then each PONG after a silence

    def now_and_then(transport: PlainTransport, timeout_s: float) -> bytes | None:
        return None if next(silences, False) else receive(transport, PATIENCE_S)

    monkeypatch.setattr(PlainTransport, "receive", now_and_then)
    client.partitions("t")
    until(lambda: len(broker.commands(Type.PING)) >= 3)
    client.partitions("t")
    assert len(broker.sessions) == 1


def test_bytes_that_are_no_frame_end_the_connection_and_say_so(broker: FakeBroker, client: Client) -> None:
    def garbage(session: Session, frame: Frame) -> None:
        session._socket.sendall(b"HTTP/1.1 400 Bad Request\r\n")

    broker.handlers[Type.PARTITIONED_METADATA] = garbage
    with pytest.raises(ConnectionLost, match="it answers in HTTP"):
        client.partitions("t")


# ---- finding


def test_a_missing_topic(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.PARTITIONED_METADATA] = refusing(ServerError.TopicNotFound)
    with pytest.raises(TopicMissing, match="pulsar-admin topics create"):
        client.partitions("t")


@pytest.mark.parametrize("code", [ServerError.TopicNotFound, None])
def test_a_cluster_without_transactions_names_the_setting(
    broker: FakeBroker, client: Client, code: ServerError | None
) -> None:
    def none(session: Session, frame: Frame) -> None:
        frame.command.partition_metadata.topic = "no coordinators"
        answer_well(session, frame)

    broker.handlers[Type.PARTITIONED_METADATA] = none if code is None else refusing(code)
    with pytest.raises(InvalidInput, match="transactionCoordinatorEnabled=true"):
        client.coordinators()


def test_a_redirect_is_followed(broker: FakeBroker, client: Client) -> None:
    with FakeBroker() as other:
        broker.handlers[Type.LOOKUP] = looked_up("Redirect", broker_service_url=other.url, authoritative=True)
        with client.producer("t"):
            pass
        assert [command.lookup_topic.authoritative for command in other.commands(Type.LOOKUP)] == [True]
        assert len(other.commands(Type.PRODUCER)) == 1
        assert broker.commands(Type.PRODUCER) == []


def test_an_endless_redirect_ends(broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("eos.backoff.time", clock)
    broker.handlers[Type.LOOKUP] = looked_up("Redirect", broker_service_url=broker.url)
    with pytest.raises(Unanswered, match="redirect without end"):
        client.producer("t")
    assert 28 < clock.passed <= 30


def test_a_broker_behind_a_proxy_is_reached_through_the_service_url(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.LOOKUP] = looked_up(
        "Connect", broker_service_url="pulsar://hidden:6650", proxy_through_service_url=True
    )
    with client.producer("t"):
        pass
    assert [c.connect.proxy_to_broker_url for c in broker.commands(Type.CONNECT)] == ["", "hidden:6650"]


def test_not_ready_is_asked_again_and_anything_else_is_not(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.LOOKUP] = first_then_well(refusing(ServerError.ServiceNotReady))
    broker.handlers[Type.PRODUCER] = refusing(ServerError.ProducerBusy, "existing exclusive producer")
    with pytest.raises(Refused, match="ProducerBusy"):
        client.producer("t", access="exclusive")
    assert len(broker.commands(Type.LOOKUP)) == 2
    assert len(broker.commands(Type.PRODUCER)) == 1


def test_not_ready_for_ever_is_unanswered_with_the_last_problem(
    broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr("eos.backoff.time", clock)
    broker.handlers[Type.LOOKUP] = refusing(ServerError.ServiceNotReady, "unloading")
    with pytest.raises(Unanswered, match=r"within 30 s. .*ServiceNotReady: unloading"):
        client.producer("t")
    assert 28 < clock.passed <= 30


def test_a_moved_epoch_is_fenced(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.PRODUCER] = refusing(ServerError.ProducerFenced, "Topic epoch has already moved.")
    with pytest.raises(Fenced):
        client.producer("t", access="exclusive-with-fencing", topic_epoch=1)


def test_ensure_topic_creates_only_what_is_missing(broker: FakeBroker, client: Client) -> None:
    client.ensure_topic("t")
    assert broker.commands(Type.PRODUCER) == []
    broker.handlers[Type.PARTITIONED_METADATA] = refusing(ServerError.TopicNotFound)
    client.ensure_topic("t")
    assert len(broker.commands(Type.CLOSE_PRODUCER)) == 1
    broker.handlers[Type.PRODUCER] = refusing(ServerError.TopicNotFound, "auto creation is off")
    with pytest.raises(TopicMissing, match=r"does not create it .* pulsar-admin topics create persistent"):
        client.ensure_topic("t")


@pytest.mark.parametrize("refusal", [ServerError.NotAllowedError, ServerError.TopicNotFound])
def test_a_topic_named_like_a_partition_that_no_broker_creates_needs_another_name(
    broker: FakeBroker, client: Client, refusal: ServerError
) -> None:
    """`pulsar-admin topics create` refuses it too."""
    broker.handlers[Type.PARTITIONED_METADATA] = refusing(ServerError.TopicNotFound)
    client.ensure_topic("t-partition-0")  # a broker 4.0 takes it
    broker.handlers[Type.PRODUCER] = refusing(refusal, "Partition metadata not found for the partitioned topic")
    with pytest.raises(TopicMissing, match="that of a partition of another topic") as told:
        client.ensure_topic("t-partition-0")
    assert "topics create" not in str(told.value)


def test_ensure_topic_refuses_partitions(broker: FakeBroker, client: Client) -> None:
    def two(session: Session, frame: Frame) -> None:
        frame.command.partition_metadata.topic = "transaction_coordinator"
        answer_well(session, frame)

    broker.handlers[Type.PARTITIONED_METADATA] = two
    with pytest.raises(InvalidInput, match=r"has 2 partitions. It must have none"):
        client.ensure_topic("t")


# ---- processes


def test_one_client_for_each_process_and_cluster(broker: FakeBroker) -> None:
    cluster = Cluster(broker.url)
    assert Client.shared(cluster) is Client.shared(Cluster(broker.url))
    assert Client.shared(cluster) is not Client.shared(Cluster(broker.url, request_timeout_s=1))
    Client.shared(cluster).close()


def test_a_pickled_client_arrives_as_the_one_of_its_process_and_cluster(broker: FakeBroker) -> None:
    with broker.client() as client:
        client.partitions("t")
        arrived = pickle.loads(pickle.dumps(client))
        assert arrived is Client.shared(client.cluster)
        assert arrived is not client
        assert arrived.partitions("t") == 0
        arrived.close()


def test_a_forked_child_connects_anew_and_leaves_its_parents_connections_alone(broker: FakeBroker) -> None:
    client = broker.client()
    shared = Client.shared(client.cluster)
    producer = client.producer("t")
    shared.partitions("t")
    before = len(broker.sessions)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            worked = client.partitions("t") == 0 and Client.shared(client.cluster) is not shared
            code = 0 if worked and Client.shared(client.cluster).partitions("t") == 0 else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(broker.sessions) == before + 2
    producer.close()
    assert shared.partitions("t") == 0
    assert len(broker.sessions) == before + 2
    client.close()
    shared.close()


def test_a_connection_can_be_closed_while_a_request_waits(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.PARTITIONED_METADATA] = silent
    problems: list[BaseException] = []

    def ask() -> None:
        try:
            client.partitions("t")
        except ConnectionLost as error:
            problems.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    until(lambda: bool(broker.commands(Type.PARTITIONED_METADATA)))
    client.close()
    asking.join(PATIENCE_S)
    assert "closed by this side" in str(problems[0])


def test_an_interrupt_while_sending_ends_the_connection(broker: FakeBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Connection(Address("127.0.0.1", broker.port), broker.client().cluster)

    def interrupted(buffers: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(connection._transport, "send", interrupted)
    with pytest.raises(KeyboardInterrupt):
        connection.send([b"half a frame"])
    assert not connection.alive
