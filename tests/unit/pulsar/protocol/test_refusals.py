"""The meaning of the broker's error codes."""

from __future__ import annotations

import pickle

import pytest

from eos.errors import (
    AuthorizationUnknown,
    EncryptionRequired,
    FrameTooLarge,
    LimitReached,
    RateLimited,
    Refused,
    RefusedForGood,
)
from eos.pulsar.protocol.refusals import ANSWERS, Answer, advice_for, refused
from eos.pulsar.wire.pulsar_pb2 import ServerError


def test_each_code_of_the_protocol_has_one_row_without_words_and_it_is_the_last_of_that_code() -> None:
    assert sorted(row.code for row in ANSWERS if not row.words) == sorted(ServerError.keys())
    of_protocol = {row.code: row.words for row in ANSWERS if not row.code.isdecimal()}  # an HTTP status is
    assert list(of_protocol.values()) == [""] * len(ServerError.keys())


@pytest.mark.parametrize("row", ANSWERS, ids=lambda row: f"{row.code} {row.words}")
def test_each_row_is_found_by_its_code_and_words_and_survives_pickle(row: Answer) -> None:
    problem = pickle.loads(pickle.dumps(refused("open", row.code, f"so {row.words} it is")))
    assert type(problem) is row.kind
    told = f"open: the broker answered {row.code}: so {row.words} it is"
    assert str(problem) == told + (f". {row.advice}" if row.advice else "")


def test_what_does_not_pass_by_itself_says_what_to_do() -> None:
    """But what a sink turns into words of its own: smaller frames pass."""
    lasting = [row for row in ANSWERS if issubclass(row.kind, (RefusedForGood, LimitReached))]
    assert [row.code for row in lasting if not row.advice] == []


@pytest.mark.parametrize("code", ["PersistenceError", "UnknownError"])
def test_too_few_bookies_can_pass_by_themselves_and_are_told_with_the_way_out(code: str) -> None:
    problem = refused("subscribe", code, "Not enough non-faulty bookies available error code: -6")
    assert type(problem) is Refused
    assert "set-persistence NAMESPACE" in str(problem)


@pytest.mark.parametrize("code", ["PersistenceError", "ServiceNotReady", "TransactionNotFound", "ServerError 99"])
def test_what_can_pass_is_no_invalid_input(code: str) -> None:
    assert type(refused("open", code, "words")) is Refused


def test_a_schema_that_is_demanded_is_explained() -> None:
    assert "set-schema-validation-enforce --disable" in str(refused("open", "IncompatibleSchema", "words"))


def test_a_topic_that_another_client_has_to_itself_can_be_free_again_and_says_how() -> None:
    problem = refused("open a producer", "ProducerBusy", "Topic has an existing exclusive producer: theirs-0-57")
    assert type(problem) is Refused
    assert "Close it, or write to another topic" in str(problem)


def test_a_terminated_topic_is_told_to_hold_transactions_until_it_is_deleted() -> None:
    assert "can't end until it is deleted" in str(refused("open", "TopicTerminatedError", "words"))


def test_a_limit_of_consumers_can_pass_and_is_told_with_the_way_to_raise_it() -> None:
    problem = refused("subscribe", "ConsumerBusy", "Topic reached max consumers limit")
    assert type(problem) is LimitReached
    assert "set-max-consumers-per-topic NAMESPACE" in str(problem)
    assert "max-consumers" not in str(refused("subscribe", "ConsumerBusy", "Exclusive consumer is already connected"))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("ConsumerBusy", "Subscription reached max consumers limit"),
        ("NotAllowedError", "Exceed the maximum number of subscriptions of the topic: t"),
    ],
)
def test_other_limits_that_clients_may_leave_room_in(code: str, words: str) -> None:
    assert type(refused("subscribe", code, words)) is LimitReached


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("NotAllowedError", "Subscribe limited by subscribe rate limit per consumer."),
        ("TooManyRequests", "Failed due to too many pending lookup requests"),
    ],
)
def test_a_rate_passes_by_itself(code: str, words: str) -> None:
    assert type(refused("subscribe", code, words)) is RateLimited


PREFIX = (
    "org.apache.pulsar.broker.PulsarServerException: Failed to create consumer - The subscription name needs to be "
    "prefixed by the authentication role, like me-xxxx for topic: persistent://public/default/t"
)
BY_CLIENT = (
    'org.apache.pulsar.client.api.PulsarClientException$AuthorizationException: {"errorMsg":"%s","reqId":7, "x":1}'
)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        # ServerCnx of 4.2.4: what it says where it knows, and where it could not find out.
        ("Client is not authorized to Lookup", RefusedForGood),
        ("Client is not authorized to Get Partition Metadata", RefusedForGood),
        ("Client is not authorized to Produce", RefusedForGood),
        ("Client is not authorized to subscribe", RefusedForGood),
        ("Client is not authorized to GetTopicsOfNamespace", RefusedForGood),
        (PREFIX, RefusedForGood),
        ("Invalid roles.", RefusedForGood),
        ("", RefusedForGood),
        ("Exception occurred while trying to authorize lookup", AuthorizationUnknown),
        ("Exception occurred while trying to authorize get Partition Metadata", AuthorizationUnknown),
        ("Exception occured while trying to authorize GetTopicsOfNamespace", AuthorizationUnknown),
        (
            "org.apache.pulsar.metadata.api.MetadataStoreException: java.util.concurrent.TimeoutException",
            AuthorizationUnknown,
        ),
        # What a proxy passes on has the words of its own client around it.
        (BY_CLIENT % "Client is not authorized to Lookup", RefusedForGood),
        (BY_CLIENT % "Invalid roles.", RefusedForGood),
        (BY_CLIENT % "Exception occurred while trying to authorize lookup", AuthorizationUnknown),
    ],
)
def test_a_check_of_rights_that_failed_in_the_broker_is_no_missing_right(words: str, kind: type[Refused]) -> None:
    assert type(refused("open", "AuthorizationError", words)) is kind


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


def test_a_sink_with_a_log_in_a_namespace_that_demands_encryption_is_told_how_to_move_it() -> None:
    """The option alone is refused where the checkpoint has a log already."""
    told = str(refused("open a producer", "MetadataError", "Encryption is required in persistent://a/b/__eos-t"))
    assert "If the sink has a log already, lift the policy until the log has moved." in told
    assert "delete eos-sink.json from its checkpoint" in told


@pytest.mark.parametrize("row", [row for row in ANSWERS if row.words and row.words != "Exception"])
def test_words_alone_are_explained_also_among_those_of_an_exception(row: Answer) -> None:
    """As the admin API of a broker passes them on."""
    java = "Topic creation encountered an exception error_message=org.apache.pulsar.PulsarServerException: "
    assert advice_for(f"{java}java.io.IOException: {row.words} 'filesystem'") == row.advice
    assert advice_for(f"{java}java.lang.NullPointerException") == "", "an exception alone tells no cause"


@pytest.mark.parametrize("words", ["Topic is fenced", "Topic is fenced."])
def test_the_advice_follows_one_full_stop_whether_or_not_the_broker_wrote_one(words: str) -> None:
    assert (
        str(Refused("open", "TopicFenced", words, "Wait"))
        == "open: the broker answered TopicFenced: Topic is fenced. Wait"
    )
