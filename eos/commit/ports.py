"""The ports by which the commit reaches the world: `eos.pulsar.net` fits them, and so does the tests' simulation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, Protocol

from eos.pulsar.wire.message_id import EntryId, MessageId
from eos.pulsar.wire.txn import TxnId


class CoordinatorPort(Protocol):
    """One transaction coordinator. Connects by itself, and again after a connection was lost."""

    @property
    def index(self) -> int:
        """Which of the cluster's coordinators this is."""
        ...

    def new_transaction(self, ttl_ms: int) -> TxnId:
        """Open a transaction that the coordinator aborts by itself after `ttl_ms` milliseconds."""
        ...

    def add_partitions(self, txn: TxnId, topics: Sequence[str]) -> None:
        """Make physical topics part of a transaction; must be answered before the first send to them."""
        ...

    def end(self, txn: TxnId, commit: bool, sent: Callable[[], None] | None = None) -> None:
        """Commit or abort. `sent` is called once the request was handed to the socket.

        Raises Refused with the broker's code, Unanswered or ConnectionLost.
        """
        ...


class ControlProducerPort(Protocol):
    """The producer of the control topic."""

    @property
    def name(self) -> str:
        """Its name, as the broker chose it."""
        ...

    @property
    def topic_epoch(self) -> int | None:
        """How many times the topic was fenced, counted by the broker."""
        ...

    def send_record(self, data: bytes, txn: TxnId | None, *, local: bool) -> MessageId:
        """Send one record, wait for its receipt, and say where it lies. Never sends twice.

        A `local` one is not replicated to other clusters. Raises InvalidInput, with nothing sent, for one that is
        larger than brokers take.
        """
        ...

    def close(self) -> None:
        """Close, and wait for the broker's confirmation."""
        ...

    def abandon(self) -> None:
        """Ask for the close of a broken producer. Waits for nothing, raises nothing."""
        ...


class MessagePort(Protocol):
    """A record that was read."""

    @property
    def data(self) -> bytes | None:
        """Its bytes. None for a null value, which is not a record of this log."""
        ...

    @property
    def message_id(self) -> MessageId:
        """Where it lies."""
        ...

    @property
    def publish_time_ms(self) -> int:
        """When it was sent, in milliseconds since 1970, by the sender's clock."""
        ...

    @property
    def replicated_from(self) -> str | None:
        """The cluster that it was replicated from; None for one that was written here."""
        ...


class ControlReaderPort(Protocol):
    """Reads the control topic, on no subscription. It leaves no record out."""

    def read(self, timeout_s: float) -> MessagePort | None:
        """Give the next record, or None when none became readable within `timeout_s` seconds.

        Raises EntriesGone, a NetworkError, where it can't be shown that this is the next one.
        """
        ...

    def last_message_id(self) -> MessageId:
        """Where the last record that is readable now lies; EARLIEST when there is none."""
        ...

    def close(self) -> None:
        """Close."""
        ...


class RetainingSubscriptionPort(Protocol):
    """A durable subscription that retains the control topic's records."""

    def join(self) -> None:
        """Join it again where the connection was lost; nothing is asked where it was not."""
        ...

    def acknowledge(self, message_id: MessageId) -> None:
        """Stop retaining everything up to and including `message_id`."""
        ...

    def positions(self) -> tuple[EntryId | None, EntryId | None]:
        """Return the last entry that can be read, and the last that is no longer retained; None: there is none."""
        ...

    def close(self) -> None:
        """Close; the subscription stays."""
        ...

    def abandon(self) -> None:
        """Leave without waiting for the broker, and raise nothing; the subscription stays."""
        ...


class CoordinatorsPort(Protocol):
    """The transaction coordinators of a cluster."""

    def coordinator(self, index: int) -> CoordinatorPort:
        """Connect to one coordinator; a crashed broker loads it only then."""
        ...


class ClientPort(CoordinatorsPort, Protocol):
    """A cluster, as far as the driver's part of the protocol needs it."""

    def coordinators(self) -> int:
        """How many transaction coordinators there are. Raises InvalidInput when transactions are off."""
        ...

    def ensure_topic(self, topic: str) -> None:
        """Make a topic without partitions if it is missing.

        Raises InvalidInput when it has partitions, TopicMissing when the broker does not make it.
        """
        ...

    def producer(
        self, topic: str, *, access: Literal["exclusive-with-fencing"], topic_epoch: int | None
    ) -> ControlProducerPort:
        """Open the only producer of a topic (PIP-68, ExclusiveWithFencing).

        Without an epoch it fences the producer that was there. With one it is a reopening: raises Fenced when
        the topic's epoch has moved past it.
        """
        ...

    def reader(self, topic: str, *, after: MessageId, stored: bool) -> ControlReaderPort:
        """Open a reader after a record, or at the earliest one.

        Args:
            stored: whether that record must still be stored: reading raises EntriesGone, a NetworkError, if it is not.
        """
        ...

    def hold(self, topic: str, subscription: str) -> RetainingSubscriptionPort:
        """Open the durable subscription, at the earliest record when it is new."""
        ...


class Written(Protocol):
    """The amounts that a batch wrote, by topic."""

    @property
    def rows(self) -> Mapping[str, int]:
        """Number of messages."""
        ...

    @property
    def bytes(self) -> Mapping[str, int]:
        """Their sizes, uncompressed."""
        ...


class DeliveryPort(Protocol):
    """Gets the data of one batch into transactions: one after the other, until one is committed.

    For each transaction `prepare`, `send` and `finish` are called in this order, and `abandon` as soon as one of
    them, or anything else before the commit, has failed.
    """

    def prepare(self) -> None:
        """Do what sends nothing, such as collecting rows, while the transaction is being opened."""
        ...

    def send(self, txn: TxnId) -> Written:
        """Add partitions to the transaction, and send all data into it."""
        ...

    def finish(self) -> None:
        """Await what `send` did not.

        When it returns, each row has its receipt, is proven to have been written once, and nothing can send into the
        transaction any longer. It raises if that is not so. The MARKER is on its way meanwhile.
        """
        ...

    def abandon(self) -> Collection[str]:
        """Give up what is open: the transaction will be aborted. Raises nothing; does nothing the second time.

        When it returns, a frame of the transaction that is stored later holds no reader up, but on the physical topics
        that it returns: there an empty transaction must end, once this one has.
        """
        ...
