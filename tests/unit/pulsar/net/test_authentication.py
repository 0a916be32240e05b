"""Where tokens come from: texts, files and functions; what is refused of them, and that errors show no secret."""

from __future__ import annotations

import logging
import os
import pickle
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from eos.config import Cluster, Credentials, Provider
from eos.credentials import SecretUnreadable
from eos.errors import BadCredentials, ConnectionLost, InvalidInput, NetworkError, NoCredentials, Refused
from eos.local.access import signed
from eos.pulsar.net.authentication import _MOST_FUNCTIONS, _functions, auth_data, expiry, provider, secret
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.frames import Frame
from eos.pulsar.wire.pulsar_pb2 import BaseCommand, CommandError, ServerError
from tests.unit.pulsar.net.fake_broker import FakeBroker, Session, refusing
from tests.unit.pulsar.net.test_client import challenge
from tests.waiting import PATIENCE_S, until

SECRET = "s3cr3t"


def given(function: Callable[[], object]) -> Credentials:
    """Credentials of a function, such as no pickle has to hold: each is one of its own."""
    return Credentials("token", provider("vault.token", os.urandom(8), function))


def test_of_the_functions_of_many_sinks_those_are_kept_that_are_used() -> None:
    """A sink for each batch may bring a function of its own, with all that it holds."""
    used = given(lambda: "used")
    for _ in range(3 * _MOST_FUNCTIONS):
        given(lambda: "never used")
        assert secret(used, PATIENCE_S) == "used"
    assert len(_functions) == _MOST_FUNCTIONS


def test_a_function_is_asked_each_time() -> None:
    tokens = iter(["one", " two\n"])
    credentials = given(lambda: next(tokens))
    assert [auth_data(credentials, PATIENCE_S) for _ in range(2)] == [b"one", b"two"]


def from_a_module() -> str:
    return "of-a-module"


def test_another_process_calls_what_was_pickled() -> None:
    arrived = Provider("test.from_a_module", pickle.dumps(from_a_module))
    assert secret(Credentials("token", arrived), PATIENCE_S) == "of-a-module"


def test_what_can_not_be_loaded_there_is_said() -> None:
    gone = Provider("gone.token", b"cgone_module\ntoken\n.")
    with pytest.raises(NoCredentials, match=r"function gone\.token gave no token. It raised ModuleNotFoundError"):
        secret(Credentials("token", gone), PATIENCE_S)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "returned NoneType. It must return a token"),
        (SECRET.encode(), "returned bytes. It must return a token"),
        ("", "gave an empty text in place of a token"),
        (" \n", "gave an empty text in place of a token"),
        (f"a\n{SECRET}", "gave no token. The text has characters that are not visible ASCII"),
        (f"Bearer {SECRET}", "gave no token. The text has characters that are not visible ASCII"),
        (f"{SECRET}é", "gave no token. The text has characters that are not visible ASCII"),
    ],
)
def test_an_answer_that_is_no_token_is_refused_for_good(answer: object, words: str) -> None:
    with pytest.raises(BadCredentials, match=rf"^the function vault\.token {words}") as told:
        secret(given(lambda: answer), PATIENCE_S)
    assert isinstance(told.value, InvalidInput)
    assert SECRET not in str(told.value)


def test_an_empty_option_an_empty_file_and_a_user_alone_are_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    with pytest.raises(BadCredentials, match="the option basic gave an empty text in place of a user and password"):
        secret(Credentials("basic", ""), PATIENCE_S)
    with pytest.raises(BadCredentials, match=r"the option basic has no colon. It must be user:password"):
        secret(Credentials("basic", "s3cret"), PATIENCE_S)
    with pytest.raises(BadCredentials, match=f"file:{empty} gave an empty text in place of a token"):
        secret(Credentials("token", f"file:{empty}"), PATIENCE_S)


def test_a_file_that_is_no_text_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(SECRET.encode() + b"\xff")
    with pytest.raises(NoCredentials, match="it is not UTF-8") as told:
        secret(Credentials("token", f"file://{file}"), PATIENCE_S)
    known = told.value.__context__
    assert isinstance(known, SecretUnreadable)
    assert known.__context__ is None, "the text of what it came from shows the bytes"


def test_what_a_function_raises_is_named_without_its_words() -> None:
    def token() -> str:
        raise KeyError(f"https://user:{SECRET}@vault")

    with pytest.raises(NoCredentials, match=r"vault\.token .*KeyError \(test_authentication\.py, line \d+\)") as told:
        secret(given(token), PATIENCE_S)
    error: BaseException | None = told.value
    while error is not None:
        assert SECRET not in str(error)
        error = error.__cause__ or error.__context__
    assert not isinstance(told.value, InvalidInput), "it may pass"


def test_a_function_that_ends_the_program_ends_only_its_answer() -> None:
    def token() -> str:
        raise SystemExit(SECRET)

    with pytest.raises(NoCredentials, match="SystemExit"):
        secret(given(token), PATIENCE_S)


def test_a_function_that_hangs_is_named_and_not_started_again_meanwhile() -> None:
    calls: list[int] = []
    go_on = threading.Event()

    def token() -> str:
        calls.append(1)
        go_on.wait(PATIENCE_S)
        return f"token-{len(calls)}"

    credentials = given(token)
    for _ in range(3):
        with pytest.raises(NoCredentials, match=r"vault\.token gave no token within 0\.01 s \(request_timeout_s\)"):
            secret(credentials, 0.01)
    until(lambda: calls, "its thread has not begun")
    assert len(calls) == 1
    go_on.set()
    until(lambda: secret(credentials, PATIENCE_S) != "token-1")
    assert secret(credentials, PATIENCE_S) == f"token-{len(calls)}"


def test_secrets_are_in_no_repr() -> None:
    for credentials in (Credentials("token", SECRET), Credentials("token", Provider("f", SECRET.encode()))):
        cluster = Cluster("pulsar://h", credentials)
        assert SECRET not in f"{credentials!r} {credentials} {cluster!r} {cluster}"
    assert SECRET not in repr(Provider("f", SECRET.encode()))


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"sub": "etl", "exp": 1_700_000_000}, " (the token expired at 2023-11-14 22:13:20 UTC)"),
        ({"sub": "etl", "exp": 7_000_000_000}, ""),
        ({"sub": "etl"}, ""),
        ({"sub": "etl", "exp": "soon"}, ""),
        ({"sub": "etl", "exp": 10**30}, ""),
    ],
)
def test_a_token_tells_when_it_expired(claims: dict[str, str | int], words: str) -> None:
    assert expiry(signed(claims, b"key").encode()) == words


@pytest.mark.parametrize("shown", [b"", b"user:password", b"a.b.c", b"a.\xff.c", b"a.bnVsbA.c"])
def test_what_is_no_token_tells_nothing(shown: bytes) -> None:
    assert expiry(shown) == ""


# ---- on a connection


def test_a_refusal_that_repeats_the_token_is_told_without_it(broker: FakeBroker) -> None:
    broker.handlers[Type.CONNECT] = refusing(ServerError.AuthenticationError, f"no token: {SECRET}!")
    with broker.client(credentials=Credentials("token", SECRET)) as client, pytest.raises(Refused) as told:
        client.partitions("t")
    assert "AuthenticationError: no token: …!. The broker" in str(told.value)
    with broker.client() as client, pytest.raises(Refused, match=f"no token: {SECRET}!"):
        client.partitions("t")


def test_the_last_words_of_a_connection_do_not_repeat_the_token(broker: FakeBroker) -> None:
    def last_words(session: Session, _: Frame) -> None:
        error = CommandError(
            request_id=2**64 - 1, error=ServerError.AuthenticationError, message=f"{SECRET} is expired"
        )
        session.send(BaseCommand(type=Type.ERROR, error=error))
        session.cut()

    broker.handlers[Type.PARTITIONED_METADATA] = last_words
    with broker.client(credentials=Credentials("token", SECRET)) as client, pytest.raises(ConnectionLost) as told:
        client.partitions("t")
    assert "closed by the broker: … is expired" in str(told.value)


def test_blanks_around_are_of_a_password_and_not_of_a_token(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("u:p \n")
    assert secret(Credentials("basic", "u:p "), PATIENCE_S) == "u:p "
    assert secret(Credentials("basic", f"file:{file}"), PATIENCE_S) == "u:p"
    assert secret(Credentials("token", "t\n"), PATIENCE_S) == "t"


def test_a_refusal_says_that_the_token_expired(broker: FakeBroker) -> None:
    broker.handlers[Type.CONNECT] = refusing(ServerError.AuthenticationError, "Failed to authenticate")
    expired = signed({"exp": 1_700_000_000}, b"key")
    with broker.client(credentials=Credentials("token", expired)) as client, pytest.raises(Refused) as told:
        client.partitions("t")
    assert "Failed to authenticate (the token expired at 2023-11-14 22:13:20 UTC). The broker" in str(told.value)
    assert expired.rpartition(".")[2] not in str(told.value)


def test_a_hanging_function_does_not_stop_a_connection_from_reading(
    broker: FakeBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "eos.connection")
    asked, go_on = threading.Event(), threading.Event()
    tokens = iter(["first", "second"])

    def token() -> str:
        if (one := next(tokens)) == "second":
            asked.set()
            go_on.wait(PATIENCE_S)
        return one

    answered = threading.Event()
    broker.handlers[Type.AUTH_RESPONSE] = lambda session, _: answered.set()
    with broker.client(credentials=given(token)) as client:
        client.partitions("t")
        challenge(broker.sessions[0])
        assert asked.wait(PATIENCE_S)
        assert client.partitions("u") == 0, "answers are read meanwhile"
        assert not answered.is_set()
        go_on.set()
        assert answered.wait(PATIENCE_S)
    (response,) = broker.commands(Type.AUTH_RESPONSE)
    assert response.auth_response.response.auth_data == b"second"
    assert len(broker.commands(Type.CONNECT)) == 1
    said = f"{broker.url} asked for fresh credentials, and they were sent to it"
    until(lambda: [one for one in caplog.messages if broker.url in one] == [said])


def test_a_challenge_without_a_fresh_token_ends_the_connection_and_says_why(broker: FakeBroker) -> None:
    tokens = iter(["first"])
    with broker.client(credentials=given(lambda: next(tokens))) as client:
        client.partitions("t")
        connection = client._pool.service()
        challenge(broker.sessions[0])
        until(lambda: not connection.alive)
        with pytest.raises(ConnectionLost, match=r"asked for fresh credentials.*vault\.token.*StopIteration"):
            connection.tell(broker.commands(Type.PARTITIONED_METADATA)[0])


def test_no_credentials_count_as_no_fault_of_a_host(broker: FakeBroker) -> None:
    calls: list[int] = []

    def token() -> str:
        calls.append(1)
        raise OSError

    hosts = broker.url.removeprefix("pulsar://")
    cluster = Cluster(f"pulsar://{hosts},{hosts}", given(token))
    with Client(cluster) as client, pytest.raises(NoCredentials, match=r"^the function") as told:
        client.partitions("t")
    assert isinstance(told.value, NetworkError)
    assert len(calls) == 1


def test_a_bad_answer_in_mid_run_is_not_tried_again(broker: FakeBroker) -> None:
    tokens = iter(["first", "", "never asked for"])
    with broker.client(credentials=given(lambda: next(tokens))) as client:
        client.partitions("t")
        broker.cut_all()
        until(lambda: not client._pool._connections or not all(c.alive for c in client._pool._connections.values()))
        with pytest.raises(BadCredentials, match="empty"):
            client.partitions("t")
    assert next(tokens) == "never asked for"
