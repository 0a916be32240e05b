"""`eos.sink`: its options as keyword parameters, described here and nowhere else.

docs/ draws its table of options from the docstring of `sink`; `SinkOptions` holds them, checked.
"""

from __future__ import annotations

from collections.abc import Mapping

from eos.config import Batching, CompressionOption, KeyHash, OAuth2Options, Token
from eos.metrics.batch import Observers
from eos.sinks.columns import ValueFormat
from eos.sinks.foreach_batch import noted_if_it_fails
from eos.sinks.options import MIB, Guarantee, SinkOptions, check_names, checked, names_checked
from eos.sinks.sink import Sink
from eos.steps import Observer, unobserved


@noted_if_it_fails
@names_checked(check_names)
def sink(
    service_url: str,
    *,
    name: str,
    topic: str | None = None,
    guarantee: Guarantee = "exactly-once",
    value_format: ValueFormat = "raw",
    register_schema: str | None = None,
    ignore_null_fields: bool | None = None,
    key: str | None = None,
    ordering_key: str | None = None,
    event_time: str | None = None,
    properties: str | None = None,
    deliver_at: str | None = None,
    partition: str | None = None,
    key_hash: KeyHash = "murmur3",
    compression: CompressionOption = "none",
    batching: Batching = "default",
    chunking: bool = False,
    encryption_keys: Mapping[str, str] | None = None,
    transaction_timeout_s: float = 600.0,
    max_in_flight_bytes: int = 32 * MIB,
    small_batch_rows: int = 1_000,
    attempts: int = 5,
    request_timeout_s: float = 30.0,
    connect_timeout_s: float = 10.0,
    token: Token | None = None,
    basic: str | None = None,
    oauth2: OAuth2Options | None = None,
    tls_trust_certs: str | None = None,
    tls_verify_hostname: bool = True,
    tls_certificate: str | None = None,
    tls_key: str | None = None,
    listener_name: str | None = None,
    subscription_prefix: str | None = None,
    admin_url: str | None = None,
    control_namespace: str | None = None,
    markers_kept: int = 1_000,
    principal: str | None = None,
    producer_properties: Mapping[str, str] | None = None,
    observer: Observer = unobserved,
    metrics: Observers | None = None,
) -> Sink:
    """Make a sink for `foreachBatch`: exactly-once, unless `guarantee` names another promise.

    Args:
        service_url: "pulsar://host:6650" or "pulsar+ssl://host:6651", several hosts with commas.
        name: names the sink and its control topic. Keep it over restarts, and never let two jobs share one.
        topic: where all rows go, also those with a column `topic`. None: each row or write names its topic.
        guarantee: "exactly-once": each micro-batch is one transaction. "at-least-once": no transaction. Rows are
            visible as they are written, and after a failure some are there twice.
        value_format: "raw": the column `value`. "json", "avro" or "protobuf": the columns that are not metadata, the
            latter two by the topic's schema. "schema": the column `value`, with the type of the topic's schema.
        register_schema: with "json" and "avro": the name of the record that the sink registers as the topic's schema,
            or extends by missing columns. None: no schema is registered.
        ignore_null_fields: whether a "json" payload leaves null fields out. None: as Spark's
            `spark.sql.jsonGenerator.ignoreNullFields` says, which is true by default.
        key: the column with the message's key. None: `__key`, and with "raw" and "schema" also `key`. A column that is
            named here is not a field of the payload. The next five options work alike.
        ordering_key: the column with the ordering key. None: `__orderingKey` or `ordering_key`.
        event_time: the column with the event time. None: `__eventTime` or `event_time`.
        properties: the column with the properties. None: `__messageProperties` or `properties`.
        deliver_at: the column with the time of delivery. None: `__deliverAt` or `deliver_at`.
        partition: the column with the partition's number. None: `__partition` or `partition`.
        key_hash: the hash of the key that picks the partition: "murmur3" (Flink, and Java with Murmur3_32Hash), "java"
            (the default of the Java and Go clients), "boost" (the default of C++ and Python).
        compression: of each batch of messages, "none", "lz4", "zlib", "zstd", "snappy" or "auto". The last takes zstd
            if it makes a sample smaller by an eighth.
        batching: "default": a batch of messages holds rows of many keys. "key-based": of one ordering key or key, as
            Key_Shared subscriptions need. Many keys with few rows each then cost much more. "none": each row is an
            entry, as consumers with receiverQueueSize=0 need.
        chunking: send a row that is larger than brokers take (5 MiB as a rule) in several entries. False: the row is
            refused.
        encryption_keys: public RSA keys for end-to-end encryption, a dict of names and "file:PATH" of PEM files on the
            driver, or PEM text. The private key of any of them reads the messages.
        transaction_timeout_s: seconds after which the broker aborts a batch. It must exceed the longest batch. A dead
            driver can block readers for so long.
        max_in_flight_bytes: payload bytes that a task may hold between reading rows and their receipts.
        small_batch_rows: batches of up to this many rows go through the driver. 0: always by tasks.
        attempts: transactions tried for one batch before the query fails.
        request_timeout_s: seconds to wait for one answer.
        connect_timeout_s: seconds to wait for a connection.
        token: a token, "file:PATH" of one, or a function without arguments that returns one. The file is read, or the
            function called, at each connection and when the token has expired.
        basic: "user:password", or "file:PATH" of it, which is read at each connection.
        oauth2: OAuth 2.0 client credentials, a dict or its JSON. It has `issuer_url`, and either `client_id` and
            `client_secret`, or `key_file`, the "file:PATH" of a JSON file with both. If the issuer wants them, also
            `audience`, `scope` and `trust_certs`, a PEM file.
        tls_trust_certs: a PEM file of trusted authorities. None: the system's.
        tls_verify_hostname: refuse a certificate that was made for another host.
        tls_certificate: a PEM file of a client certificate.
        tls_key: a PEM file of its key.
        listener_name: the advertised listener to ask the broker for.
        subscription_prefix: what the names of the sink's own subscriptions begin with, before a "-". Keep it over
            restarts. A namespace with subscription-auth-mode Prefix demands the role there.
        admin_url: the admin API. With it the sink refuses to start where a message TTL or a backlog quota threatens the
            control topic.
        control_namespace: "tenant/namespace" of the control topic. Keep it over restarts. None: that of `topic`, or
            public/default without one.
        markers_kept: how many of the newest batches the control log keeps with their offsets. You can bring a savepoint
            in step that is not older.
        principal: the role by which the broker knows this job. The control log keeps it.
        producer_properties: a dict of texts that `pulsar-admin topics stats` shows with each producer of rows. Never a
            secret.
        observer: called before and after each step of the protocol, for tests and drills. It must be picklable.
        metrics: a function, or a list of some, that gets an `eos.metrics.batch.FinishedBatch` for each micro-batch. Its
            errors are logged and fail nothing.

    Raises:
        InvalidInput: an option is wrong, the topic is missing, or the broker is out of reach
            or lacks transactions where they are needed. Nothing has been written.
    """
    options = dict(locals())  # each parameter but the first is an option of the same name
    del options["service_url"]
    return Sink(service_url, checked(SinkOptions(**options)))
