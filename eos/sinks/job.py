"""`eos.write`: a batch DataFrame as one transaction, idempotent by the id of its job.

A job is batch 0 of a query of its own. The job's id names the control log, and the facts below stand where a streaming
query has its offsets. A job has no checkpoint: nothing but the control topic remembers that it was written.
"""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypedDict, Unpack

from pyspark.sql import DataFrame

from eos.commit.control_log import Marker
from eos.commit.decision import JOB, Identity
from eos.config import Batching, Cluster, CompressionOption, KeyHash, OAuth2Options, Token
from eos.delivery.delivery import Write
from eos.errors import DamagedLog, Fenced, IdentityMismatch, InvalidInput, NetworkError, NotCommitted
from eos.json_reader import read_json
from eos.metrics.batch import Observers
from eos.sinks.columns import ValueFormat
from eos.sinks.context import SinkContext
from eos.sinks.foreach_batch import noted_if_it_fails
from eos.sinks.options import SinkOptions, check_names, checked, names_checked
from eos.sinks.run import OwningRun
from eos.spark import query as spark
from eos.spark.pyspark_api import ClassicDataFrame
from eos.steps import Observer

log = logging.getLogger("eos.sink")

LEFT_OUT: Final = {
    "guarantee": "A job is written exactly once for each job id",
    "markers_kept": "A job has one marker",
    "small_batch_rows": "How many rows a job has is not known before it has run",
}
"""Options of `eos.sink` that mean nothing to a job, and why."""

_BATCH: Final = 0

_in_hand: set[tuple[Cluster, str]] = set()
_turn = threading.Lock()


class JobOptions(TypedDict, total=False):
    """The options of `eos.write` besides the job's id. Each option is described at `eos.sink`."""

    topic: str | None
    value_format: ValueFormat
    register_schema: str | None
    ignore_null_fields: bool | None
    key: str | None
    ordering_key: str | None
    event_time: str | None
    properties: str | None
    deliver_at: str | None
    partition: str | None
    key_hash: KeyHash
    compression: CompressionOption
    batching: Batching
    chunking: bool
    encryption_keys: Mapping[str, str] | None
    transaction_timeout_s: float
    max_in_flight_bytes: int
    attempts: int
    request_timeout_s: float
    connect_timeout_s: float
    token: Token | None
    basic: str | None
    oauth2: OAuth2Options | None
    tls_trust_certs: str | None
    tls_verify_hostname: bool
    tls_certificate: str | None
    tls_key: str | None
    listener_name: str | None
    subscription_prefix: str | None
    admin_url: str | None
    control_namespace: str | None
    principal: str | None
    producer_properties: Mapping[str, str] | None
    observer: Observer
    metrics: Observers | None


@dataclass(frozen=True, slots=True)
class JobResult:
    """A committed job.

    Attributes:
        job_id: the job's id.
        wrote: True if this call wrote the job. False if the job was committed before, and this call wrote nothing.
        transaction: the job's Pulsar transaction, as "(coordinator,number)".
        rows, bytes: written by the job, over all topics. Bytes are payload before compression.
        rows_by_topic, bytes_by_topic: the same, by topic.
    """

    job_id: str
    wrote: bool
    transaction: str
    rows: int
    bytes: int
    rows_by_topic: Mapping[str, int]
    bytes_by_topic: Mapping[str, int]


@noted_if_it_fails
@names_checked(partial(check_names, call="eos.write()", needs="job_id", without=LEFT_OUT))
def write(df: DataFrame, service_url: str, *, job_id: str, **options: Unpack[JobOptions]) -> JobResult:
    """Write a batch DataFrame to Pulsar as one transaction, once for each job id.

    The first call that commits writes the job. Every later call with its id, in any process, writes no row and says so.
    If a call died, the next one finds the job committed, or aborts an open transaction, which readers never see, and
    writes the job again. Of two calls at the same time one is fenced.

    Only the control topic knows of the job. It is `__eos-<job_id>` in `control_namespace`, or else in the namespace of
    `topic`, or else in public/default. The same id in another namespace is another job. A durable subscription keeps
    the job's marker there, so neither retention nor compaction removes it. If the topic, the subscription or its
    records are deleted, the next call writes the job again. An administrator, a message TTL, an evicting backlog quota
    or `subscriptionExpirationTimeMinutes` can delete them. With `admin_url` the call refuses a TTL, a quota and such an
    expiration at its start.

    The call refuses another DataFrame under the id of a committed job, if it differs in names or types of its columns,
    the columns that options name, `topic`, `value_format`, `key_hash` or `ignore_null_fields`. It cannot tell other
    rows in the same columns from the committed ones.

    Args:
        df: message columns, see `eos.sinks.columns`. Not a streaming DataFrame.
        service_url: "pulsar://host:6650" or "pulsar+ssl://host:6651", several hosts with commas.
        job_id: names the job for ever, such as "flights-2026-11-23": up to 100 letters, digits, ".", "_" and "-". No
            sink can have this name.
        options: those of `eos.sink`, without `name`, `guarantee`, `markers_kept` and `small_batch_rows`. Spark
            computes and writes the DataFrame within `transaction_timeout_s`.

    Returns:
        What is committed under the id, and whether this call has written it.

    Raises:
        InvalidInput: something must be changed by hand, see its subclasses. Nothing was written.
        IdentityMismatch: the id belongs to another job or to a sink. Nothing was written.
        NotCommitted: every try failed and was aborted. Calling again is safe, also after a TookTooLong.
        CommitUnknown: the outcome could not be settled in time. Calling again is safe, since the control log decides.
        Fenced: another call with this id has begun, and decides about the job.
    """
    _refuse_a_stream(df)
    sink_options = _checked(job_id, options)
    context = SinkContext(service_url, sink_options, job=True)
    context.start()
    context.plan.message(df, None)
    facts = _facts(df, sink_options)
    identity = Identity(f"{JOB}{job_id}", str(uuid.uuid4()), json.dumps(facts), sink_options.principal)
    with _alone(context), context.observed(_BATCH):
        context.metrics.identified(identity)
        run = _taken_over(context, df, identity)
        try:
            found = run.newest
            if found is None:
                run.take(_BATCH, [_planned(context, df)], identity)
            else:
                _refuse_another(job_id, found, facts)
                context.metrics.skipped(found)
                log.info('job "%s": nothing is written, since transaction %s has written it', job_id, found.txn)
            committed = run.newest
        finally:
            run.close()
    assert committed is not None, "a batch that was taken is in the log"
    return JobResult(
        job_id=job_id,
        wrote=found is None,
        transaction=str(committed.txn),
        rows=sum(committed.rows.values()),
        bytes=sum(committed.bytes.values()),
        rows_by_topic=dict(committed.rows),
        bytes_by_topic=dict(committed.bytes),
    )


def _refuse_a_stream(df: DataFrame) -> None:
    if isinstance(df, ClassicDataFrame) and df.isStreaming:
        raise InvalidInput(
            "eos.write() was given a streaming DataFrame, which has no end. Start it as a query. "
            "df.writeStream.foreachBatch(eos.sink(...)) writes each of its micro-batches exactly once."
        )
    of_stream = isinstance(df, ClassicDataFrame) and spark.query_of(df.sparkSession) is not None
    if of_stream or spark.current_query() is not None:
        raise InvalidInput(
            "eos.write() was called from foreachBatch. A job id can't tell a micro-batch that is handed over again "
            "from the next one. Use eos.sink(), which goes by the query's checkpoint."
        )


def _checked(job_id: str, options: JobOptions) -> SinkOptions:
    if not isinstance(job_id, str):
        raise InvalidInput(f"job_id={job_id!r} is {type(job_id).__name__}. It must be str.")
    return checked(SinkOptions(name=job_id, **options))


@contextmanager
def _alone(context: SinkContext) -> Iterator[None]:
    """Refuse a second call in this process while one is writing: both would use one connection. Raises Fenced."""
    key = (context.cluster, context.options.control_topic)
    with _turn:
        if key in _in_hand:
            raise Fenced(
                f'job "{context.options.name}" is being written by another thread of this process. That thread will '
                "report its outcome. This call has written nothing."
            )
        _in_hand.add(key)
    try:
        yield
    finally:
        with _turn:
            _in_hand.remove(key)


def _planned(context: SinkContext, df: DataFrame) -> Write:
    """Return the write of a job that the log does not have. Raises InvalidInput, NotCommitted."""
    try:
        return context.plan.write(df, None)
    except InvalidInput:
        raise
    except NetworkError as error:
        job = context.options.name
        raise NotCommitted(f'job "{job}" is not committed, and nothing of it was written: {error}') from error


def _taken_over(context: SinkContext, df: DataFrame, identity: Identity) -> OwningRun:
    try:
        return OwningRun(context.run(df.sparkSession, None, identity, _BATCH), None)
    except IdentityMismatch as error:
        options = context.options
        raise IdentityMismatch(
            f'job_id="{options.name}" is the name of a sink: {options.control_topic} is the control log of its query. '
            "Nothing is written. Give the job an id of its own."
        ) from error


def _facts(df: DataFrame, options: SinkOptions) -> dict[str, Any]:
    """Return what tells one job from another, as far as it is known before Spark has run: JSON in the marker."""
    return {
        "topic": options.topic,
        "value_format": options.value_format,
        "key_hash": options.key_hash,
        "ignore_null_fields": options.ignore_null_fields,
        "named": options.named,
        "columns": [f"{field.name} {field.dataType.simpleString()}" for field in df.schema.fields],
    }


def _refuse_another(job_id: str, found: Marker, facts: Mapping[str, Any]) -> None:
    """Refuse a DataFrame that is known not to be the one that was written. Raises IdentityMismatch, DamagedLog."""
    try:
        then: dict[str, Any] = dict(read_json(found.offsets))
    except (ValueError, TypeError) as error:
        raise DamagedLog(f'the marker of job "{job_id}" does not tell what was written: {error}') from error
    # A fact that only one of two versions of this library knows says nothing.
    other = [f"{fact} was {then[fact]}, and is {now}" for fact, now in facts.items() if then.get(fact, now) != now]
    if other:
        raise IdentityMismatch(
            f'job "{job_id}" is committed, by transaction {found.txn}, and this is another one: {"; ".join(other)}. '
            "Nothing is written. Give this job an id of its own."
        )
