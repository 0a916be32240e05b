"""The brokers, as the plan of a query asks them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from eos.backoff import retried
from eos.config import prefixed
from eos.errors import EosError, InvalidInput, NetworkError, Refused, TopicMissing, Unanswered
from eos.pulsar.net.client import Client
from eos.pulsar.net.entries import MAX_PERMITS, EntryReader
from eos.pulsar.protocol.schemas import Registered
from eos.pulsar.protocol.topics import split_partition
from eos.pulsar.wire.message_id import EntryId, TopicLedger
from eos.source.boundaries import Boundary
from eos.source.errors import Losses
from eos.source.lost_entries import Gaps
from eos.source.offsets import Position, before
from eos.source.options import SourceOptions
from eos.source.policy_warnings import FORBIDDEN, policy_warnings, setting_warnings
from eos.source.range_reader import first_behind
from eos.source.range_splitter import Splitter, splitter, whole
from eos.source.ranges import Found, Range, TopicState
from eos.source.silence import SILENCE_S, ReadTimeout
from eos.source.subscriptions import StartGone, Subscriptions, too_old, undeleted
from eos.source.topic_selection import TopicSelection
from eos.source.unfinished_chunks import Unfinished

if TYPE_CHECKING:
    from eos.pulsar.net.admin import Admin, EntryKind
    from eos.pulsar.net.subscription import Subscription
    from eos.source.value_schema import Choose, ValueSchema

log = logging.getLogger("eos.source")

PATIENCE_S = 60
"""How long a question that can be granted later is asked again. Each may be asked twice: that changes nothing."""

LOOKS_AT_ONCE = 8
"""How many places of a topic are looked at side by side, before its range is cut there."""


def _can_pass(error: Exception) -> bool:
    return isinstance(error, NetworkError) and not isinstance(error, InvalidInput)


_patient = retried(_can_pass, PATIENCE_S, first_s=0.1, longest_s=2)


def _delete(cursor: Subscription, name: str, topic: str) -> None:
    """Delete a subscription; warn where that can't be done."""
    if (error := undeleted(cursor)) is not None:
        log.warning(
            'The subscription "%s" of %s could not be deleted: %s. The broker keeps messages for it, as backlog. '
            "Delete it: eos doctor --remove-leftovers %s",
            *(name, topic, error, topic),
        )
        with suppress(NetworkError, InvalidInput):
            cursor.close()  # while it is connected, it looks as if a read used it


def admin_api(options: SourceOptions) -> Admin:
    """Return a client of the admin API of a query that has `admin.url`."""
    from eos.pulsar.net.admin import Admin  # with httpx: a third of what a planner's or a worker's start takes

    assert options.admin_url is not None, "whoever asks has looked whether there is one"
    cluster = options.cluster
    return Admin(options.admin_url, cluster.credentials, cluster.tls, cluster.request_timeout_s)


class PulsarBrokers:
    """Reaches them by this process's client. Holds one durable subscription on each topic of a streaming query.

    Attributes:
        lose: takes the losses that are found while a query begins.
    """

    def __init__(self, options: SourceOptions) -> None:
        """Args: the checked options."""
        self._options = options
        self.lose = Losses(options.fail_on_data_loss)
        self._client = Client.shared(options.cluster)
        self._selection = TopicSelection(self._client, options, self._load)
        self._subscriptions = Subscriptions(self._client, options, self)
        self._unfinished: dict[str, Unfinished] = {}
        self._plain: set[str] = set()  # topics at whose end a broker without transactions has a message without one
        self._admin_client: Admin | None = None
        self._admin_lock = threading.Lock()

    def topics(self, *, all_named: bool, read: Container[str] = ()) -> Iterable[str]:
        """Return the physical topics that the options select now.

        A query that begins needs all that are named, and fails at once if no broker can be asked. One that runs asks
        again. It leaves out none that it has read (`read`), also where brokers refuse to load one. Raises TopicMissing
        for a named one that is missing, if all of them must be there.
        """
        select = self._selection.physical if all_named else _patient(self._selection.physical)
        return select(all_named, read)

    def selects(self, topic: str) -> bool:
        """Whether the options select a topic, or a partition of it, by its name, be it there or not."""
        return self._selection.selects(topic)

    @_patient
    def begin(self, topic: str, start: Boundary) -> EntryId:
        """Return where the first batch of a query begins (`Subscriptions.begin`)."""
        return self._subscriptions.begin(topic, start)

    @_patient
    def pin(self, topic: str) -> EntryId:
        """Return the place before the first message of a topic that appears (`Subscriptions.pin`)."""
        return self._subscriptions.pin(topic)

    @contextmanager
    def beginning(self) -> Iterator[None]:
        """Begin a new query in this block; delete the subscriptions that it has made where it can't begin."""
        try:
            yield
        except EosError:
            self._subscriptions.unmake_new()
            raise

    @_patient
    def look(self, topic: str, start: Position) -> TopicState:
        """Return where a topic ends, and where the query's subscription stands (`Subscriptions.look`)."""
        state = self._subscriptions.look(topic, start)
        if state.left is None:
            self._unfinished.setdefault(topic, Unfinished(topic, self.open, state.stands.ledger))
            last, cursor = state.last, None if topic in self._plain else self._subscriptions.joined(topic)
            if last is not None and cursor is not None and not cursor.hides_uncommitted():
                self.first(topic, last)  # a reader refuses it if it is of a transaction: no plan may end there
                self._plain.add(topic)
        return state

    def unmake(self, topic: str) -> None:
        """Delete the query's subscription again that a look has made."""
        self._subscriptions.unmake(topic)

    @_patient
    def place(self, topic: str, entry: EntryId) -> EntryId:
        """Return the entry after which the broker puts a cursor that is sent past an entry."""
        return self.sought(topic, entry.next)

    def is_removed_partition(self, topic: str) -> bool:
        """Whether a physical topic that is missing is a partition that its topic still has."""
        return self._client.is_removed_partition(topic)

    def tell_lost(self, topic: str, after: EntryId, up_to: EntryId, came: EntryId) -> None:
        """Raise DataLost, or only warn, where ledgers or entries between two entries are lost.

        Args: the physical topic; both entries; the first message after the one, which lies after the other.
        """
        gaps = Gaps(topic, self.lose, self.open, self.entry_kind, self.may_pass_over)
        gaps.note(Position(after, False), came, up_to)
        gaps.look()

    @_patient
    def before_time(self, topic: str, time_ms: int) -> EntryId:
        """Return the entry after which all was published at that time or later, as the broker finds it."""
        return self.sought(topic, time_ms)

    @_patient
    def must_be_there(self, topic: str, place: EntryId, last: EntryId | None, *, ends: bool = False) -> None:
        """Raise InvalidInput when a read is to begin past the stored entries and the next, or to end past them.

        Args:
            place: the first entry of the read.
            last: the last message that can be delivered. After it there may be an open
                transaction. Only a cursor that is sent there shows this, since the broker puts it back to the end.
            ends: whether `place` is the read's last entry.
        """
        behind = place.next if ends else place
        if last is not None and behind <= last.next:
            return
        end = self.sought(topic, behind)
        if end < before(behind).entry:
            option, verb, word = (
                ("endingOffsets", "ends", "") if ends else ("startingOffsets", "begins", '"earliest" or ')
            )
            raise InvalidInput(
                f"{option} {verb} at {place} on {topic}, but the topic ends with {end}. The entry is one of another "
                f'cluster, or of a topic of this name that was deleted. Name an entry that is there, or {word}"latest".'
            )

    def sought(self, topic: str, where: int | EntryId) -> EntryId:
        """Return the entry after which the broker puts a cursor that is sent to a time (ms since 1970) or an entry."""
        # By a cursor that is not durable: a durable one is backlog from the earliest on, and a quota stops producers.
        stands = self._client.position_of(topic, where, self._named("eos-position"))
        if stands is None:
            raise InvalidInput(too_old(topic))
        return stands

    @_patient
    def last(self, topic: str) -> EntryId | None:
        """Return the last message that can be delivered now, None where there is none.

        A partition that its topic has and that is missing holds nothing. Raises TopicMissing for any other topic.
        """
        try:
            if (cursor := self._subscriptions.joined(topic)) is not None:
                with suppress(StartGone):  # the next look tells
                    return cursor.last_message_id()[0]
            with self.open(topic, None, 1, compacted=self._options.compacted) as reader:
                return reader.last_message_id()[0]
        except TopicMissing:
            if self.is_removed_partition(topic):
                return None
            raise

    def first(self, topic: str, entry: EntryId) -> Found:
        """Return the first message at or after an entry.

        Raises InvalidInput when it was lost, Unanswered when nothing comes for too long.
        """
        return first_behind(topic, entry, self.open, ReadTimeout(self._options.read_timeout_s))

    def firsts(self, topic: str, entries: Sequence[EntryId]) -> list[EntryId | None]:
        """Return the first message at or after each of these entries. None where it was lost."""

        def look(entry: EntryId) -> EntryId | None:
            try:
                return self.first(topic, entry).entry
            except InvalidInput:
                return None

        with ThreadPoolExecutor(LOOKS_AT_ONCE, thread_name_prefix="eos-source") as pool:
            return list(pool.map(look, entries))

    @_patient
    def ledgers(self, topic: str) -> list[TopicLedger]:
        """Return the ledgers of a physical topic, in their order, as the admin API knows them.

        Raises InvalidInput where there is no admin URL, and where the role may not ask.
        """
        if self._options.admin_url is None:
            raise InvalidInput(f"the admin API alone knows the ledgers of {topic}. Give admin.url")
        try:
            return self.ledgers_now(topic)
        except Refused as refused:
            if refused.code not in FORBIDDEN:
                raise
            raise InvalidInput(
                f"{refused}. The source cuts ranges by a topic's ledgers. The admin API shows them to a role that "
                "may consume "
                "the topic. Give it that right, or leave out admin.url and minPartitions"
            ) from refused

    def ledgers_now(self, topic: str) -> list[TopicLedger]:
        """Return the ledgers of a physical topic, in their order, asked for once. Raises NetworkError."""
        with admin_api(self._options) as admin:
            return admin.ledgers(topic)

    def publish_time(self, topic: str, entry: EntryId) -> int:
        """Return when the first message at or after an entry was published, in milliseconds since 1970.

        Raises Unanswered when none comes within a second or so, and what readers raise.
        """
        with self.open(topic, entry if entry.ledger >= 0 else None, 1) as reader:
            found = next((one for one in reader.read(SILENCE_S) if one.id >= entry), None)
        if found is None:
            raise Unanswered(f"no message of {topic} came within {SILENCE_S:g} s that is stored at or after {entry}")
        return found.metadata.publish_time

    def entry_kind(self, topic: str, entry: EntryId) -> EntryKind:
        """Return what a stored entry is, or that its ledger is gone, as the admin API knows it.

        Raises InvalidInput where there is no admin URL; NetworkError.
        """
        if self._options.admin_url is None:
            raise InvalidInput("Only the admin API can tell, so give admin.url")
        return self._admin().entry_kind(topic, entry)

    def may_pass_over(self) -> bool | None:
        """Return whether the broker may pass over entries that it cannot find; None without an admin URL.

        Raises NetworkError.
        """
        return None if self._options.admin_url is None else self._admin().may_pass_over()

    def _admin(self) -> Admin:
        """Return a client of the admin API that stays open, for many questions."""
        with self._admin_lock:
            if self._admin_client is None:
                self._admin_client = admin_api(self._options)
            return self._admin_client

    def warn_of_policies(self, topics: Iterable[str], warn: Callable[[str], None], *, retained: bool = False) -> None:
        """Say what policies do to a read of these physical topics, where there is an admin URL. Raises nothing.

        Args: the topics; takes each text; whether durable subscriptions keep the topics stored meanwhile.
        """
        if self._options.admin_url is None:
            return
        firsts = {split_partition(topic)[0]: topic for topic in sorted(topics, reverse=True)}  # they share policies
        try:
            with (
                admin_api(self._options) as admin,
                ThreadPoolExecutor(LOOKS_AT_ONCE, thread_name_prefix="eos-source") as pool,
            ):
                told = pool.map(lambda one: policy_warnings(admin, *one, retained=retained), firsts.items())
                for text in chain(setting_warnings(admin), chain.from_iterable(told)):
                    warn(text)
        except (InvalidInput, NetworkError) as error:
            warn(f"Whether policies slow this read or let it stop producers can't be known: {error}.")

    def splitter(self) -> Splitter:
        """Return what cuts ranges, as the options want it."""
        if self._options.admin_url is None:
            return whole
        return splitter(self, self._options.min_partitions, self._options.part_bytes)

    @_patient
    def release(self, topic: str, start: EntryId) -> None:
        """Let go of what lies before an entry up to which a query has read, but of no message that is not complete."""
        bound = self._unfinished.setdefault(topic, Unfinished(topic, self.open)).bound(start)
        if bound.entry < 0 <= bound.ledger:  # before a ledger's first entry: let go of the last one before it, if any
            bound = min(bound, self.sought(topic, bound.next))
        if bound.entry >= 0:
            self._subscriptions.acknowledge(topic, bound)

    def open(
        self,
        topic: str,
        start: EntryId | None,
        permits: int | None,
        *,
        stored: bool = False,
        compacted: bool = False,
    ) -> EntryReader:
        """Open a reader of whole entries, as `eos.source.range_reader` does; of what compaction left, if so asked."""
        return self._client.entry_reader(
            topic,
            start,
            stored=stored,
            permits=MAX_PERMITS if permits is None else permits,
            compacted=compacted,
            subscription=self._named("eos-entries"),
        )

    @_patient
    def schema(self, topic: str, version: bytes | None = None) -> Registered | None:
        """Return the newest version of a topic's schema, or the one that a message names; None where there is none."""
        return self._client.schema(topic, version)

    def value_schema(self, choose: Choose | None = None) -> ValueSchema:
        """Return the schema that all selected topics share. Raises TopicMissing, InvalidInput.

        Args: chooses a version of each topic's schema. Default: the newest one.
        """
        from eos.source.value_schema import shared_schema  # it needs Spark, and rows can be looked at without

        # With failOnDataLoss=false a query goes on without a topic that it has read. A new one is refused by its plan.
        named = self._options.fail_on_data_loss
        topics = sorted({split_partition(topic)[0] for topic in self.topics(all_named=named)})
        found = {topic: self.schema(topic) for topic in topics}
        if choose is not None:
            found = {topic: choose(newest, partial(self.schema, topic)) for topic, newest in found.items()}
        return shared_schema(found)

    @contextmanager
    def retained(self, part: Range, name: str) -> Iterator[None]:
        """Keep a range stored meanwhile, by a durable subscription at its start that is deleted at the end.

        The backlog of the subscription keeps messages. Under a backlog quota it can stop the topic's producers. One
        that can't be deleted is warned of: the rows of the range have been read, or an error says why not.

        Args: the range; the subscription's name without the prefix, which no other range of the topic may use.
        """
        start, own = part.start.entry, self._named(name)
        cursor = self._client.subscription(part.topic, own, initial="earliest")
        try:
            if start.entry >= 0:
                cursor.acknowledge(start)
            yield
        finally:
            _delete(cursor, own, part.topic)

    def close(self) -> None:
        """Leave the topics; the subscriptions stay."""
        self._subscriptions.close()
        if self._admin_client is not None:
            self._admin_client.close()

    def _load(self, topic: str) -> None:
        with self.open(topic, None, 1) as reader:
            reader.last_message_id()

    def _named(self, name: str) -> str:
        """Return the name of a subscription that this library makes beside the query's own."""
        return prefixed(self._options.prefix, self._options.cluster.subscription_name(name))
