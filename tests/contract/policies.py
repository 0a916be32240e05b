"""Every policy that Pulsar's admin API can set on a namespace or a topic, and what it does to a sink and a source.

A policy is a field of the broker's classes `Policies` and `TopicPolicies`; `tests/vectors/policies.json` has the
names of their fields. Each row was tried on a real broker, or says why it was not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

WORKS: Final = ""
"""The expectation of a policy under which all rows are written, or read."""

_RATE: Final = {
    "dispatchThrottlingRateInMsg": 5,
    "dispatchThrottlingRateInByte": -1,
    "ratePeriodInSecond": 1,
    "relativeToPublishRate": False,
}
_PUBLISH: Final = {"publishThrottlingRateInMsg": 5, "publishThrottlingRateInByte": -1}
_OFFLOAD: Final = {
    "managedLedgerOffloadDriver": "filesystem",
    "fileSystemProfilePath": "/none",
    "fileSystemURI": "file:///tmp/none",
    "managedLedgerOffloadThresholdInBytes": 0,
}
"""To a driver that the broker does not have."""
_SLOW: Final = r"No record came for.*set-dispatch-rate, set-subscription-dispatch-rate"
_NO_OFFLOADER: Final = r"No offloader found.*remove-offload-policies"
_NO_BOOKIES: Final = r"Not enough non-faulty bookies.*set-persistence"
_NO_EXCLUSIVE: Final = r"doesn't support Exclusive sub type.*set-subscription-types-enabled"
_QUOTA: Final = r"BlockedQuota.*set-backlog-quota"
_TO_CLUSTER: Final = "it needs a second cluster: tests/contract/test_brokers.py"


@dataclass(frozen=True)
class Policy:
    """One policy, set to one value.

    Attributes:
        name: of the row.
        fields: the fields of Policies and TopicPolicies that it sets.
        body: the value, as JSON.
        namespace, topic: the last part of the admin API's path; "" where it can't be set there.
        method: of the request.
        sink, table, stream, timed: what a sink, a batch read, a stream and one that begins at a time do: WORKS, or a
            pattern that the refusal must match.
        slow: the pattern of a refusal that is right too: of what a rate holds up for longer than is waited.
        quick: whether the default suite tries it too.
        retains: whether the broker retains what all subscriptions have read.
    """

    name: str
    fields: tuple[str, ...]
    body: Any
    namespace: str = ""
    topic: str = ""
    method: str = "POST"
    sink: str = WORKS
    table: str = WORKS
    stream: str = WORKS
    timed: str = WORKS
    slow: str = ""
    quick: bool = False
    retains: bool = True


def _both(name: str, fields: tuple[str, ...], body: Any, path: str, **expected: Any) -> Policy:
    """Of a namespace and of a topic by the same path."""
    return Policy(name, fields, body, path, path, **expected)


def _everywhere(expected: str) -> dict[str, Any]:
    return dict.fromkeys(("sink", "table", "stream", "timed"), expected)


def _limit(name: str, fields: tuple[str, ...], namespace: str, topic: str, **expected: Any) -> Policy:
    return Policy(f"{name} 1", fields, 1, namespace, topic, **expected)


TRIED: Final = (
    _both(
        "retention none",
        ("retention_policies", "retentionPolicies"),
        {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0},
        "retention",
        retains=False,
    ),
    _both("retention", (), {"retentionTimeInMinutes": 60, "retentionSizeInMB": 10}, "retention"),
    Policy(
        "message TTL",
        ("message_ttl_in_seconds", "messageTTLInSeconds"),
        3600,
        "messageTTL",
        "messageTTL?messageTTL=3600",
    ),
    _both(
        "backlog quota, producer_request_hold",
        ("backlog_quota_map", "backLogQuotaMap"),
        {"limitSize": 1, "policy": "producer_request_hold"},
        "backlogQuota",
        sink=_QUOTA,
    ),
    _both(
        "backlog quota, producer_exception",
        (),
        {"limitSize": 1, "policy": "producer_exception"},
        "backlogQuota",
        sink=_QUOTA,
    ),
    _both(
        "backlog quota, consumer_backlog_eviction",
        (),
        {"limitSize": 1, "policy": "consumer_backlog_eviction"},
        "backlogQuota",
    ),
    Policy("deduplication", ("deduplicationEnabled",), True, "deduplication", "deduplicationEnabled"),
    _both("deduplication snapshots", ("deduplicationSnapshotIntervalSeconds",), 10, "deduplicationSnapshotInterval"),
    _limit("max producers", ("max_producers_per_topic", "maxProducerPerTopic"), "maxProducersPerTopic", "maxProducers"),
    _limit(
        "max consumers",
        ("max_consumers_per_topic", "maxConsumerPerTopic"),
        "maxConsumersPerTopic",
        "maxConsumers",
        sink=r"max consumers limit.*a client that died.*set-max-consumers-per-topic",
        stream=r"max consumers limit.*set-max-consumers-per-topic",
        timed=r"max consumers limit.*set-max-consumers-per-topic",
    ),
    _limit(
        "max consumers per subscription",
        ("max_consumers_per_subscription", "maxConsumersPerSubscription"),
        "maxConsumersPerSubscription",
        "maxConsumersPerSubscription",
    ),
    _limit(
        "max subscriptions",
        ("max_subscriptions_per_topic", "maxSubscriptionsPerTopic"),
        "maxSubscriptionsPerTopic",
        "maxSubscriptionsPerTopic",
        sink=r"maximum number of subscriptions.*set-max-subscriptions-per-topic",
        stream=r"maximum number of subscriptions.*set-max-subscriptions-per-topic",
        timed=r"maximum number of subscriptions.*set-max-subscriptions-per-topic",
    ),
    _both("publish rate", ("publishMaxMessageRate", "publishRate"), _PUBLISH, "publishRate"),
    _both("dispatch rate", ("topicDispatchRate", "dispatchRate"), _RATE, "dispatchRate", slow=_SLOW),
    _both("subscription dispatch rate", ("subscriptionDispatchRate",), _RATE, "subscriptionDispatchRate", slow=_SLOW),
    _both("replicator dispatch rate", ("replicatorDispatchRate",), _RATE, "replicatorDispatchRate"),
    _both(
        "subscribe rate",
        ("clusterSubscribeRate", "subscribeRate"),
        {"subscribeThrottlingRatePerConsumer": 1, "ratePeriodInSecond": 3},
        "subscribeRate",
    ),
    _limit(
        "max unacked messages per consumer",
        ("max_unacked_messages_per_consumer", "maxUnackedMessagesOnConsumer"),
        "maxUnackedMessagesPerConsumer",
        "maxUnackedMessagesOnConsumer",
    ),
    _limit(
        "max unacked messages per subscription",
        ("max_unacked_messages_per_subscription", "maxUnackedMessagesOnSubscription"),
        "maxUnackedMessagesPerSubscription",
        "maxUnackedMessagesOnSubscription",
    ),
    _both(
        "schema compatibility ALWAYS_INCOMPATIBLE",
        ("schema_compatibility_strategy", "schemaCompatibilityStrategy"),
        "ALWAYS_INCOMPATIBLE",
        "schemaCompatibilityStrategy",
        method="PUT",
    ),
    Policy("no automatic schema update", ("is_allow_auto_update_schema",), False, "isAllowAutoUpdateSchema"),
    Policy(
        "schema compatibility of automatic updates",
        ("schema_auto_update_compatibility_strategy",),
        "AutoUpdateDisabled",
        "schemaAutoUpdateCompatibilityStrategy",
        method="PUT",
    ),
    _both(
        "schema validation",
        ("schema_validation_enforced", "schemaValidationEnforced"),
        True,
        "schemaValidationEnforced",
    ),
    _both(
        "subscription types Exclusive",
        ("subscription_types_enabled", "subscriptionTypesEnabled"),
        ["Exclusive"],
        "subscriptionTypesEnabled",
    ),
    _both("subscription types Failover", (), ["Failover"], "subscriptionTypesEnabled", **_everywhere(_NO_EXCLUSIVE)),
    _both("subscription types Shared", (), ["Shared"], "subscriptionTypesEnabled", **_everywhere(_NO_EXCLUSIVE)),
    Policy(
        "no automatic topics", ("autoTopicCreationOverride",), {"allowAutoTopicCreation": False}, "autoTopicCreation"
    ),
    Policy(
        "automatic topics with partitions",
        (),
        {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 2},
        "autoTopicCreation",
    ),
    _both(
        "no automatic subscriptions",
        ("autoSubscriptionCreationOverride", "autoSubscriptionCreationOverride"),
        {"allowAutoSubscriptionCreation": False},
        "autoSubscriptionCreation",
        quick=True,
        sink=r"allowAutoSubscriptionCreation=false.*create-subscription",
        stream=r"allowAutoSubscriptionCreation=false.*create-subscription",
        timed=r"allowAutoSubscriptionCreation=false.*create-subscription",
    ),
    _both(
        "inactive topics",
        ("inactive_topic_policies", "inactiveTopicPolicies"),
        {
            "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
            "maxInactiveDurationSeconds": 60,
            "deleteWhileInactive": True,
        },
        "inactiveTopicPolicies",
    ),
    Policy("compaction threshold", ("compaction_threshold",), 1, "compactionThreshold", method="PUT"),
    Policy("compaction threshold", ("compactionThreshold",), 1, topic="compactionThreshold"),
    _both(
        "no delayed delivery",
        (
            "delayed_delivery_policies",
            "delayedDeliveryTickTimeMillis",
            "delayedDeliveryEnabled",
            "delayedDeliveryMaxDelayInMillis",
        ),
        {"active": False, "tickTime": 1000},
        "delayedDelivery",
    ),
    Policy(
        "encryption required",
        ("encryption_required",),
        True,
        "encryptionRequired",
        sink=r"Encryption is required.*set-encryption-required.*control_namespace",
    ),
    Policy(
        "subscription expiration",
        ("subscription_expiration_time_minutes", "subscriptionExpirationTimeInMinutes"),
        1,
        "subscriptionExpirationTime",
        "subscriptionExpirationTime?subscriptionExpirationTime=1",
    ),
    _limit("max topics", ("max_topics_per_namespace",), "maxTopicsPerNamespace", ""),
    _both(
        "persistence",
        ("persistence",),
        {
            "bookkeeperEnsemble": 1,
            "bookkeeperWriteQuorum": 1,
            "bookkeeperAckQuorum": 1,
            "managedLedgerMaxMarkDeleteRate": 0.1,
        },
        "persistence",
    ),
    Policy(
        "persistence, more bookies than there are",
        (),
        {
            "bookkeeperEnsemble": 3,
            "bookkeeperWriteQuorum": 3,
            "bookkeeperAckQuorum": 3,
            "managedLedgerMaxMarkDeleteRate": 0.1,
        },
        topic="persistence",  # on a namespace a broker may not answer at all, as it can't load the policies
        sink=_NO_BOOKIES,
        table=_NO_BOOKIES,
        stream=_NO_BOOKIES,
        timed=_NO_BOOKIES,
    ),
    _both("properties", ("properties",), {"a": "b"}, "properties", method="PUT"),
    _both(
        "dispatch pauses on acknowledgements",
        ("dispatcherPauseOnAckStatePersistentEnabled",),
        None,
        "dispatcherPauseOnAckStatePersistent",
    ),
    Policy("offload threshold", ("offload_threshold",), 0, "offloadThreshold", method="PUT"),
    Policy(
        "offload threshold in seconds", ("offload_threshold_in_seconds",), 0, "offloadThresholdInSeconds", method="PUT"
    ),
    Policy("offload deletion lag", ("offload_deletion_lag_ms",), 0, "offloadDeletionLagMs", method="PUT"),
    Policy("offload policies", ("offload_policies",), _OFFLOAD, "offloadPolicies"),
    Policy("offload policies", ("offloadPolicies",), _OFFLOAD, topic="offloadPolicies", **_everywhere(_NO_OFFLOADER)),
    Policy(
        "max message size",
        ("maxMessageSize",),
        10,
        topic="maxMessageSize",
        sink=r"Exceed maximum message size.*set-max-message-size",
    ),
    Policy("anti-affinity group", (), "group", "antiAffinity"),
    Policy("resource group", ("resource_group_name",), None, "resourcegroup/small"),
    _both("replication, own cluster", ("replication_clusters", "replicationClusters"), ["standalone"], "replication"),
    Policy("allowed clusters, own cluster", ("allowed_clusters",), ["standalone"], "allowedClusters"),
    Policy(
        "shadow topics",
        ("shadowTopics",),
        ["persistent://public/default/policy-shadow"],
        topic="shadowTopics",
        method="PUT",
    ),
    Policy(
        "dispatch rate of the stream's subscription",
        ("subscriptionPolicies",),
        _RATE,
        topic="job-earliest/dispatchRate",
    ),
    Policy(
        "topic properties as metric labels",
        ("allowed_topic_property_keys_for_metrics",),
        ["a"],
        "allowedTopicPropertyKeysForMetrics",
    ),
)

NOT_TRIED: Final = {
    "auth_policies": "the permissions: tests/contract/test_rights.py tries each",
    "subscription_auth_mode": "it needs roles: tests/contract/test_subscription_policies.py",
    "entryFilters": "it needs a filter that is installed in the broker: tests/contract/test_entry_filters.py",
    "bundles": "it says how a namespace is divided among brokers: a split or an unload moves a topic, as tests of"
    " unloads have it",
    "clusterDispatchRate": "no request sets it: older releases of Pulsar did",
    "latency_stats_sample_rate": "no request sets it, and no broker reads it",
    "deleted": "the mark of a namespace that is being deleted",
    "migrated": "the mark of a namespace that has moved to another cluster (blue-green): " + _TO_CLUSTER,
    "isGlobal": "the mark of policies for all clusters: " + _TO_CLUSTER,
}
"""{field: why it is not tried here}."""
