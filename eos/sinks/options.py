"""The options of the sink: every one checked when the sink is made, long before the first batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from eos.commit.control_log import control_topic
from eos.config import COMPRESSIONS, KEY_HASHES, Cluster, Compression, Credentials, KeyHash, Tls
from eos.errors import InvalidInput
from eos.sinks.columns import VALUE_FORMATS, ValueFormat, did_you_mean
from eos.sinks.topics import valid_topic
from eos.steps import Observer, unobserved

MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class SinkOptions:
    """What `eos.sink()` takes.

    Attributes:
        topic: where rows go that name no topic themselves; None: each row or write must.
        name: the sink's name. It names the control topic, so it must stay the same over restarts,
            and two jobs must not share one.
        value_format: "raw": the column `value`; "json": an object of all columns without a meaning of their own.
        key_hash: which hash of the key picks the partition: "murmur3" (the default; Flink and Java with
            Murmur3_32Hash), "java" (the default of Java and Go), "boost" (the default of C++ and Python).
        compression: of each batch of messages: "none" (default), "lz4", "zlib", "zstd" or "snappy".
        transaction_timeout_s: after this the broker aborts a batch. It must exceed the longest batch,
            and is how long a dead driver can hold up readers. Default 600.
        max_in_flight_bytes: payload bytes a task may hold between reading rows and their receipts. Default 32 MiB.
        small_batch_rows: batches of up to this many rows are sent by the driver; 0: always by tasks. Default 1000.
        attempts: transactions tried for one batch before the query fails. Default 5.
        request_timeout_s, connect_timeout_s: seconds to wait for an answer, and for a connection. Defaults 30 and 10.
        token: a token for authentication, or "file:PATH" to read it anew at each connection.
        basic: "user:password" for basic authentication, or "file:PATH".
        tls_trust_certs: a PEM file of trusted authorities; None: the system's.
        tls_verify_hostname: refuse a certificate made for another host. Default True.
        tls_certificate, tls_key: PEM files of a client certificate.
        listener_name: the advertised listener to ask the broker for.
        admin_url: the broker's HTTP address; where given, message TTL and retention are checked at start.
        markers_kept: how many of the newest batches the control log remembers with their offsets; so far back a
            savepoint can be brought in step with the output. Default 1000.
        principal: the role the broker knows this job by, where it is known; kept in the control log.
        observer: told before and after each protocol step; for tests and drills. It must be picklable.
    """

    name: str
    topic: str | None = None
    value_format: ValueFormat = "raw"
    key_hash: KeyHash = "murmur3"
    compression: Compression = "none"
    transaction_timeout_s: float = 600.0
    max_in_flight_bytes: int = 32 * MIB
    small_batch_rows: int = 1_000
    attempts: int = 5
    request_timeout_s: float = 30.0
    connect_timeout_s: float = 10.0
    token: str | None = None
    basic: str | None = None
    tls_trust_certs: str | None = None
    tls_verify_hostname: bool = True
    tls_certificate: str | None = None
    tls_key: str | None = None
    listener_name: str | None = None
    admin_url: str | None = None
    markers_kept: int = 1_000
    principal: str | None = None
    observer: Observer = unobserved

    @property
    def control_topic(self) -> str:
        """The control topic: in the tenant and namespace of `topic`, or in public/default."""
        return control_topic(self.name, self.topic or "persistent://public/default/any")

    def cluster(self, service_url: str) -> Cluster:
        """Return how to reach the cluster with these options."""
        return Cluster(
            service_url=service_url,
            credentials=self._credentials(),
            tls=Tls(self.tls_trust_certs, self.tls_verify_hostname, self.tls_certificate, self.tls_key),
            request_timeout_s=self.request_timeout_s,
            connect_timeout_s=self.connect_timeout_s,
            listener_name=self.listener_name,
        )

    def _credentials(self) -> Credentials:
        if self.token is not None:
            return Credentials("token", self.token)
        if self.basic is not None:
            return Credentials("basic", self.basic)
        return Credentials("tls") if self.tls_certificate is not None else Credentials()


def parse_options(given: Mapping[str, Any]) -> SinkOptions:
    """Return the checked options.

    Raises:
        InvalidInput: an option is unknown, missing, of a wrong type or out of range.
    """
    known = {field.name: field for field in fields(SinkOptions)}
    for option in given:
        if option not in known:
            raise InvalidInput(
                f"eos.sink() has no option {option!r}.{did_you_mean(option, known)} "
                f"It takes {', '.join(sorted(known))}."
            )
    if "name" not in given:
        raise InvalidInput("eos.sink() needs name=: it finds the sink's control log again after a restart.")
    for option, value in given.items():
        _check_type(option, value, str(known[option].type))
    options = SinkOptions(**{**given, "topic": valid_topic(given["topic"]) if given.get("topic") else None})
    _check_values(options)
    return options


_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}


def _check_type(option: str, value: object, annotation: str) -> None:
    words = annotation.split(" | ")
    allowed = [kind for word in words for kind in _TYPES.get(word, ())]
    if not allowed:
        return
    number_for_flag = isinstance(value, bool) and bool not in allowed
    if (value is None and "None" in words) or (isinstance(value, tuple(allowed)) and not number_for_flag):
        return
    raise InvalidInput(f"{option}={value!r} is {type(value).__name__}; it must be {annotation}.")


def _check_values(options: SinkOptions) -> None:
    choices: dict[str, tuple[str, ...]] = {
        "value_format": VALUE_FORMATS,
        "key_hash": KEY_HASHES,
        "compression": COMPRESSIONS,
    }
    for option, allowed in choices.items():
        value = getattr(options, option)
        if value not in allowed:
            raise InvalidInput(
                f"{option}={value!r} is unknown.{did_you_mean(str(value), allowed)} "
                f"It must be one of {', '.join(allowed)}."
            )
    least: dict[str, float] = {
        "transaction_timeout_s": 1,
        "max_in_flight_bytes": MIB,
        "small_batch_rows": 0,
        "attempts": 1,
        "markers_kept": 1,
        "request_timeout_s": 0.1,
        "connect_timeout_s": 0.1,
    }
    for option, bound in least.items():
        if getattr(options, option) < bound:
            raise InvalidInput(f"{option}={getattr(options, option)!r} is too small; it must be at least {bound:g}.")
    if options.token is not None and options.basic is not None:
        raise InvalidInput("token= and basic= are two ways to authenticate; give one of them.")
    if (options.tls_certificate is None) != (options.tls_key is None):
        raise InvalidInput("tls_certificate= and tls_key= belong together; give both or neither.")
    if not callable(options.observer):
        raise InvalidInput(f"observer={options.observer!r} can't be called; see eos.steps.Observer.")
    options.control_topic  # noqa: B018  checks the sink's name
