"""The options of the source: their table, and how they are read.

Spark hands option names over in lower case, so a name counts in any case, and in each spelling of `eos.option_names`. A
name that Spark's Kafka source or the other Pulsar connector knows is taken where it means the same, and otherwise
answered with the name here.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from eos.config import MOST_S, Cluster, KeyFiles, Tls
from eos.credentials import credentials_of, tls_of
from eos.errors import InvalidInput
from eos.history.offload.location import OffloadLocation, offload_location
from eos.option_names import did_you_mean, first_doubled, same_name, spelling_key, whole_number
from eos.pickling import PickledByName
from eos.pulsar.net.service_url import addresses, refuse_tls_in_vain, refuse_user
from eos.pulsar.protocol.topics import NAMESPACE, full_name, persistent_name
from eos.pulsar.wire.compression import MAX_BYTES
from eos.pulsar.wire.encryption_keys import key_files
from eos.source.batch_pace import LONGEST_WAIT_S, Limits
from eos.source.boundaries import Boundary, parse_boundary
from eos.source.range_splitter import PART_BYTES
from eos.source.silence import LEAST_READ_TIMEOUT_S, READ_TIMEOUT_S
from eos.source.table import ANSWERS, FOREIGN, OPTIONS, SYNONYMS, Kind

READ_FROM: Final = ("brokers", "bookies", "auto")
"""Where ranges are read; the first is the default. `eos.source.segment_path` has what they mean."""

ON_DAMAGED: Final = ("fail", "skip", "keep")

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(rf"(\d{{1,9}}) ?({'|'.join(_UNITS_S)})")


@dataclass(frozen=True, slots=True)
class SourceOptions(PickledByName):
    """The checked options of `spark.readStream.format("pulsar")`.

    Attributes:
        cluster: how to reach it.
        topics: the topics by name; empty with a pattern.
        pattern: a namespace with a regular expression for the whole own name of a topic in it, or None.
        start, end: where reading begins and ends; the end counts for batches only.
        subscription: the durable subscription of a streaming query; "" for a batch read.
        fail_on_data_loss: whether a proven loss ends the query, or is a warning.
        on_damaged: one of ON_DAMAGED: what becomes of an entry or a message that can't be read. It ends the query, is
            left out with only a line in the log, or comes as a row that says why.
        max_message_bytes: bytes that an entry, or a message in chunks, may have once it is decompressed.
        limits: how much a micro-batch may hold; None: everything there is.
        admin_url: of the admin API, which tells of ledgers; None: ranges are read whole.
        read_from: one of READ_FROM: where ranges are read.
        bookie_addresses: "host:port" of the bookies whose id is not an address, by their ids.
        bookie_tls: how TLS with bookies goes; None: connections to them are in plain text.
        offload: where offloaded ledgers are read past the brokers; None: they are read through them.
        min_partitions: how many Spark partitions a read is cut into at least, where there are entries enough.
        part_bytes: bytes of entries, about, beyond which a range is cut.
        compacted: whether a batch reads what compaction left of the topics.
        retain_while_reading: whether a subscription keeps a range stored while a batch read's task reads it.
        typed: whether `value` has the type of the topics' registered schema.
        decryption_keys: the private keys, by name and file, with which encrypted messages are read.
        prefix: what the names of the subscriptions begin with that are made beside the query's own; None: nothing.
        reset_subscription: whether a new query moves a subscription that exists to where the query begins.
        read_timeout_s: seconds after which a read fails that gets nothing, although its end is stored.
    """

    cluster: Cluster
    topics: tuple[str, ...]
    pattern: str | None
    start: Boundary
    end: Boundary
    subscription: str
    fail_on_data_loss: bool
    limits: Limits | None
    admin_url: str | None = None
    read_from: str = READ_FROM[0]
    bookie_addresses: tuple[tuple[str, str], ...] = ()
    bookie_tls: Tls | None = None
    offload: OffloadLocation | None = None
    min_partitions: int = 1
    part_bytes: int = PART_BYTES
    compacted: bool = False
    retain_while_reading: bool = False
    typed: bool = False
    decryption_keys: KeyFiles = ()
    prefix: str | None = None
    reset_subscription: bool = False
    on_damaged: str = ON_DAMAGED[0]
    max_message_bytes: int = MAX_BYTES
    read_timeout_s: float = READ_TIMEOUT_S


def kind_of(given: Iterable[str]) -> Kind:
    """Return which kind of read options are for: only a streaming query has a subscription. Args: their names."""
    ours = {name for name in map(_ours, given) if name is not None}
    kinds = {_NAMES[spelling_key(name)].kinds for name in ours}
    if ("batch",) in kinds:
        return "batch"
    return "stream" if ("stream",) in kinds or "subscriptionPrefix" in ours else "batch"


def parse_options(given: Mapping[str, str], kind: Kind) -> SourceOptions:
    """Return the checked options of a streaming query or a batch read.

    Args: the options, their names in any case; what they are for.

    Raises:
        InvalidInput: an option is unknown, missing, doubled, malformed, or not for this kind of read.
    """
    read = _Read(given, kind)
    topics, pattern = _topics(read)
    start = _boundary(read, "startingOffsets", "startingTime", "latest" if kind == "stream" else "earliest")
    end = _boundary(read, "endingOffsets", "endingTime", "latest") if kind == "batch" else Boundary("latest")
    limits = _limits(read)
    return SourceOptions(
        cluster=_cluster(read),
        topics=topics,
        pattern=pattern,
        start=start,
        end=end,
        subscription=_subscription(read, topics, pattern) if kind == "stream" else "",
        fail_on_data_loss=read.flag("failOnDataLoss", True),
        limits=limits if limits != Limits() else None,
        admin_url=_admin_url(read),
        read_from=read.one_of("read.from", READ_FROM),
        bookie_addresses=_bookie_addresses(read.text("bookie.addresses")),
        bookie_tls=_bookie_tls(read.flag("bookie.tls", False), read.tls("bookie.")),
        offload=_offload(read),
        min_partitions=read.number("minPartitions") or 1,
        part_bytes=read.number("maxBytesPerPartition") or PART_BYTES,
        compacted=_compacted(read, start, end),
        retain_while_reading=read.flag("retainWhileReading", False),
        typed=read.one_of("valueFormat", ("raw", "bytes", "schema")) == "schema",
        on_damaged=read.one_of("onDamagedEntry", ON_DAMAGED),
        max_message_bytes=read.number("maxMessageBytes", 2**30) or MAX_BYTES,
        decryption_keys=() if (keys := read.text("decryption_keys")) is None else key_files(keys),
        prefix=read.text("subscriptionPrefix") or read.text("subscription"),
        reset_subscription=read.flag("resetSubscription", False),
        read_timeout_s=read.seconds("read_timeout_s", LEAST_READ_TIMEOUT_S) or READ_TIMEOUT_S,
    )


_NAMES = {spelling_key(option.name): option for option in OPTIONS}


class _Read:
    """The given options by their names in this project."""

    def __init__(self, given: Mapping[str, str], kind: Kind) -> None:
        self._values: dict[str, str] = same_name(given, (option.name for option in OPTIONS), SYNONYMS)
        for name in self._values:
            _refuse_unknown(name)
            kinds = _NAMES[spelling_key(name)].kinds
            if kind not in kinds:
                raise InvalidInput(f"option {name!r} is for a {kinds[0]} read. This is a {kind} read. Leave it out.")

    def text(self, name: str) -> str | None:
        return self._values.get(name)

    def flag(self, name: str, default: bool) -> bool:
        value = self._values.get(name, str(default)).lower()
        if value not in ("true", "false"):
            raise InvalidInput(f"{name}={value!r} is neither true nor false.")
        return value == "true"

    def tls(self, prefix: str = "") -> Tls:
        """Return the options of TLS whose names begin with this prefix."""
        certs, certificate, key = (self.text(f"{prefix}tls_{name}") for name in ("trust_certs", "certificate", "key"))
        return tls_of(certs, self.flag(f"{prefix}tls_verify_hostname", True), certificate, key, prefix)

    def one_of(self, name: str, words: tuple[str, ...]) -> str:
        """Return an option that is one of some words; the first is the default."""
        value = self._values.get(name, words[0]).lower()
        if value not in words:
            raise InvalidInput(f"{name}={value!r} is neither {' nor '.join(words)}.")
        return value

    def number(self, name: str, most: int = 2**63 - 1) -> int | None:
        if (value := self._values.get(name)) is None:
            return None
        number = whole_number(value)
        if not number:
            raise InvalidInput(f"{name}={value!r} is not a whole number of 1 or more.")
        if number > most:
            raise InvalidInput(f"{name}={value!r} is too large. It must be at most {most}. Or leave it out.")
        return number

    def seconds(self, name: str, least: float = 0.1) -> float | None:
        if (value := self._values.get(name)) is None:
            return None
        try:
            seconds = float(value)
        except ValueError:
            seconds = 0.0
        if not least <= seconds < math.inf:
            raise InvalidInput(f"{name}={value!r} is not a number of seconds of {least:g} or more.")
        if seconds > MOST_S:
            raise InvalidInput(f"{name}={value!r} is too large. It must be at most {MOST_S:g} seconds.")
        return seconds

    def duration_s(self, name: str) -> float | None:
        """Return the seconds of an option that is written as Spark writes times."""
        value = self._values.get(name)
        if value is None:
            return None
        found = _DURATION.fullmatch(value.strip().lower())
        if found is None or int(found[1]) == 0:
            raise InvalidInput(f"{name}={value!r} can't be read. Give a number with ms, s, m, h or d, such as 15m.")
        return int(found[1]) * _UNITS_S[found[2]]


def _bookie_addresses(text: str | None) -> tuple[tuple[str, str], ...]:
    """Return id and "host:port" of each bookie of `bookie.addresses`. Raises InvalidInput for one without either."""
    pairs = [one.strip().partition("=") for one in text.split(",")] if text is not None else []
    for bookie, _, address in pairs:
        host, _, port = address.rpartition(":")
        if not bookie or not host or not port.isdecimal():
            raise InvalidInput(
                f"bookie.addresses={text!r} must name each bookie with its host and port, with commas between them, as "
                'in "bookie-0=10.0.0.5:3181,bookie-1=10.0.0.6:3181". Bookies whose id is an address need no entry.'
            )
    return tuple((bookie, address) for bookie, _, address in pairs)


def _bookie_tls(wanted: bool, given: Tls) -> Tls | None:
    """Return how TLS with bookies goes; None for none. Args: whether `bookie.tls` is true; what `bookie.tls_…` say.

    Raises InvalidInput for what has no effect without TLS.
    """
    if not wanted and given != Tls():
        raise InvalidInput(
            "the options bookie.tls_… have no effect without TLS, and bookie.tls is not true. Connections to bookies "
            "would be in plain text. Give bookie.tls=true too, or leave those options out."
        )
    return given if wanted else None


def _limits(read: _Read) -> Limits:
    most, least = read.number("maxEntriesPerTrigger"), read.number("minEntriesPerTrigger")
    wait_s = read.duration_s("maxTriggerDelay")
    if wait_s is not None and least is None:
        raise InvalidInput(
            "maxTriggerDelay bounds how long a micro-batch waits for minEntriesPerTrigger, which is not given. "
            "Give both, or leave it out."
        )
    if most is not None and least is not None and least > most:
        raise InvalidInput(
            f"minEntriesPerTrigger={least} is more than maxEntriesPerTrigger={most}. Make it at most as large."
        )
    return Limits(
        most, read.number("maxBytesPerTrigger"), read.seconds("targetBatchSeconds"), least, wait_s or LONGEST_WAIT_S
    )


def _ours(word: str) -> str | None:
    """Return our name of an option; None: it has none."""
    option = _NAMES.get(spelling_key(SYNONYMS.get(word.lower(), word)))
    return None if option is None else option.name


def _refuse_unknown(word: str) -> None:
    """Raise InvalidInput with the right name for a wrong one."""
    low = word.lower()
    if spelling_key(word) in _NAMES:
        return
    if low in ANSWERS:
        raise InvalidInput(f"the Pulsar source has no option {word!r}: {ANSWERS[low]}.")
    names = ", ".join(option.name for option in OPTIONS)
    for beginning, why in FOREIGN.items():
        if low.startswith(beginning):
            raise InvalidInput(f"the Pulsar source has no option {word!r}: {why} {names}.")
    close = did_you_mean(low, [option.name for option in OPTIONS])
    raise InvalidInput(f"the Pulsar source has no option {word!r}.{close} It takes {names}.")


def _cluster(read: _Read) -> Cluster:
    service_url, token, basic = read.text("service.url"), read.text("token"), read.text("basic")
    if service_url is None:
        raise InvalidInput('the Pulsar source needs service.url, such as "pulsar://localhost:6650".')
    addresses(service_url)
    tls = read.tls()
    refuse_tls_in_vain(tls, service_url, read.text("admin.url"))
    return Cluster(
        service_url=service_url,
        credentials=credentials_of(token, basic, read.text("oauth2"), tls.certificate),
        tls=tls,
        request_timeout_s=read.seconds("request_timeout_s") or 30.0,
        connect_timeout_s=read.seconds("connect_timeout_s") or 10.0,
        listener_name=read.text("listener_name"),
    )


def _admin_url(read: _Read) -> str | None:
    url = read.text("admin.url")
    cutting = next((name for name in ("minPartitions", "maxBytesPerPartition") if read.text(name) is not None), None)
    if url is None and read.text("read.from") not in (None, "brokers"):
        raise InvalidInput(
            f"read.from={read.text('read.from')!r} needs the admin API, which tells where a topic's segments are. "
            'Give admin.url, such as "http://localhost:8080", or leave read.from out to read through the brokers.'
        )
    if url is None and cutting is not None:
        raise InvalidInput(
            f"{cutting} cuts topic partitions by their ledgers. Only the admin API shows them. Give admin.url, "
            f'such as "http://localhost:8080", or leave {cutting} out and use repartition() after the source.'
        )
    refuse_user(url or "")
    if url is not None and not url.startswith(("http://", "https://")):
        raise InvalidInput(f'admin.url={url!r} must begin with http:// or https://, such as "http://localhost:8080".')
    return url


def _compacted(read: _Read, start: Boundary, end: Boundary) -> bool:
    compacted = read.flag("readCompacted", False)
    if compacted and "time" in (start.where, end.where):
        raise InvalidInput(
            "readCompacted reads what compaction left, and no broker looks for a time there: leave out startingTime "
            "and endingTime, and filter by __publishTime."
        )
    if compacted and end.where == "entries":
        raise InvalidInput(
            "readCompacted reads to the last message there is. Compaction may have taken away each key's older "
            "message, so that up to an earlier end keys would be missing. Leave out endingOffsets."
        )
    return compacted


def _topics(read: _Read) -> tuple[tuple[str, ...], str | None]:
    given = [name for name in ("topic", "topics", "topicsPattern") if read.text(name) is not None]
    if len(given) != 1:
        said = " and ".join(given) if given else "none of them"
        raise InvalidInput(f"the Pulsar source needs one of topic, topics and topicsPattern; given: {said}.")
    text = read.text(given[0]) or ""
    if given[0] == "topicsPattern":
        return (), _pattern(text)
    words = [text] if given[0] == "topic" else text.split(",")
    names = [persistent_name(word.strip()) for word in words if word.strip()]
    if not names:
        raise InvalidInput(f"{given[0]}={text!r} names no topic.")
    if (doubled := first_doubled(names)) is not None:
        raise InvalidInput(f"{given[0]} names {doubled} twice. Its rows would come twice.")
    return tuple(names), None


def _pattern(text: str) -> str:
    whole = full_name(text)
    namespace, _, own = whole.removeprefix("persistent://").rpartition("/")
    if not NAMESPACE.fullmatch(namespace):
        raise InvalidInput(
            f"topicsPattern={text!r} must name one tenant and namespace in full. Only the topic's own name may be a "
            'pattern, such as "persistent://public/default/flights-.*".'
        )
    try:
        re.compile(own)
    except re.error as error:
        raise InvalidInput(f"topicsPattern={text!r} is not a regular expression: {error}.") from error
    return whole


def _subscription(read: _Read, topics: tuple[str, ...], pattern: str | None) -> str:
    name, prefix = read.text("subscription"), read.text("subscriptionPrefix")
    if (name is None) == (prefix is None):
        raise InvalidInput(
            "a streaming query needs subscription or subscriptionPrefix, one of the two. It names the durable "
            "subscription that keeps what the query has not read. Keep it over restarts, and give each query its own. "
            "A prefix makes another name for other topics. Give subscription if the topics of the query may change."
        )
    if not (name or prefix or "").strip():
        raise InvalidInput("subscription and subscriptionPrefix must not be empty.")
    if prefix is None:
        return str(name)
    selected = pattern if pattern is not None else "\n".join(sorted(topics))
    return f"{prefix}-{hashlib.sha256(selected.encode()).hexdigest()[:8]}"


def _boundary(read: _Read, offsets: str, time: str, default: Literal["earliest", "latest"]) -> Boundary:
    return parse_boundary({name: read.text(name) for name in (offsets, time)}, offsets, time, default)


def _offload(read: _Read) -> OffloadLocation | None:
    url, credentials = read.text("offload.url"), read.text("offload.credentials")
    if url is None:
        if credentials is not None:
            raise InvalidInput("offload.credentials is of no use without offload.url. Give both, or leave it out.")
        return None
    if read.one_of("read.from", READ_FROM) == "brokers":
        raise InvalidInput(
            "offload.url is read only past the brokers. Give read.from as auto or bookies too, or leave it out: then "
            "brokers read what was offloaded."
        )
    return offload_location(url, credentials or "")
