"""One run of a query with `guarantee="deduplicated"`: no transaction, no control log; names and numbers that stay.

    hold → prepare → note → send → await receipts → close producers → Spark is told          a batch that is begun
    hold → await writers → look → prepare as it was begun → compare → send the rest → …      one that was begun before

Before anything of a batch is sent, the checkpoint says that it was begun, how, and where the topics ended then. If
anything goes wrong before Spark has noted the end of the batch, the next try looks at what is stored of it, by this run
or by the next one. It must be what the batch begins with, for each of its writers: then the rest is sent, and the
topics hold exactly the rows of that try, whatever the earlier ones would have written. If it is anything else, the
batch is refused. So no row is lost and none is there twice, for any query; one that brings other rows each time does
not go on by itself after a failure. What it rests on is that no earlier try goes on once a replay has seen that none of
its tasks is connected, or that it then writes the same rows. tests/models/numbers.py explores it; why each
crash is safe is told in docs/how-to/guarantees.md.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from math import inf

from eos.commit.registration import Registration
from eos.delivery.alone import Alone
from eos.delivery.begun import BEGUN, Begun, Planned
from eos.delivery.deduplicated import DeduplicatedDelivery, topics_of
from eos.delivery.delivery import Write
from eos.delivery.stored import Found, Positions, look
from eos.delivery.writer import Report
from eos.doctor.deduplication import check_deduplication
from eos.doctor.sinks import read
from eos.errors import DamagedLog, InvalidInput, StaleBatch, TopicMissing
from eos.pulsar.net.admin import Admin
from eos.pulsar.protocol.topics import physical_topics, whole_topic
from eos.pulsar.wire.message_id import EntryId
from eos.sinks.plain import PlainRun, goes_on
from eos.sinks.run import Start
from eos.spark import query as spark

log = logging.getLogger("eos.sink")

_OPTIONS = ("value_format", "ignore_null_fields", "key_hash", "batching", "max_in_flight_bytes")
_OF_SPARK = (
    "spark.sql.shuffle.partitions",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.sql.files.maxPartitionBytes",
    "spark.default.parallelism",
    "spark.master",
)

_ADVICE = (
    "A replay must bring the same rows in the same order to each task: a plan without rand(), uuid() and the like, and "
    "behind a shuffle sorted, as by df.sortWithinPartitions(...). If the query or its settings were changed, start it "
    "as it was, with trigger(availableNow=True), and change it once this batch has ended. If it can't bring these rows "
    'again, guarantee="at-least-once" writes the batch once more; some rows will be there twice'
)


class DeduplicatingRun(PlainRun[DeduplicatedDelivery]):
    """A run that writes each batch once, and goes on where an earlier try stopped.

    Args:
        start: what it begins with; it has a query, and an admin URL.
        registered: what the checkpoint says of an exactly-once sink; None: it had none.
        begun: what it says of earlier runs of this kind; None: there were none.

    Raises InvalidInput for a checkpoint of another sink, for a batch that Spark hands over too late, and for settings
    under which tasks run twice.
    """

    def __init__(self, start: Start, registered: Registration | None, begun: Begun | None) -> None:
        super().__init__(start)
        spark.refuse_speculation(start.session)
        if begun is not None:
            begun.fits(start.options.name)
        if registered is not None:
            goes_on(registered, start)
            _refuse_in_doubt(registered, start)
        self._begun, self._client = begun, start.client
        self._looked = begun is None  # whether the topics were read since the run began
        self._before: dict[str, EntryId] = {} if begun is None else dict(begun.positions)
        self._checked: set[str] = set()
        self._settings = _settings(start)
        cluster, admin_url = start.client.cluster, start.options.admin_url
        assert admin_url is not None, "the options of the sink were not checked"
        self._admin = Admin(admin_url, cluster.credentials, cluster.tls, cluster.request_timeout_s)
        self._positions = Positions(start.client, self._admin)
        limit_s = start.options.request_timeout_s
        self._alone = Alone(start.client, self._admin, start.options.name, limit_s, self._sleep, self._stopped)
        self._delivery = self._delivery_of(start, None if begun is None else begun.rows, inf)

    def close(self) -> None:
        """Close the connections of its own."""
        self._alone.release()
        self._positions.close()
        self._admin.close()
        super().close()

    def _begin(self, batch_id: int, writes: Sequence[Write]) -> DeduplicatedDelivery:
        if self._begun is not None:
            self._begun.refuse_older(batch_id)
        options = self._options
        return DeduplicatedDelivery(self._delivery, batch_id, writes, options.name, options.small_batch_rows)

    def _send(self, batch_id: int, delivery: DeduplicatedDelivery) -> Report:
        """Send the batch, or what is not stored of it."""
        begun = self._begun
        found, gone = Found(), list[str]()
        in_doubt = begun is not None and begun.batch_id == batch_id
        self._alone.hold(delivery.topics[0])
        if begun is not None and (in_doubt or not self._looked):
            noted = {topic for topic in begun.positions if in_doubt or whole_topic(topic) in delivery.topics}
            topics = self._there(noted)
            gone = sorted(noted - topics)
            self._check(topics)
            if in_doubt:
                self._alone.await_writers(sorted(topics))
            since = {topic: begun.positions[topic] for topic in topics}
            found = look(self._client, self._admin, begun.name, batch_id, begun.batch_id, since)
            self._looked = True
            if found.rows and not in_doubt:
                raise StaleBatch(
                    f"batch {batch_id} has {found.rows} rows on its topics, and the checkpoint says that batch "
                    f"{begun.batch_id} was begun last: it is older than the output. Give the checkpoint that belongs "
                    "to the output; or start with a new one and another name, and the rows come again"
                )
        if begun is not None and in_doubt:
            _refuse_deletion(begun, [*found.deleted_from, *gone])
            begun.refuse_other_writes(delivery.topics)
            self._replay(begun, delivery, found)
        else:
            delivery.prepare()
            self._note(batch_id, delivery.planned)
        self._metrics.sends()
        return delivery.send(None)

    def _replay(self, begun: Begun, delivery: DeduplicatedDelivery, found: Found) -> None:
        log.info("batch %d was begun before, and %d rows of it are stored", begun.batch_id, found.rows)
        try:
            delivery.prepare_again(begun.writes, found)
            delivery.compare()
        except InvalidInput as error:
            if not found.rows:
                raise
            changed = begun.changed(self._settings)
            told = f"Changed since: {changed}. " if changed else ""
            raise type(error)(f"{error}. {told}{_ADVICE}") from error

    def _note(self, batch_id: int, planned: tuple[Planned, ...]) -> None:
        """Note a batch as begun, behind what the topics hold now."""
        assert self.query is not None, "a run of this kind needs a query"
        topics = topics_of(planned)
        self._check(topics)
        now = self._positions.now(topics)
        # From where the batch before began: another driver can be ahead of this one by what it sent since.
        since = {topic: self._before.get(topic, now[topic]) for topic in topics}
        self._before |= now
        begun = Begun(self._options.name, batch_id, planned, since, self._settings, self._delivery.last_rows)
        self.query.register(BEGUN, begun.text)
        self._begun = begun

    def _there(self, topics: Collection[str]) -> set[str]:
        """Return which of these physical topics there are: a topic may be made again, with fewer partitions."""
        there: set[str] = set()
        for whole in {whole_topic(topic) for topic in topics}:
            with suppress(TopicMissing):
                there.update(physical_topics(whole, self._client.partitions(whole)))
        return there.intersection(topics)

    def _check(self, topics: Iterable[str]) -> None:
        new = sorted(set(topics) - self._checked)
        check_deduplication(self._admin, new)
        for topic in sorted({whole_topic(one) for one in new}):
            keeping = self._admin.keeping(topic)
            if keeping.retention_minutes == 0 or keeping.retention_mb == 0:
                log.warning(
                    "%s has no retention: once its consumers have read the rows of a batch in doubt, these may be "
                    "deleted, and then that batch is refused. Keep them for as long as the query may be down: "
                    "pulsar-admin topicPolicies set-retention --time TIME --size SIZE %s",
                    topic,
                    topic,
                )
        self._checked |= set(new)


def _refuse_deletion(begun: Begun, deleted_from: Collection[str]) -> None:
    """Refuse a batch of which rows may be deleted. Raises DamagedLog."""
    if deleted_from:
        raise DamagedLog(
            f"it can't be known which rows of batch {begun.batch_id} were on {', '.join(deleted_from)}: what was "
            "stored there when it was begun is deleted, and what came behind it may be too. Read the topics, or ask "
            'their consumers, and decide by hand: guarantee="at-least-once" writes the batch once more, a new '
            "checkpoint and another name leave it to you where to go on. Retention keeps rows until a query is back: "
            "pulsar-admin topicPolicies set-retention --time TIME --size SIZE TOPIC"
        )


def _refuse_in_doubt(registered: Registration, start: Start) -> None:
    """Refuse a batch whose input an exactly-once run before may have committed. Raises InvalidInput, StaleBatch."""
    options = start.options
    view = read(start.client, options.control_topic)
    newest = max((one.batch_id for one in (view.newest, view.unfinished) if one is not None), default=-1)
    if start.batch_id <= newest:
        raise InvalidInput(
            f'batch {start.batch_id} was begun with guarantee="exactly-once", and Spark did not note its end: it may '
            'be committed. Start the query with guarantee="exactly-once" again and let it end in good order, as '
            'trigger(availableNow=True) does; then start it with "deduplicated"'
        )
    jumped = registered.jumped
    if jumped is not None and jumped[0] <= newest <= jumped[1]:
        raise StaleBatch(
            f"the control log has batch {newest}, and this checkpoint's state, which was rescaled, has nothing of it: "
            f"batch {start.batch_id} would write the same input again. Let the query that began it end in good order, "
            "and rescale its checkpoint"
        )


def _settings(start: Start) -> dict[str, str]:
    """Return what decides about which rows a task has, and about their order on a partition."""
    options, conf = start.options, start.session.conf
    ours = {name: str(getattr(options, name)) for name in _OPTIONS}
    return ours | {name: str(conf.get(name, None)) for name in _OF_SPARK}
