"""What a broker's answer means for the one who asked: can it pass, who must change something, and what helps?

The codes are those of `ServerError` in PulsarApi.proto, and HTTP statuses of the admin API.
BrokerServiceException.getClientErrorCode says which exception of the broker becomes which code. A code that stands for
many exceptions is taken for one that can pass.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from eos.errors import (
    AuthorizationUnknown,
    EncryptionRequired,
    FrameTooLarge,
    LimitReached,
    RateLimited,
    Refused,
    RefusedForGood,
)

NO_TOPIC_POLICIES: Final = "Topic level policies is disabled"
"""A broker's words, with the HTTP status 405, where it has topicLevelPoliciesEnabled=false."""


class Answer(NamedTuple):
    """A row of the table of answers.

    Attributes:
        code: the broker's.
        words: what the broker's words contain, where they tell more than the code; "" for the code alone.
        kind: the error that the answer becomes. Refused: the same request can be granted later, though nobody changes
            anything. RateLimited: within the period of a rate. AuthorizationUnknown: once the broker can look rights up
            again. LimitReached: once somebody has made room, or has changed a policy; tries go on meanwhile.
            RefusedForGood: never, until the caller changes something.
        advice: what helps, as sentences without the last full stop; "" where the broker's words are all that is known.
    """

    code: str
    words: str = ""
    kind: type[Refused] = Refused
    advice: str = ""


_QUOTA = (
    "A backlog quota of the topic is used up by a subscription that lags. Let its consumers catch up, delete "
    "it, or lift the quota: pulsar-admin topicPolicies set-backlog-quota --type TYPE --limit=-1 --limitTime=-1 "
    "--policy producer_request_hold TOPIC (TYPE: message_age or destination_storage)"
)

_GRANT = "pulsar-admin topics grant-permission TOPIC --role ROLE --actions"
_ANY_GRANT = f"The role lacks a permission: {_GRANT} produce,consume"

_ANY_EXCEPTION = "Exception"  # in Java's words for any fault: it names a cause only under the code of its row
_RIGHT_UNKNOWN = (
    "The broker could not find out whether the role has the permission. Look at the broker's log, and whether its "
    "metadata store answers"
)

_NO_SNAPSHOTS = (
    "The broker cannot recover a topic of the transaction, since it cannot read __transaction_buffer_snapshot of the "
    "topic's namespace. If the namespace refuses Exclusive subscriptions, allow them: pulsar-admin namespaces "
    "set-subscription-types-enabled --types Exclusive,Failover,… NAMESPACE. Otherwise the broker's log says why"
)
"""While it ends a transaction (TableView.getReader)."""

_BOOKIES = (
    "The topic's persistence policy asks for more bookies than are available now. Start bookies, or ask for fewer with "
    "pulsar-admin namespaces set-persistence NAMESPACE --bookkeeper-ensemble N --bookkeeper-write-quorum N "
    "--bookkeeper-ack-quorum N"
)

_NO_CREATION = "The role may not create topics or partitions. An administrator of the tenant may"

_REPLICATED = (
    "No topic can be deleted that a cluster replicates to another, in either of them. Take it out of the replication "
    "in each first, by the name of the cluster that is asked, with pulsar-admin topics set-replication-clusters "
    "--clusters CLUSTER TOPIC"
)

ANSWERS: Final = (
    Answer("UnknownError", "Not enough non-faulty bookies", advice=_BOOKIES),  # met while a namespace's policies load
    Answer("UnknownError", "Failed to create reader", advice=_NO_SNAPSHOTS),
    Answer("UnknownError"),
    Answer(
        "MetadataError",
        "Encryption is required",
        EncryptionRequired,
        "The namespace takes encrypted messages alone (pulsar-admin namespaces set-encryption-required). A sink "
        "encrypts rows by its encryption_keys, and never its control topic, which must be in another namespace: "
        "control_namespace. If the sink has a log already, lift the policy until the log has moved. Let the query end "
        "after a whole batch, delete eos-sink.json from its checkpoint, and start it with control_namespace",
    ),
    Answer("MetadataError"),
    Answer("PersistenceError", "Not enough non-faulty bookies", advice=_BOOKIES),
    Answer("PersistenceError"),
    Answer(
        "AuthenticationError",
        kind=RefusedForGood,
        advice="The broker does not accept the credentials, or there are none. Check the options token, basic or "
        "oauth2, or tls_certificate and tls_key",
    ),
    Answer(
        "AuthorizationError",
        "prefixed by the authentication role",
        RefusedForGood,
        "The namespace demands that names of subscriptions begin with the role (subscription-auth-mode Prefix). Give "
        "the role by subscription_prefix of the sink, subscriptionPrefix of the source, and --subscription-prefix of "
        "the commands. The name of a stream's subscription begins with it too",
    ),
    Answer(
        "AuthorizationError",
        "to Produce",
        RefusedForGood,
        f"The role lacks the permission to produce: {_GRANT} produce",
    ),
    Answer(
        "AuthorizationError",
        "to subscribe",
        RefusedForGood,
        f"The role lacks the permission to consume: {_GRANT} consume",
    ),
    Answer(
        "AuthorizationError",
        "to GetTopicsOfNamespace",
        RefusedForGood,
        "The role lacks a permission on the whole namespace: pulsar-admin namespaces grant-permission NAMESPACE "
        "--role ROLE --actions consume",
    ),
    Answer("AuthorizationError", "not authorized", RefusedForGood, _ANY_GRANT),
    # The exceptionally branches of ServerCnx. Those of PRODUCER and SUBSCRIBE give Java's words for the exception.
    Answer("AuthorizationError", "trying to authorize", AuthorizationUnknown, _RIGHT_UNKNOWN),
    Answer("AuthorizationError", _ANY_EXCEPTION, AuthorizationUnknown, _RIGHT_UNKNOWN),
    Answer("AuthorizationError", kind=RefusedForGood, advice=_ANY_GRANT),
    Answer(
        "ConsumerBusy",
        "Topic reached max consumers limit",
        LimitReached,
        "The topic's policy allows no further consumer at a time, and each reader is one. A sink needs two "
        "on its control topic. Allow more: pulsar-admin namespaces set-max-consumers-per-topic NAMESPACE "
        "--max-consumers-per-topic N",
    ),
    Answer(
        "ConsumerBusy",
        "Subscription reached max consumers limit",
        LimitReached,
        "A policy allows the subscription no further consumer at a time. Close another one, or allow more: "
        "pulsar-admin namespaces set-max-consumers-per-subscription NAMESPACE --max-consumers-per-subscription N",
    ),
    Answer("ConsumerBusy"),
    Answer(
        "ServiceNotReady",
        "No offloader found for driver",
        RefusedForGood,
        "The topic's offload policy names a driver that the broker does not have, so no broker can load the topic. "
        "Install the driver, or remove the policy with pulsar-admin topicPolicies remove-offload-policies TOPIC",
    ),
    Answer("ServiceNotReady"),
    Answer("ProducerBlockedQuotaExceededError", kind=LimitReached, advice=_QUOTA),
    Answer("ProducerBlockedQuotaExceededException", kind=LimitReached, advice=_QUOTA),
    Answer("ChecksumError"),
    Answer("UnsupportedVersionError", kind=RefusedForGood, advice="Use a newer broker"),
    Answer(
        "TopicNotFound",
        kind=RefusedForGood,
        advice="The topic does not exist. Check its name, or create it with pulsar-admin topics create TOPIC",
    ),
    Answer(
        "SubscriptionNotFound",
        kind=RefusedForGood,
        advice="The subscription does not exist. Create it with pulsar-admin topics create-subscription "
        "--subscription NAME TOPIC",
    ),
    Answer("ConsumerNotFound"),
    Answer("TooManyRequests", kind=RateLimited),
    Answer(
        "TopicTerminatedError",
        kind=RefusedForGood,
        advice="The topic was terminated. Nothing can be written to it any more. Use another topic. A sink that writes "
        "exactly once goes on as soon as no row goes to the terminated one. A transaction that has it can't end until "
        "it is deleted, with the rows that it holds",
    ),
    Answer(
        "ProducerBusy",
        "max producers limit",
        LimitReached,
        "The topic's policy allows no further producer at a time, and each task that writes to a partition opens one. "
        "Allow more, pulsar-admin namespaces set-max-producers-per-topic NAMESPACE --max-producers-per-topic N, or "
        "write by fewer tasks, df.coalesce(N)",
    ),
    Answer(
        "ProducerBusy",
        "existing exclusive producer",
        advice="Another client has the topic to itself, or waits for that, by a producer with the access mode "
        "Exclusive, WaitForExclusive or ExclusiveWithFencing. pulsar-admin topics stats TOPIC shows its name and "
        "address. Close it, or write to another topic",
    ),
    Answer("ProducerBusy"),
    Answer("InvalidTopicName", kind=RefusedForGood, advice="Correct the name of the topic"),
    Answer(
        "IncompatibleSchema",
        kind=RefusedForGood,
        advice="If no schema was declared, the topic's namespace demands one. pulsar-admin namespaces "
        "set-schema-validation-enforce --disable NAMESPACE lifts that. If a schema was declared, the topic's "
        "compatibility strategy does not allow it. pulsar-admin namespaces get-schema-compatibility-strategy NAMESPACE "
        "shows the strategy",
    ),
    Answer("ConsumerAssignError"),
    Answer("TransactionCoordinatorNotFound"),
    Answer("InvalidTxnStatus"),
    # A send into a transaction that its ttl or a successor has ended: another transaction can pass.
    Answer("NotAllowedError", "has been ended"),
    Answer("NotAllowedError", "Exceed maximum message size", FrameTooLarge),
    Answer(
        "NotAllowedError",
        "maximum number of subscriptions",
        LimitReached,
        "Readers that are connected count too. Allow the topic one more: pulsar-admin namespaces "
        "set-max-subscriptions-per-topic NAMESPACE --max-subscriptions-per-topic N",
    ),
    Answer("NotAllowedError", "limited by subscribe rate limit", RateLimited),
    Answer(
        "NotAllowedError",
        "sub type",
        RefusedForGood,
        "The namespace or the topic allows only some types of subscriptions, and readers, sinks "
        "and queries need Exclusive. Allow it: pulsar-admin namespaces "
        "set-subscription-types-enabled --types Exclusive,Failover,… NAMESPACE. If the topic has a policy of its own, "
        "allow it there: pulsar-admin topicPolicies set-subscription-types-enabled --types Exclusive,Failover,… TOPIC",
    ),
    Answer(
        "NotAllowedError",
        "Transactions are not enabled",
        RefusedForGood,
        "Set transactionCoordinatorEnabled=true in broker.conf of each broker, and restart the brokers",
    ),
    Answer(
        "NotAllowedError",
        kind=RefusedForGood,
        advice="A setting of the broker, the namespace or the topic forbids the request. Change the setting that the "
        "broker names",
    ),
    Answer("TransactionConflict"),
    Answer("TransactionNotFound"),
    Answer("ProducerFenced"),
    # Of the admin API. Its codes are HTTP statuses.
    Answer("422", "topic is replicated on clusters", RefusedForGood, _REPLICATED),
    Answer("412", "Including 0 consumers, 0 producers", RefusedForGood, _REPLICATED),  # but replicators of others
    Answer(
        "405",
        NO_TOPIC_POLICIES,
        advice="So it does not tell which policies are in force on a topic. Set topicLevelPoliciesEnabled=true in "
        "broker.conf of each broker. Or leave out the address of the admin API, and let an administrator see to it "
        "that the namespace has no message TTL, backlog quota or limit of consumers",
    ),
    Answer("403", "operation [CREATE_TOPIC]", advice=_NO_CREATION),
    Answer("403", "on policy [PARTITION]", advice=_NO_CREATION),
    Answer(
        "403", "operation [DELETE_TOPIC]", advice="The role may not delete topics. An administrator of the tenant may"
    ),
)
"""The one table of answers. The first row counts whose code is the answer's and whose words the answer's contain.

Words are of a broker 4.2.4. A code passes also where it takes another transaction: a finished one never opens again.
"""


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
    """Tell whether the code is a proxy's, and says nothing: its broker may have refused for any reason."""
    return problem.code in _VAGUE and relayed(problem.detail) is not None


def advice_for(words: str) -> str:
    """Return what helps where a broker's words alone name a known cause, as in its admin API; "" where they do not."""
    known = (row for row in ANSWERS if row.words not in ("", _ANY_EXCEPTION))
    return next((row.advice for row in known if row.words in words), "")


def refused(asked: str, code: str, detail: str) -> Refused:
    """Return the error for a refusal, as `ANSWERS` says; a code that it does not know can pass. Args: of `Refused`."""
    words = relayed(detail)  # without those of the proxy, which name the exceptions of its client
    if words is not None and code in _VAGUE:
        code = next((known for part, known in _CODES_OF_WORDS.items() if part in words), code)
    told = detail if words is None else words
    row = next((row for row in ANSWERS if row.code == code and row.words in told), Answer(code))
    return row.kind(asked, code, detail, row.advice)
