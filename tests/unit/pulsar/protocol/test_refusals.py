"""The meaning of the broker's error codes."""

from __future__ import annotations

import pickle

import pytest

from eos.errors import InvalidInput, NetworkError, Refused, RefusedForGood
from eos.pulsar.protocol.refusals import MEANINGS, refused
from eos.pulsar.wire.pulsar_pb2 import ServerError


def test_each_code_of_the_protocol_has_a_meaning() -> None:
    assert set(MEANINGS) == set(ServerError.keys())


@pytest.mark.parametrize("code", sorted(code for code, meaning in MEANINGS.items() if not meaning.passes))
def test_what_cannot_pass_is_invalid_input_and_says_so_after_a_journey_through_pickle(code: str) -> None:
    problem = pickle.loads(pickle.dumps(refused("open", code, "words")))
    assert isinstance(problem, RefusedForGood)
    assert isinstance(problem, InvalidInput)
    assert isinstance(problem, NetworkError)
    advice = MEANINGS[code].advice
    assert str(problem) == f"open: the broker answered {code}: words" + (f". {advice}" if advice else "")


@pytest.mark.parametrize("code", ["PersistenceError", "ServiceNotReady", "TransactionNotFound", "ServerError 99"])
def test_what_can_pass_is_no_invalid_input(code: str) -> None:
    assert type(refused("open", code, "words")) is Refused


def test_a_schema_that_is_demanded_is_explained() -> None:
    assert "set-schema-validation-enforce --disable" in str(refused("open", "IncompatibleSchema", "words"))


def test_a_send_into_a_transaction_that_was_ended_is_not_the_callers_mistake() -> None:
    """Its ttl or a successor has ended it: the batch is written again, or its driver is fenced."""
    detail = "Transaction [(3,20)] has been ended. Please use a new transaction to send message."
    assert not isinstance(refused("send frame 1 to t", "NotAllowedError", detail), RefusedForGood)
    assert isinstance(refused("send frame 1 to t", "NotAllowedError", "not allowed"), RefusedForGood)
