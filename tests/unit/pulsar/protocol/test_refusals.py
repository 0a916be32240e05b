"""The meaning of the broker's error codes."""

from __future__ import annotations

import pickle

import pytest

from eos.errors import EncryptionRequired, FrameTooLarge, InvalidInput, NetworkError, Refused, RefusedForGood
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


def test_a_terminated_topic_is_told_to_hold_transactions_until_it_is_deleted() -> None:
    assert "goes on once it is deleted" in str(refused("open", "TopicTerminatedError", "words"))


def test_a_limit_of_consumers_can_pass_and_is_told_with_the_way_to_raise_it() -> None:
    problem = refused("subscribe", "ConsumerBusy", "Topic reached max consumers limit")
    assert type(problem) is Refused
    assert "set-max-consumers-per-topic NAMESPACE" in str(problem)
    assert "max-consumers" not in str(refused("subscribe", "ConsumerBusy", "Exclusive consumer is already connected"))


def test_encryption_that_is_demanded_is_explained() -> None:
    assert "A sink encrypts rows by its encryption_keys" in str(
        refused("open", "MetadataError", "Encryption is required in t")
    )


ENDED = "Transaction [(3,20)] has been ended. Please use a new transaction to send message."
TOO_LARGE = "Exceed maximum message size"


@pytest.mark.parametrize(
    ("code", "detail", "kind"),
    [
        ("NotAllowedError", ENDED, Refused),
        ("NotAllowedError", TOO_LARGE, FrameTooLarge),
        ("NotAllowedError", "not allowed", RefusedForGood),
        ("TopicTerminatedError", ENDED, RefusedForGood),
        ("PersistenceError", TOO_LARGE, Refused),
        ("MetadataError", "Encryption is required in persistent://a/b/t", EncryptionRequired),
        ("MetadataError", "words", Refused),
    ],
)
def test_words_tell_more_than_their_code_and_under_that_code_only(code: str, detail: str, kind: type[Refused]) -> None:
    """A transaction that was ended: the batch is written again, or its driver is fenced. See tests/contract."""
    assert type(refused("send frame 1 to t", code, detail)) is kind
