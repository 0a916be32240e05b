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
    _both("service.url", "required", '`"pulsar://host:port"` or `"pulsar+ssl://host:port"`; several hosts by commas'),
    _both(
        "admin.url",
        "",
        '`"http://host:8080"` or `"https://host:8443"`: the admin API, by whose ledgers topic partitions are cut, so '
        "that more tasks read them. A cut gives up the order within a key, see `maxBytesPerPartition`. With it a read "
        "warns of policies that slow it, and knows whether a ledger that a broker passed over is lost",
    ),
    _both("topic", "", "one topic: all its partitions, or one partition by its own name"),
    _both("topics", "", "several topics, separated by commas"),
    _both(
        "topicsPattern",
        "",
        "a regular expression for whole names, such as `persistent://public/default/f.*`; topics may be added, "
        "one that vanishes is a loss, and those that begin with two underscores are left out",
    ),
    SourceOption(
        "subscription",
        "",
        _STREAM,
        "the durable subscription that keeps what the query has not read; keep it over restarts, never share it",
    ),
    _both(
        "subscriptionPrefix",
        "",
        "streams: the same, with a hash of the selected topics after it; batch reads: what the names of their "
        "subscriptions begin with. A namespace with subscription-auth-mode Prefix demands the role there",
    ),
    SourceOption(
        "resetSubscription",
        "`false`",
        _STREAM,
        "`true`: a new query moves an existing subscription to where the query begins. For its first start only",
    ),
    _both(
        "startingOffsets",
        "stream: `latest`, batch: `earliest`",
        "`earliest`, `latest`, or JSON by topic: the first entry that is read",
    ),
    _both(
        "startingTime",
        "",
        "begin with what was published at that time or later: ISO 8601 with a zone, or milliseconds since 1970",
    ),
    SourceOption("endingOffsets", "`latest`", _BATCH, "`latest`, or JSON by topic: the last entry that is read"),
    SourceOption("endingTime", "", _BATCH, "end before what was published at that time or later"),
    SourceOption(
        "retainWhileReading",
        "`false`",
        _BATCH,
        "`true`: a durable subscription keeps a range stored while its task reads it. It counts as backlog, so a "
        "backlog quota can stop the topic's producers. `false`: messages that are deleted meanwhile are a loss",
    ),
    SourceOption(
        "readCompacted",
        "`false`",
        _BATCH,
        "`true`: read the compacted topic, the newest message of each key, and later messages",
    ),
    _both(
        "valueFormat",
        "`raw`",
        "`raw` or `bytes`: the bytes as they are. `schema`: `value` has the type of the topic's registered schema. "
        "Topics whose schemas differ are refused",
    ),
    _both(
        "decryption_keys",
        "",
        'private RSA keys for encrypted messages: a JSON object `{"NAME": "file:PATH"}` of PEM files on every machine',
    ),
    _both("failOnDataLoss", "`true`", "`false`: a proven loss of data is a warning"),
    _both(
        "onDamagedEntry",
        "`fail`",
        "an entry whose bytes cannot be read: `fail` ends the query and names it, `skip` leaves it out with a warning",
    ),
    _both(
        "maxMessageBytes",
        "134217728",
        "most bytes of a decompressed entry, and of a message in chunks. A larger one counts as damaged",
    ),
    _both(
        "read.from",
        "brokers",
        "`brokers`: through the brokers. `bookies`: past them, from the bookies, by the segments of the topic. `auto`: "
        "closed segments from the bookies, the rest through the brokers. What can't be read past the brokers is read "
        "through them. It goes past Pulsar's authorization of topics; needs `admin.url`",
    ),
    _both(
        "bookie.addresses",
        "the bookies' ids",
        "where bookies are whose id is not an address: `ID=HOST:PORT`, with commas between them",
    ),
    _both("bookie.tls", "`false`", "`true`: connections to bookies begin TLS"),
    _both("bookie.tls_trust_certs", "the system's", "a PEM file of the authorities that bookies are trusted by"),
    _both("bookie.tls_verify_hostname", "`true`", "refuse a bookie's certificate that was made for another host"),
    _both("bookie.tls_certificate", "", "a PEM file of a client certificate, whose role the bookies let in"),
    _both("bookie.tls_key", "", "a PEM file of its key"),
    _both(
        "offload.url",
        "",
        "where the brokers offload ledgers to, such as `s3://BUCKET`, `gs://BUCKET`, "
        "`abfss://CONTAINER@ACCOUNT.dfs.core.windows.net`, `hdfs://HOST:PORT/FOLDER` or `file:///FOLDER`. With "
        "`read.from` as `auto` or `bookies` offloaded segments are read from there, and through the brokers where that "
        "fails",
    ),
    _both(
        "offload.credentials",
        "the environment's",
        'credentials, as `"file:PATH"` of a JSON object such as `{"access_key":"…","secret_key":"…"}` '
        "on every machine, which each task reads, or as the object itself",
    ),
    _both(
        "minPartitions",
        "1",
        "least number of Spark partitions, where there are so many entries. Needs `admin.url`. From topic to topic "
        "**this gives up the order within a key**, since Spark writes the parts of a topic partition side by side",
    ),
    _both(
        "maxBytesPerPartition",
        "134217728",
        "approximate bytes of a Spark partition. A larger range is cut by its closed ledgers. Needs `admin.url`. **A "
        "cut gives up the order within a key**, as with `minPartitions`",
    ),
    SourceOption(
        "maxEntriesPerTrigger",
        "no limit",
        _STREAM,
        "most entries of a micro-batch. An entry of a batching producer has many messages",
    ),
    SourceOption(
        "minEntriesPerTrigger",
        "no minimum",
        _STREAM,
        "a micro-batch waits for so many entries, or for `maxTriggerDelay`. `availableNow` does not wait",
    ),
    SourceOption(
        "maxTriggerDelay",
        "`15m`",
        _STREAM,
        "longest wait for `minEntriesPerTrigger`, from the batch before: a number with `ms`, `s`, `m`, `h` or `d`. The "
        "first batch after a start does not wait",
    ),
    SourceOption(
        "maxBytesPerTrigger",
        "no limit",
        _STREAM,
        "approximate bytes of a micro-batch, by the size of the last entries",
    ),
    SourceOption(
        "targetBatchSeconds",
        "no limit",
        _STREAM,
        "target duration of a micro-batch. The source adapts the batch size to it. Give no less than the trigger's "
        "interval",
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
"""{another connector's name, in lower case: ours, which means the same}."""

_TIME = "use startingTime or endingTime, with an ISO 8601 time or milliseconds since 1970"
_TOKEN = (
    'use token="…" or token="file:PATH", basic="user:password", oauth2 with the JSON that AuthenticationOAuth2 takes, '
    "or tls_certificate and tls_key"
)
_DECRYPT = "use decryption_keys, with the files of private keys; what can't be decrypted ends the query"
_SUBSCRIPTION = "Pulsar has subscriptions: use subscription, or subscriptionPrefix"

ANSWERS = {
    "path": "load() takes no path; name the topic by topic, topics or topicsPattern",
    "subscribe": "use topics, with several topics separated by commas",
    "subscribepattern": "use topicsPattern",
    "assign": "name single partitions by topics, such as t-partition-0,t-partition-1",
    "kafka.bootstrap.servers": 'this source reads Pulsar: use service.url="pulsar://host:6650"',
    "kafka.group.id": _SUBSCRIPTION,
    "groupidprefix": "use subscriptionPrefix",
    "maxoffsetspertrigger": "use maxEntriesPerTrigger; a producer that batches puts many messages into one entry",
    "maxbytesperbatch": "use maxBytesPerTrigger",
    "minoffsetspertrigger": "use minEntriesPerTrigger, which counts entries of one or many messages",
    "includeheaders": "the column __messageProperties is always there; select it by .schema(...)",
    "startingtimestamp": _TIME,
    "endingtimestamp": _TIME,
    "startingoffsetsbytimestamp": _TIME,
    "endingoffsetsbytimestamp": _TIME,
    "polltimeoutms": "waiting for messages needs no option here; request_timeout_s bounds the wait for an answer",
    "waitingfornonexistedtopic": "a topic that is named must exist; topicsPattern takes topics as they appear",
    "allowdifferenttopicschemas": "topics whose schemas differ are read as bytes, or by a query each",
    "pulsar.client.authpluginclassname": _TOKEN,
    "pulsar.client.authparams": _TOKEN,
    "pulsar.client.usetls": 'use service.url="pulsar+ssl://host:6651"',
    "pulsar.client.tlsallowinsecureconnection": "certificates are always checked; use tls_trust_certs",
    "pulsar.reader.cryptokeyreader": _DECRYPT,
    "pulsar.reader.cryptofailureaction": _DECRYPT,
    "pulsar.client.operationtimeoutms": "use request_timeout_s, in seconds",
    "pulsar.client.connectiontimeoutms": "use connect_timeout_s, in seconds",
}
"""{another connector's name, in lower case: what to do here}."""

FOREIGN = {
    "pulsar.client.": "this source is not a Java client; it takes",
    "pulsar.reader.": "this source uses no Java reader; it takes",
    "pulsar.admin.": "its admin client is not a Java client, and authenticates as for the brokers; it takes",
    "kafka.": "this source reads Pulsar, not Kafka; it takes",
}
"""{the beginning of names that belong to another client, in lower case: how the refusal begins}."""
