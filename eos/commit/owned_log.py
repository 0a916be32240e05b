"""The control log in the hands of its owner: the only producer, the running number, the view, and retention."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from typing import Final

from eos.commit.control_log import WAYS_OUT, LogView, OwnerRecord, Record, encode, lost_marker
from eos.commit.control_topic import HOLD
from eos.commit.log_reader import read_on, read_retained, view_behind
from eos.commit.ports import ClientPort, ControlProducerPort, RetainingSubscriptionPort
from eos.commit.retry import OwnerSettings
from eos.errors import ConnectionLost, EosError, Fenced, InvalidInput, NetworkError, Refused, RefusedForGood
from eos.pulsar.wire.message_id import EARLIEST, EntryId, MessageId
from eos.pulsar.wire.txn import TxnId

log = logging.getLogger("eos.commit.owned_log")


_NAMED_BY_BROKER = re.compile(r"(?P<cluster>.+)-\d+-\d+")

_OUT_OF_REACH = (NetworkError, InvalidInput)
"""Errors of calls about the subscription. They say nothing of the batch in hand. A committed batch stays committed,
and the next record tells of a topic that is gone, or of a setting that is wrong."""

TERMINATED: Final = "TopicTerminatedError"
"""The broker's code to a producer on a topic that takes no further message."""

_QUOTA_EXCEEDED = frozenset({"ProducerBlockedQuotaExceededError", "ProducerBlockedQuotaExceededException"})


class OwnedLog:
    """One driver's control log.

    Args:
        client: the cluster.
        topic: the control topic.
        settings: waits and retention.

    Attributes:
        view: what the log says; of use once the log was trusted, see `eos.commit.takeover`.
    """

    def __init__(self, client: ClientPort, topic: str, settings: OwnerSettings) -> None:
        self.topic = topic
        self.view = LogView()
        self._client, self._settings = client, settings
        self._number = 0
        self._epoch: int | None = None
        self._producer: ControlProducerPort | None = None
        self._hold: RetainingSubscriptionPort | None = None
        self._trimmed_to: MessageId | None = None
        self._fenced: Fenced | None = None

    # ---- the producer

    @property
    def lost(self) -> bool:
        """True when the producer broke, or was never opened: another driver may own the sink."""
        return self._producer is None

    @property
    def epoch(self) -> int:
        """How many times the topic was fenced when this driver took it, counted by the broker."""
        return self._epoch or 0

    @property
    def cluster(self) -> str | None:
        """The name of the cluster, or None. A broker names a producer CLUSTER-N-M (DistributedIdGenerator)."""
        named = None if self._producer is None else _NAMED_BY_BROKER.fullmatch(self._producer.name)
        return None if named is None else named["cluster"]

    def refuse_if_fenced(self) -> None:
        """Raise Fenced once another driver is known to own the log: that is for good."""
        if self._fenced is not None:
            raise Fenced(str(self._fenced))

    def fence(self) -> None:
        """Open the producer, and fence the one that was there."""
        self._epoch = None
        self.reopen()

    def reopen(self) -> None:
        """Open the producer again with our own epoch. Raises Fenced when that has moved."""
        try:
            producer = self._client.producer(self.topic, access="exclusive-with-fencing", topic_epoch=self._epoch)
        except Fenced as why:
            if self._epoch is not None:
                self._fenced = why
            raise
        except Refused as why:
            if why.code in _QUOTA_EXCEEDED:
                raise RefusedForGood(why.asked, why.code, why.detail, _shut_out(self.topic)) from why
            if why.code == TERMINATED:
                raise _no_more_records(why) from why
            raise
        self._producer, self._epoch = producer, producer.topic_epoch
        self._be_seen()

    # ---- writing

    def count_from(self, number: int) -> None:
        """Number the records of this driver after `number`."""
        self._number = max(self._number, number)

    def next_number(self) -> int:
        """Count up the running number of the log's records."""
        self._number += 1
        return self._number

    def append(self, record: Record, txn: TxnId | None = None) -> MessageId:
        """Write one record and wait for its receipt. After a failure the log is lost until it is reopened."""
        return self.send(encode(record), txn)

    def send(self, data: bytes, txn: TxnId | None) -> MessageId:
        """Write bytes that need not be a record, as `append` does."""
        if self._producer is None:
            raise ConnectionLost(f"the producer of {self.topic} is not open")
        try:
            return self._producer.send_record(data, txn, local=True)
        except NetworkError as why:
            self._drop_producer()
            if isinstance(why, Refused) and why.code == TERMINATED:
                raise _no_more_records(why) from why
            raise
        except Fenced as why:
            # Even a stranger whose reopening was refused throws us out: only the topic's epoch tells who owns it.
            self._drop_producer()
            raise ConnectionLost(f"the producer of {self.topic} was replaced: {why}") from why

    def _be_seen(self) -> None:
        """Join the subscription: `eos sink abort` sees it where a fenced driver's try has closed the producer."""
        try:
            self.hold().join()
        except _OUT_OF_REACH as why:
            log.info("%s: joining %s: %s", self.topic, HOLD, why)
            self._drop_hold()

    def _drop_producer(self) -> None:
        if self._producer is not None:
            self._producer.abandon()
        self._producer = None

    # ---- reading and retention

    def read(self) -> LogView:
        """Read a log that another driver may have written, from where its last record says that reading may begin."""
        return read_retained(self._client, self.topic, self._settings)

    def begin_again(self) -> LogView:
        """Begin to read this log again."""
        return view_behind(self.view.expired or EARLIEST, self._settings)

    def read_on(self, view: LogView, until: OwnerRecord | None = None) -> None:
        """Read on from where the view ends, up to a record that was written, or to the last readable one."""
        read_on(self._client, self.topic, self._settings, view, until)

    def trust(self, view: LogView) -> None:
        """Go on with what was read once our own OWNER was in sight.

        Raises DamagedLog where it lacks the newest MARKER that this driver knows: a readable record stays readable. A
        batch without a record would be taken for one that is not committed.
        """
        known = self.view.newest
        if known is not None and (view.newest is None or view.newest.batch_id < known.batch_id):
            raise lost_marker(self.topic, known.batch_id)
        self.view = view
        self.count_from(view.last_number)

    def retain_markers_since(self, batch_id: int | None) -> None:
        """Retain all markers from this batch on, from now on; None: the newest ones only."""
        self._settings = replace(self._settings, markers_retained_since=batch_id)
        self.view.retain_since = batch_id

    def hold(self) -> RetainingSubscriptionPort:
        """Make sure that the durable subscription is there, and join it."""
        if self._hold is None:
            self._hold = self._client.hold(self.topic, HOLD)
        return self._hold

    def _drop_hold(self) -> None:
        if self._hold is not None:
            self._hold.abandon()  # the next one joins beside it: each would stay at the broker
        self._hold = None

    def retain(self) -> None:
        """Let the broker drop what lies before the retained markers. A failure is made good later."""
        expired = self.view.expired
        if expired is None or expired == self._trimmed_to:
            return
        try:
            self.hold().acknowledge(expired)
            self._trimmed_to = expired
        except _OUT_OF_REACH as why:
            log.warning("%s could not be trimmed: %s", self.topic, why)
            self._drop_hold()

    def warn_of_expiry(self, view: LogView) -> None:
        """Warn where the subscription has passed the newest MARKER, which this library never acknowledges.

        The records are still there, until the broker closes their ledger: it is known before anything is lost.
        """
        marker = view.newest_at
        try:
            _, passed = (None, None) if marker is None else self.hold().positions()
        except _OUT_OF_REACH as why:
            log.info("%s: asking for the positions of %s: %s", self.topic, HOLD, why)
            self._drop_hold()
            return
        if marker is not None and passed is not None and passed >= EntryId(marker.ledger, marker.entry):
            log.warning(
                '%s: the broker no longer retains the newest MARKER for the subscription "%s". A message TTL or a '
                "backlog quota is in force, or somebody has moved the subscription. A job that is down or idle for "
                "long loses what it knows of its output. Its next start is refused with DamagedLog. Exempt the topic "
                "from a TTL with pulsar-admin topicPolicies set-message-ttl --ttl 0 %s, and give the sink admin_url. "
                "It then checks at each start",
                *(self.topic, HOLD, self.topic),
            )

    def close(self) -> None:
        """Close what is open. The ownership stays until another driver takes over."""
        ports = (self._producer, self._hold)
        self._producer = self._hold = None
        for port in ports:
            if port is not None:
                try:
                    port.close()
                except EosError as why:
                    log.info("closing %s: %s", self.topic, why)


def _no_more_records(why: Refused) -> RefusedForGood:
    """Return the error of a control topic that was terminated: what helps for a topic of rows does not help here."""
    advice = f"The sink's own control topic was terminated, so no batch can be noted in it.{WAYS_OUT}"
    return RefusedForGood(why.asked, why.code, why.detail, advice)


def _shut_out(topic: str) -> str:
    """Say what to do about a backlog quota that never passes by itself: our own subscription uses it up."""
    command = "pulsar-admin topicPolicies set-backlog-quota --policy producer_request_hold"
    return (
        f'A backlog quota shuts the sink out of its own control topic, for good. The subscription "{HOLD}" retains the '
        f"records of the newest batches. Exempt the topic, from a quota by age with {command} --type message_age "
        f"--limitTime=-1 {topic}, from one by size with {command} --type destination_storage --limit=-1 {topic}"
    )
