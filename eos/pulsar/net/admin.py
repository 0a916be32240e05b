"""The knowledge of the admin API that the binary protocol doesn't give: policies, and the cause of a blocked partition.

Paths are those of the broker's own resources (org.apache.pulsar.broker.admin).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, TypeVar
from urllib.parse import quote

from eos.errors import Refused, TopicMissing, Unreachable
from eos.pulsar.net.admin_requests import FORBIDDEN, NO_ADMIN_API, AdminRequests, path_of
from eos.pulsar.net.policies import Backlog, TopicPolicies, quotas_in, rates_in
from eos.pulsar.net.transaction_stats import Buffer, OpenTransaction, buffer_of, next_entry, open_transaction_of
from eos.pulsar.protocol.refusals import NO_TOPIC_POLICIES
from eos.pulsar.protocol.topics import namespace_of, whole_topic
from eos.pulsar.wire.message_id import EntryId, MessageId, TopicLedger
from eos.pulsar.wire.txn import TxnId

_Told = TypeVar("_Told")

EntryKind = Literal["message", "marker", "aborted", "gone"]
"""The entry at a place: a message that readers get, a marker, a message of an aborted transaction, or nothing."""

_GONE = ("Message id not found", "No such entry")
"""A broker's words about an entry whose ledger does not exist, and about one that none of its bookies has (4.2.4)."""

_SHADOW_SOURCE = "PULSAR.SHADOW_SOURCE"
"""The property of a shadow topic that names its source (PersistentTopic of pulsar-broker)."""


@dataclass(frozen=True, slots=True)
class LedgerList:
    """The ledgers of one partition, as the metadata store has them.

    Attributes:
        changed_ms: when the list changed last, in milliseconds since 1970 by the metadata store's clock. A ledger was
            added or deleted then, as when the broker loads the topic.
        ids: of its ledgers.
    """

    changed_ms: int
    ids: frozenset[int]


def if_there(ask: Callable[[str], _Told], topic: str) -> _Told | None:
    """Return the answer about a physical topic of a topic that exists. None where it is missing, and so empty.

    A broker with default settings removes partitions that nobody uses and that hold nothing.
    """
    try:
        return ask(topic)
    except TopicMissing:
        return None


class Admin(AdminRequests):
    """A client of the admin API.

    Every call may raise Unreachable, Unanswered, Refused (its code is the HTTP status) and
    TopicMissing.
    """

    def version(self) -> str:
        """Return the broker's version."""
        path = "v2/brokers/version"
        told = self._ask("GET", path).text.strip()
        if not told[:1].isdigit():  # a login page, for example, answers anything, and well
            raise Unreachable(f"GET {self._url}/admin/{path}: {NO_ADMIN_API}")
        return told

    def setting(self, name: str) -> str | None:
        """Return a setting of the broker that answers, as it runs with; None where it has none of that name.

        Needs a superuser where there are roles.
        """
        return self.settings().get(name)

    def settings(self) -> dict[str, str]:
        """Return the settings of the broker that answers, as it runs with. Needs a superuser where there are roles."""
        told = self._json("v2/brokers/configuration/runtime")
        return {name: str(value) for name, value in told.items() if value is not None}

    def may_pass_over(self) -> bool:
        """Return whether the broker that answers may pass over entries that it cannot find; True where nobody says."""
        try:
            return self.setting("autoSkipNonRecoverableData") == "true"
        except Refused as refused:
            if refused.code not in FORBIDDEN:
                raise
            return True

    def clock_ahead_s(self) -> float | None:
        """Return by how many seconds the broker's clock is ahead, to a second. None where it shows no time."""
        asked = time.time()
        told = self._ask("GET", "v2/brokers/version").headers.get("Date")
        if told is None:
            return None
        # A Date is the whole second that had begun: half a second is its middle.
        return parsedate_to_datetime(told).timestamp() + 0.5 - (asked + time.time()) / 2

    def tenants(self) -> tuple[str, ...]:
        """Return the names of all tenants. Needs a superuser where there are roles."""
        return tuple(self._json("v2/tenants") or ())

    def namespaces(self, tenant: str) -> tuple[str, ...]:
        """Return the namespaces of a tenant, each "tenant/namespace"."""
        return tuple(self._json(f"v2/namespaces/{tenant}") or ())

    def coordinators(self) -> tuple[str | None, ...]:
        """Return the address of the broker that has each transaction coordinator; None: no broker has it yet."""
        return tuple(one["brokerServiceUrl"] or None for one in self._json("v3/transactions/coordinators"))

    def set_coordinators(self, number: int) -> None:
        """Have more transaction coordinators. Needs a superuser where there are roles."""
        self._ask("POST", "v3/transactions/transactionCoordinator/replicas", number)

    def coordinator(self, index: int) -> tuple[str, int]:
        """Return a transaction coordinator's state, "Ready" where it works, and how many transactions it has open."""
        told = self._json(f"v3/transactions/coordinatorStats?coordinatorId={index}")
        return str(told["state"]), int(told["ongoingTxnSize"])

    def auto_creation(self, namespace: str) -> dict[str, Any] | None:
        """Return what a "tenant/namespace" says of itself about the creation of topics; None: as its broker does."""
        found: dict[str, Any] | None = self._json(f"v2/namespaces/{namespace}/autoTopicCreation")
        return found

    def subscription_types(self, namespace: str) -> tuple[str, ...]:
        """Return the types of subscriptions that a "tenant/namespace" allows; none: those that its broker does."""
        return tuple(sorted(self._json(f"v2/namespaces/{namespace}/subscriptionTypesEnabled") or ()))

    def broker_subscription_types(self) -> tuple[str, ...]:
        """Return the types of subscriptions that the broker allows where a namespace does not say; none: not told.

        Needs a superuser where there are roles.
        """
        # The broker writes a set of Java: [Failover, Shared].
        return tuple(sorted(re.findall(r"\w+", self.setting("subscriptionTypesEnabled") or "")))

    def keeping(self, topic: str) -> TopicPolicies:
        """Return the effective policies of a topic, or of the one that a partition belongs to."""
        retention = self._policy(topic, "retention") or {}
        return TopicPolicies(
            ttl_s=int(self._policy(topic, "messageTTL") or 0),
            quotas=tuple(quotas_in(self._policy(topic, "backlogQuotaMap") or {})),
            retention_minutes=int(retention.get("retentionTimeInMinutes", 0)),
            retention_mb=int(retention.get("retentionSizeInMB", 0)),
            most_consumers=int(self._policy(topic, "maxConsumers") or 0),
        )

    def replicated_on(self, topic: str) -> tuple[str, ...]:
        """Return the clusters that a topic is replicated on, its own among them, by its policies or its namespace's."""
        return tuple(sorted(self._policy(topic, "replication") or ()))

    def read_rates(self, topic: str) -> tuple[str, ...]:
        """Return the rates that limit the reading of a topic, or of the one that a partition belongs to, in words."""
        return tuple(rates_in({one: self._policy(topic, one) for one in ("dispatchRate", "subscriptionDispatchRate")}))

    def entry_filters(self, topic: str) -> tuple[str, ...]:
        """Return the names of the entry filters that a broker applies to a topic, by its policies or its settings.

        Pulsar 2.10 and older have no such policy. A broker without policies of topics goes by those of the namespace,
        and else by its own settings.
        """
        try:
            told = self._policy(topic, "entryFilters") or {}
        except Refused as refused:
            if NO_TOPIC_POLICIES in refused.detail:
                told = self._json(f"v2/namespaces/{namespace_of(topic)}/entryFilters") or {
                    "entryFilterNames": (self.setting("entryFilterNames") or "").strip("[]")  # a list of Java
                }
            elif refused.code in ("404", "405"):
                told = {}
            else:
                raise
        return tuple(name.strip() for name in str(told.get("entryFilterNames") or "").split(",") if name.strip())

    def _policy(self, topic: str, name: str) -> Any:
        # A broker answers 412 where a partition's policy is asked for (PersistentTopicsBase.preValidation).
        return self._json(f"v2/{path_of(whole_topic(topic))}/{name}?applied=true")

    def backlog(self, topic: str) -> Backlog:
        """Return the backlog of a topic without partitions, or of a partition."""
        told = self._json(f"v2/{path_of(topic)}/stats")
        age_s = int(told.get("oldestBacklogMessageAgeSeconds", -1))
        return Backlog(
            bytes=int(told["backlogSize"]),
            age_s=age_s if age_s >= 0 else None,
            slowest=str(told.get("oldestBacklogMessageSubscriptionName") or ""),
            subscriptions={name: int(one["msgBacklog"]) for name, one in told["subscriptions"].items()},
        )

    def stored_bytes(self, topic: str, *, partitioned: bool) -> int:
        """Return how many bytes a topic stores, all its partitions together."""
        stats = "partitioned-stats?perPartition=false" if partitioned else "stats"
        return int(self._json(f"v2/{path_of(topic)}/{stats}")["storageSize"])

    def most_topics(self, namespace: str) -> int | None:
        """Return how many topics a "tenant/namespace" says it may have, 0 for no limit; None: as its broker does."""
        # Not asked for by itself: maxTopicsPerNamespace answers 0 also where nothing was set.
        told = self._json(f"v2/namespaces/{namespace}").get("max_topics_per_namespace")
        return None if told is None else int(told)

    def subscription_expiry_minutes(self, topic: str) -> int | None:
        """Return by its namespace when a topic's unused subscriptions are deleted, 0: never; None: by its broker."""
        policies = self._json(f"v2/namespaces/{namespace_of(topic)}")
        return None if (told := policies.get("subscription_expiration_time_minutes")) is None else int(told)

    def subscriptions(self, topic: str) -> tuple[str, ...]:
        """Return the names of a topic's durable subscriptions."""
        return tuple(self._json(f"v2/{path_of(topic)}/subscriptions") or ())

    def unsubscribe(self, topic: str, subscription: str) -> None:
        """Delete a durable subscription that no consumer is connected to. Raises Refused where one is."""
        self._ask("DELETE", f"v2/{path_of(topic)}/subscription/{quote(subscription, safe='')}")

    def producers(self, topic: str) -> tuple[str, ...]:
        """Return who is connected to write to a topic without partitions, or to a partition: "name (address)"."""
        told = self._json(f"v2/{path_of(topic)}/stats")["publishers"]
        return tuple(f"{one['producerName']} ({one.get('address', 'address not told')})" for one in told)

    def connected(self, topic: str, subscription: str) -> tuple[str, ...]:
        """Return the addresses of who is connected to a topic to write, or to a subscription of it; each once.

        The subscription may have a prefix before its name.
        """
        told = self._json(f"v2/{path_of(topic)}/stats")
        joined = [one for name, one in told["subscriptions"].items() if name.endswith(subscription)]
        clients = [*told["publishers"], *(client for one in joined for client in one.get("consumers", ()))]
        return tuple(sorted({str(one.get("address", "an address not told")).removeprefix("/") for one in clients}))

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic; 0 partitions: without any. Raises Refused, with the code "409" where there is one."""
        if partitions:
            self._ask("PUT", f"v2/{path_of(topic)}/partitions", partitions)
        else:
            self._ask("PUT", f"v2/{path_of(topic)}")

    def delete(self, topic: str) -> None:
        """Delete a topic without partitions that no client is connected to, with its subscriptions.

        Raises Refused where one is, or where the role may not.
        """
        self._ask("DELETE", f"v2/{path_of(topic)}")

    def delete_partitioned(self, topic: str) -> None:
        """Delete a topic that has partitions, as `delete` does one without."""
        self._ask("DELETE", f"v2/{path_of(topic)}/partitions")

    def set_partitions(self, topic: str, number: int) -> None:
        """Give a partitioned topic more partitions."""
        self._ask("POST", f"v2/{path_of(topic)}/partitions", number)

    def properties(self, topic: str) -> dict[str, str]:
        """Return the properties of a topic, which its maker has given it."""
        return dict(self._json(f"v2/{path_of(topic)}/properties") or {})

    def shadow_source(self, topic: str) -> str | None:
        """Return the topic that a topic, or the one that a partition belongs to, is a shadow of; None where of none."""
        return self.properties(whole_topic(topic)).get(_SHADOW_SOURCE)

    def set_properties(self, topic: str, properties: Mapping[str, str]) -> None:
        """Set properties of a topic; those that are not named stay."""
        if properties:
            self._ask("PUT", f"v2/{path_of(topic)}/properties", dict(properties))

    def unset_property(self, topic: str, name: str) -> None:
        """Remove a property of a topic."""
        self._ask("DELETE", f"v2/{path_of(topic)}/properties?key={quote(name, safe='')}")

    def open_transactions(self, older_than_ms: int = 0) -> list[OpenTransaction]:
        """Return the transactions of all coordinators that are open for so many milliseconds, oldest first."""
        slow = self._json_from_topics(f"v3/transactions/slowTransactions/{older_than_ms}") or {}
        return sorted((open_transaction_of(stats) for stats in slow.values()), key=lambda one: one.opened_ms)

    def transaction(self, txn: TxnId) -> OpenTransaction | None:
        """Return a transaction while its coordinator knows it; None once it has ended, or if it never was.

        Raises Refused where that can't be known: the role may not know, or the coordinator is not loaded.
        """
        try:
            stats = self._json_from_topics(f"v3/transactions/transactionMetadata/{txn.most}/{txn.least}")
        except TopicMissing as missing:  # of the coordinator, or of a partition: the transaction may be open
            raise Refused(f"transaction {txn}", "404", str(missing)) from missing
        except Refused as error:
            if error.code != "404" or str(txn) not in error.detail:
                raise
            return None
        return open_transaction_of(stats)

    def buffer(self, topic: str) -> Buffer:
        """Return what the broker knows of the transactions on one partition."""
        stats = self._json(f"v3/transactions/transactionBufferStats/{path_of(topic, scheme=False)}")
        return buffer_of(stats, self.internal_stats(topic))

    def transaction_behind(self, topic: str, position: MessageId) -> TxnId | None:
        """Return the transaction of the entry that follows a position on one partition; None where it has none.

        Raises Refused, too, where the broker cannot read that entry, or where the role may not.
        """
        place = next_entry(self.internal_stats(topic), position)
        if place is None:
            return None
        entry = self._entry(topic, place)
        most, least = (entry.get(f"X-Pulsar-txnid-{half}-bits") for half in ("most", "least"))
        return TxnId(int(most), int(least)) if most is not None and least is not None else None

    def entry_kind(self, topic: str, entry: EntryId) -> EntryKind:
        """Return what an entry of a topic without partitions, or of a partition, is. Needs the right to consume.

        Raises Refused where the broker cannot read the entry, although it may be stored.
        """
        try:
            told = self._entry(topic, entry)
        except Refused as refused:
            if not any(words in refused.detail for words in _GONE):
                raise
            return "gone"
        if "X-Pulsar-marker-type" in told:
            return "marker"
        return "aborted" if told.get("X-Pulsar-txn-aborted") == "true" else "message"

    def _entry(self, topic: str, entry: EntryId | MessageId) -> Mapping[str, str]:
        """Return what the broker says of a stored entry, by the headers of its answer, whose names have any case."""
        return self._ask("GET", f"v2/{path_of(topic)}/ledger/{entry.ledger}/entry/{entry.entry}").headers

    def ledgers(self, topic: str) -> list[TopicLedger]:
        """Return the ledgers of a topic without partitions, or of a partition, in their order."""
        told = self.internal_stats(topic)["ledgers"]
        return sorted(
            (TopicLedger(one["ledgerId"], one["entries"], one["size"]) for one in told), key=lambda one: one.id
        )

    def internal_stats(self, topic: str, *, metadata: bool = False) -> dict[str, Any]:
        """Return what a broker tells of the ledgers of a topic without partitions, or of a partition.

        Args: the topic; whether each ledger comes with its metadata in BookKeeper.
        """
        asked = "?metadata=true" if metadata else ""
        told: dict[str, Any] = self._json(f"v2/{path_of(topic)}/internalStats{asked}")
        return told

    def internal_info(self, topic: str) -> dict[str, Any]:
        """Return what the metadata store has of a topic without partitions, or of a partition."""
        told: dict[str, Any] = self._json(f"v2/{path_of(topic)}/internal-info")
        return told

    def ledger_list(self, topic: str) -> LedgerList:
        """Return the ledgers of a topic without partitions, or of a partition. The broker need not load the topic."""
        told = self.internal_info(topic)
        changed = datetime.fromisoformat(told["modificationDate"])
        return LedgerList(int(changed.timestamp() * 1000), frozenset(one["ledgerId"] for one in told["ledgers"]))

    def topics(self, namespace: str) -> tuple[str, ...]:
        """Return the physical topics of a "tenant/namespace", each partition by its own name."""
        return tuple(self._json(f"v2/persistent/{namespace}") or ())

    def abort(self, txn: TxnId) -> None:
        """Have the broker abort a transaction of any role; needs a superuser where there are roles."""
        self._ask("POST", f"v3/transactions/abortTransaction/{txn.most}/{txn.least}")
