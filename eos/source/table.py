"""The table of the source's options, and what is said to names that other connectors use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["stream", "batch"]
_BOTH: tuple[Kind, ...] = ("stream", "batch")
_STREAM: tuple[Kind, ...] = ("stream",)
_BATCH: tuple[Kind, ...] = ("batch",)


@dataclass(frozen=True, slots=True)
class SourceOption:
    """One option.

    Attributes:
        name: as it is written in docs and messages; every spelling of `eos.option_names` is taken.
        default: in words; "" for none.
        kinds: what reads take it.
        meaning: one line of the docs.
    """

    name: str
    default: str
    kinds: tuple[Kind, ...]
    meaning: str


def _both(name: str, default: str, meaning: str) -> SourceOption:
    return SourceOption(name, default, _BOTH, meaning)


OPTIONS: tuple[SourceOption, ...] = (
    _both("service.url", "required", '"pulsar://host:6650" or "pulsar+ssl://host:6651", several hosts with commas.'),
    _both(
        "admin.url",
        "",
        "`minPartitions`, `maxBytesPerPartition` and `read.from` need it. With it a read warns of "
        "policies that slow it, and knows whether a ledger that a broker passed over is lost. It cuts a range that is "
        "larger than `maxBytesPerPartition`.",
    ),
    _both("topic", "", "one topic with all its partitions, or one partition by its own name."),
    _both("topics", "", "several topics, separated by commas."),
    _both(
        "topicsPattern",
        "",
        "a namespace, and a regular expression for the whole names of topics in it, such as "
        "`persistent://public/default/f.*`. Topics may be added. One that vanishes is a loss. Names that begin with "
        "two underscores are left out.",
    ),
    SourceOption(
        "subscription",
        "",
        _STREAM,
        "the durable subscription that keeps unread messages. Keep it over restarts, and never share it.",
    ),
    _both(
        "subscriptionPrefix",
        "",
        "the same for a read's subscriptions. A stream without `subscription` adds a hash of the topics.",
    ),
    SourceOption(
        "resetSubscription",
        "`false`",
        _STREAM,
        "a new query moves an existing subscription to where the query begins, once for each checkpoint.",
    ),
    _both(
        "startingOffsets",
        "stream: `latest`, batch: `earliest`",
        "the first entry that is read, as `earliest`, `latest` or [JSON by topic](source.md#options).",
    ),
    _both(
        "startingTime",
        "",
        "begin with messages of that publish time, in ISO 8601 with a zone or in milliseconds since 1970, or [JSON by "
        "topic](source.md#options). A later time than the last message's begins after it.",
    ),
    SourceOption("endingOffsets", "`latest`", _BATCH, "the last entry that is read, as `latest` or JSON by topic."),
    SourceOption("endingTime", "", _BATCH, "end before messages of that publish time, written as `startingTime`."),
    SourceOption(
        "retainWhileReading",
        "`false`",
        _BATCH,
        "a durable subscription keeps a range stored while its task reads it. It counts as backlog, so a backlog quota "
        "can stop the topic's producers. Without it, messages that are deleted meanwhile are a loss.",
    ),
    SourceOption(
        "readCompacted",
        "`false`",
        _BATCH,
        "read the newest message of each key of a compacted topic, and later messages, to the last one there is.",
    ),
    _both(
        "valueFormat",
        "`raw`",
        "with `schema` the column `value` has the type of the topic's schema, otherwise bytes.",
    ),
    _both(
        "decryption_keys",
        "",
        'private RSA keys, a JSON object `{"NAME": "file:PATH"}` of PEM files on every machine.',
    ),
    _both("failOnDataLoss", "`true`", "whether a proven loss of data ends the query. Otherwise it is a warning."),
    _both(
        "onDamagedEntry",
        "`fail`",
        "for an entry whose bytes cannot be read, or a message that does not fit the column's type, `fail` ends the "
        "query, `skip` leaves it out with a warning, and `keep` gives [a row that says "
        "why](../how-to/monitor-the-source.md#keep-what-cannot-be-read).",
    ),
    _both(
        "maxMessageBytes",
        "134217728",
        "most bytes of a decompressed entry, and of a message in chunks, up to 1 GiB. A larger one counts as damaged.",
    ),
    _both(
        "read.from",
        "brokers",
        "`brokers`, or past them: [`auto` or `bookies`](../how-to/read-history.md), which passes Pulsar's "
        "authorization of topics.",
    ),
    _both(
        "bookie.addresses",
        "the bookies' ids",
        "addresses of bookies whose id is not an address, as `ID=HOST:PORT`, with commas.",
    ),
    _both("bookie.tls", "`false`", "connections to bookies begin TLS (BookKeeper's `START_TLS`)."),
    _both(
        "bookie.tls_trust_certs", "the system's", "a PEM file of the authorities that signed the bookies' certificates."
    ),
    _both("bookie.tls_verify_hostname", "`true`", "refuse a bookie's certificate that was made for another host."),
    _both("bookie.tls_certificate", "", "a PEM file of a client certificate, whose role the bookies let in."),
    _both("bookie.tls_key", "", "a PEM file of its key."),
    _both(
        "offload.url",
        "",
        "the brokers' secondary storage, such as [`s3://BUCKET`](../how-to/read-history.md#read-offloaded-segments). "
        "With `read.from` as `auto` or `bookies` the source reads offloaded segments there.",
    ),
    _both(
        "offload.credentials",
        "the environment's",
        'its credentials, `"file:PATH"` of a JSON object on every machine, or the object itself.',
    ),
    _both(
        "minPartitions",
        "1",
        "least number of Spark partitions, where there are so many entries. **Gives up the order within a key.**",
    ),
    _both(
        "maxBytesPerPartition",
        "134217728",
        "approximate bytes of a Spark partition. A larger range is cut by its closed ledgers. **A cut gives up the "
        "order within a key.**",
    ),
    SourceOption(
        "maxEntriesPerTrigger",
        "no limit",
        _STREAM,
        "most entries of a micro-batch. An entry of a batching producer has many messages.",
    ),
    SourceOption(
        "minEntriesPerTrigger",
        "no minimum",
        _STREAM,
        "a micro-batch waits for so many entries, or for `maxTriggerDelay`. `availableNow` does not wait.",
    ),
    SourceOption(
        "maxTriggerDelay",
        "`15m`",
        _STREAM,
        "longest wait for `minEntriesPerTrigger`, from the batch before, a number with `ms`, `s`, `m`, `h` or `d`. The "
        "first batch after a start does not wait. Needs `minEntriesPerTrigger`.",
    ),
    SourceOption(
        "maxBytesPerTrigger",
        "no limit",
        _STREAM,
        "approximate bytes of a micro-batch, by the size of the last entries.",
    ),
    SourceOption(
        "targetBatchSeconds",
        "no limit",
        _STREAM,
        "target duration of a micro-batch. The source adapts the batch size to it. Give more than the "
        "trigger's interval.",
    ),
    _both(
        "token",
        "",
        'a token for authentication, or `"file:PATH"` to read it anew at each connection and when it has expired',
    ),
    _both("basic", "", '`"user:password"`, or `"file:PATH"`'),
    _both(
        "oauth2",
        "",
        "tokens by OAuth 2.0, client credentials: a JSON object of `issuer_url`, `client_id` and `client_secret` or "
        "`key_file`, `audience`, `scope`, `trust_certs`, as for the sink; Pulsar's own clients call it `authParams`",
    ),
    _both("tls_trust_certs", "the system's", "a PEM file of trusted authorities"),
    _both("tls_verify_hostname", "`true`", "refuse a certificate made for another host"),
    _both("tls_certificate", "", "a PEM file of a client certificate"),
    _both("tls_key", "", "a PEM file of its key"),
    _both("listener_name", "", "the advertised listener to ask the broker for"),
    _both("request_timeout_s", "30", "seconds to wait for one answer"),
    _both(
        "read_timeout_s",
        "300",
        "seconds until a read fails when nothing comes, although more is stored: its bookies are down, or a ledger is "
        "lost. A message starts the time again, and so does a broker that skips aborted messages. At least 10",
    ),
    _both("connect_timeout_s", "10", "seconds to wait for a connection"),
)
"""Every option, in the order of the docs."""

SYNONYMS = {
    "predefinedsubscription": "subscription",
    "pulsar.client.tlstrustcertsfilepath": "tls_trust_certs",
    "pulsar.client.tlshostnameverificationenable": "tls_verify_hostname",
    "pulsar.client.tlscertificatefilepath": "tls_certificate",
    "pulsar.client.tlskeyfilepath": "tls_key",
    "pulsar.client.listenername": "listener_name",
}
"""{another connector's name, in lower case: the name here, which means the same}."""

_TIME = "use startingTime or endingTime, with an ISO 8601 time or milliseconds since 1970, or JSON of them by topic"
_TOKEN = (
    'use token="…" or token="file:PATH", basic="user:password", oauth2 with the JSON that AuthenticationOAuth2 takes, '
    "or tls_certificate and tls_key"
)
_POLL = "use read_timeout_s, in seconds, which bounds how long a task waits for stored messages"
_DECRYPT = "use decryption_keys, with the files of private keys. A message that can't be decrypted ends the query"
_SUBSCRIPTION = "Pulsar has subscriptions. Use subscription, or subscriptionPrefix"

ANSWERS = {
    "path": "load() takes no path. Name the topic by topic, topics or topicsPattern",
    "subscribe": "use topics, with several topics separated by commas",
    "subscribepattern": "use topicsPattern",
    "assign": "name single partitions by topics, such as t-partition-0,t-partition-1",
    "kafka.bootstrap.servers": 'this source reads Pulsar. Use service.url="pulsar://host:6650"',
    "kafka.group.id": _SUBSCRIPTION,
    "groupidprefix": "use subscriptionPrefix",
    "maxoffsetspertrigger": "use maxEntriesPerTrigger. A producer that batches puts many messages into one entry",
    "maxbytesperbatch": "use maxBytesPerTrigger",
    "minoffsetspertrigger": "use minEntriesPerTrigger, which counts entries of one or many messages",
    "includeheaders": "the column __messageProperties is always there. Select it by .schema(...)",
    "startingtimestamp": _TIME,
    "endingtimestamp": _TIME,
    "startingoffsetsbytimestamp": _TIME,
    "endingoffsetsbytimestamp": _TIME,
    "startingoffsetsbytimestampstrategy": "a startingTime after the last message begins after it, as the strategy "
    "latest says. Leave it out",
    "polltimeoutms": _POLL,
    "kafkaconsumer.polltimeoutms": _POLL,
    "waitingfornonexistedtopic": "a topic that is named must exist. topicsPattern takes topics as they appear",
    "allowdifferenttopicschemas": "topics whose schemas differ are read as bytes, or by a query each",
    "pulsar.client.authpluginclassname": _TOKEN,
    "pulsar.client.authparams": _TOKEN,
    "pulsar.client.usetls": 'use service.url="pulsar+ssl://host:6651"',
    "pulsar.client.tlsallowinsecureconnection": "certificates are always checked. Use tls_trust_certs",
    "pulsar.reader.cryptokeyreader": _DECRYPT,
    "pulsar.reader.cryptofailureaction": _DECRYPT,
    "pulsar.client.operationtimeoutms": "use request_timeout_s, in seconds",
    "pulsar.client.connectiontimeoutms": "use connect_timeout_s, in seconds",
}
"""{another connector's name, in lower case: what to do here}."""

FOREIGN = {
    "pulsar.client.": "this source is not a Java client. It takes",
    "pulsar.reader.": "this source uses no Java reader. It takes",
    "pulsar.admin.": "its admin client is not a Java client, and authenticates as for the brokers. It takes",
    "kafka.": "this source reads Pulsar, not Kafka. It takes",
}
"""{the beginning of names that belong to another client, in lower case: how the refusal begins}."""
