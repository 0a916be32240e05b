"""What a broker's error code means for the one who asked: can it pass with time, and what helps?

The codes are those of `ServerError` in PulsarApi.proto. Which exception of the broker becomes which code is told by
BrokerServiceException.getClientErrorCode; a code that stands for many exceptions is taken for one that can pass.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from eos.errors import EncryptionRequired, FrameTooLarge, Refused, RefusedForGood


class Meaning(NamedTuple):
    """What a code means.

    Attributes:
        passes: the same request can be granted later, though the caller changes nothing.
        advice: what the caller can do, as sentences; "" where the broker's words are all that is known.
    """

    passes: bool
    advice: str = ""


_QUOTA = (
    "A backlog quota of the topic is used up by a subscription that lags behind. Let its consumers catch up, delete "
    "it, or lift the quota: pulsar-admin topicPolicies set-backlog-quota --type TYPE --limit=-1 --limitTime=-1 "
    "--policy producer_request_hold TOPIC (TYPE: message_age or destination_storage)"
)

_GRANT = "pulsar-admin topics grant-permission TOPIC --role ROLE --actions"

MEANINGS: Mapping[str, Meaning] = {
    "UnknownError": Meaning(passes=True),
    "MetadataError": Meaning(passes=True),
    "PersistenceError": Meaning(passes=True),
    "AuthenticationError": Meaning(
        passes=False,
        advice="The broker does not accept the credentials, or there are none. Check the options token, basic or "
        "oauth2, or tls_certificate and tls_key",
    ),
    "AuthorizationError": Meaning(
        passes=False,
        advice=f"The role lacks a permission: {_GRANT} produce,consume",
    ),
    "ConsumerBusy": Meaning(passes=True),
    "ServiceNotReady": Meaning(passes=True),
    "ProducerBlockedQuotaExceededError": Meaning(passes=True, advice=_QUOTA),
    "ProducerBlockedQuotaExceededException": Meaning(passes=True, advice=_QUOTA),
    "ChecksumError": Meaning(passes=True),
    "UnsupportedVersionError": Meaning(passes=False, advice="Use a newer broker"),
    "TopicNotFound": Meaning(passes=False),
    "SubscriptionNotFound": Meaning(passes=False),
    "ConsumerNotFound": Meaning(passes=True),
    "TooManyRequests": Meaning(passes=True),
    "TopicTerminatedError": Meaning(
        passes=False,
        advice="The topic was terminated: nothing can be written to it any more. Use another topic. No transaction "
        "that has the terminated one can end while it is there: a sink that writes exactly once goes on once it is "
        "deleted, with the rows that it holds",
    ),
    "ProducerBusy": Meaning(passes=True),
    "InvalidTopicName": Meaning(passes=False, advice="Correct the name of the topic"),
    "IncompatibleSchema": Meaning(
        passes=False,
        advice="Where none was declared, the topic's namespace demands one: pulsar-admin namespaces "
        "set-schema-validation-enforce --disable NAMESPACE lifts that. Where one was, the topic takes none such by its "
        "compatibility strategy: pulsar-admin namespaces get-schema-compatibility-strategy NAMESPACE shows it",
    ),
    "ConsumerAssignError": Meaning(passes=True),
    "TransactionCoordinatorNotFound": Meaning(passes=True),
    "InvalidTxnStatus": Meaning(passes=True),
    "NotAllowedError": Meaning(passes=False),
    "TransactionConflict": Meaning(passes=True),
    "TransactionNotFound": Meaning(passes=True),
    "ProducerFenced": Meaning(passes=True),
}
"""{code: its meaning}. A code passes also where it takes another transaction: a finished one never opens again."""

TELLING: Mapping[tuple[str, str], type[Refused]] = {
    # A send into a transaction that its ttl or a successor has ended: another transaction can pass.
    ("NotAllowedError", "has been ended"): Refused,
    ("NotAllowedError", "Exceed maximum message size"): FrameTooLarge,
    ("MetadataError", "Encryption is required"): EncryptionRequired,
}
"""{(code, words): the error}, where words of the broker (4.2.4) tell more than their code."""

ADVICE: Mapping[tuple[str, str], str] = {
    (
        "MetadataError",
        "Encryption is required",
    ): "The namespace takes encrypted messages alone (pulsar-admin namespaces "
    "set-encryption-required). A sink encrypts rows by its encryption_keys, and never its control topic, which must be "
    "in another namespace: control_namespace",
    (
        "ProducerBusy",
        "max producers limit",
    ): "The topic's policy allows no more producers at a time, and each task that writes to a partition opens one. "
    "Allow more, pulsar-admin namespaces set-max-producers-per-topic NAMESPACE --max-producers-per-topic N, or write "
    "by fewer tasks, df.coalesce(N)",
    (
        "ConsumerBusy",
        "Topic reached max consumers limit",
    ): "The topic's policy allows no more consumers at a time, and each reader is one; of its control topic a sink "
    "needs two. Allow more: pulsar-admin namespaces set-max-consumers-per-topic NAMESPACE --max-consumers-per-topic N",
    (
        "NotAllowedError",
        "maximum number of subscriptions",
    ): "Allow the topic one more: pulsar-admin namespaces set-max-subscriptions-per-topic NAMESPACE "
    "--max-subscriptions-per-topic N",
    (
        "NotAllowedError",
        "sub type",
    ): "The namespace or the topic allows only some types of subscriptions, and readers, sinks "
    "and queries need Exclusive. Allow it: pulsar-admin namespaces "
    "set-subscription-types-enabled --types Exclusive,Failover,… NAMESPACE",
    (
        "AuthorizationError",
        "prefixed by the authentication role",
    ): "The namespace demands that names of subscriptions begin with the role (subscription-auth-mode Prefix). Give "
    "the role by subscription_prefix of the sink, subscriptionPrefix of the source, and --subscription-prefix of the "
    "commands; the name of a stream's subscription begins with it too",
    ("AuthorizationError", "to Produce"): f"The role lacks the permission to produce: {_GRANT} produce",
    ("AuthorizationError", "to subscribe"): f"The role lacks the permission to consume: {_GRANT} consume",
    (
        "AuthorizationError",
        "to GetTopicsOfNamespace",
    ): "The role lacks a permission on the whole namespace: pulsar-admin namespaces "
    "grant-permission NAMESPACE --role ROLE --actions consume",
}
"""{(code, words): what helps}, where words of the broker (4.2.4) tell more than their code."""


_RELAYED = re.compile(r'\{"errorMsg":"(?P<words>.*)","reqId":\d+.*\}', re.DOTALL)
"""How a Java client words a refusal (ClientCnx), which Pulsar Proxy passes on as its own."""

_VAGUE = ("ServiceNotReady", "UnknownError")
"""Codes by which Pulsar Proxy passes on a refusal of any other code (4.0.6; LookupProxyHandler.getServerError)."""

_CODES_OF_WORDS: Mapping[str, str] = {
    "Namespace not found": "TopicNotFound",
    "Topic not found": "TopicNotFound",
    "Invalid topic name": "InvalidTopicName",
    "topic names (with cluster component)": "InvalidTopicName",
}
"""{words of the broker (4.2.4): the code that they came with}, for what a proxy has passed on by a vague one."""


def relayed(detail: str) -> str | None:
    """Return the broker's words where a proxy has passed them on, None for words that come from a broker itself."""
    match = _RELAYED.search(detail)
    return None if match is None else match["words"]


def told_by_proxy(problem: Refused) -> bool:
    """Tell whether the code is a proxy's, and says nothing: the broker behind it may have refused by any."""
    return problem.code in _VAGUE and relayed(problem.detail) is not None


def refused(asked: str, code: str, detail: str) -> Refused:
    """Return the error for a refusal, as `TELLING` says, else as `MEANINGS` does. Args: as of `Refused`.

    RefusedForGood: no later try can be granted. FrameTooLarge: smaller frames can.
    """
    words = relayed(detail) if code in _VAGUE else None
    if words is not None:
        code = next((known for part, known in _CODES_OF_WORDS.items() if part in words), code)
    meaning = MEANINGS.get(code, Meaning(passes=True))
    told = (kind for (of, words), kind in TELLING.items() if of == code and words in detail)
    kind = next(told, Refused if meaning.passes else RefusedForGood)
    advice = (helps for (of, words), helps in ADVICE.items() if of == code and words in detail)
    return kind(asked, code, detail, next(advice, meaning.advice))
