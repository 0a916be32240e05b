"""The options of the sink: every one checked when the sink is made, long before the first batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from functools import wraps
from inspect import signature
from typing import Literal, ParamSpec, TypeVar, cast, get_args

from pyspark import cloudpickle

from eos.commit.control_topic import control_topic, control_topic_in
from eos.config import (
    BATCHINGS,
    COMPRESSION_OPTIONS,
    KEY_HASHES,
    MOST_S,
    Batching,
    Cluster,
    CompressionOption,
    EncryptionKeys,
    KeyHash,
    OAuth2Options,
    Provider,
    Token,
    name_of,
)
from eos.credentials import credentials_of, tls_of
from eos.delivery.row_writer import WriteSettings
from eos.errors import InvalidInput
from eos.metrics.batch import Observers
from eos.option_names import did_you_mean, plain_value_format, same_name
from eos.pulsar.net.authentication import provider
from eos.pulsar.net.service_url import refuse_tls_in_vain
from eos.pulsar.protocol.topics import NAMESPACE, valid_topic
from eos.pulsar.wire.encryption_keys import public_keys
from eos.schema.proposal import FULL_NAME, NO_NAMES
from eos.sinks.columns import NAMED, VALUE_FORMATS, ValueFormat
from eos.sinks.producer_properties import check_properties, introduction
from eos.steps import Observer, unobserved

MIB = 1024 * 1024

Guarantee = Literal["exactly-once", "at-least-once"]

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


@dataclass(frozen=True, kw_only=True)
class SinkOptions:
    """The options of `eos.sink()`. Each option is described there."""

    name: str
    topic: str | None = None
    guarantee: Guarantee = "exactly-once"
    value_format: ValueFormat = "raw"
    register_schema: str | None = None
    ignore_null_fields: bool | None = None
    key: str | None = None
    ordering_key: str | None = None
    event_time: str | None = None
    properties: str | None = None
    deliver_at: str | None = None
    partition: str | None = None
    key_hash: KeyHash = "murmur3"
    compression: CompressionOption = "none"
    batching: Batching = "default"
    chunking: bool = False
    encryption_keys: Mapping[str, str] | None = field(default=None, repr=False)
    transaction_timeout_s: float = 600.0
    max_in_flight_bytes: int = 32 * MIB
    small_batch_rows: int = 1_000
    attempts: int = 5
    request_timeout_s: float = 30.0
    connect_timeout_s: float = 10.0
    token: Token | None = field(default=None, repr=False)
    basic: str | None = field(default=None, repr=False)
    oauth2: OAuth2Options | None = field(default=None, repr=False)
    tls_trust_certs: str | None = field(default=None, repr=False)
    tls_verify_hostname: bool = True
    tls_certificate: str | None = field(default=None, repr=False)
    tls_key: str | None = field(default=None, repr=False)
    listener_name: str | None = None
    subscription_prefix: str | None = None
    admin_url: str | None = None
    control_namespace: str | None = None
    markers_kept: int = 1_000
    principal: str | None = None
    producer_properties: Mapping[str, str] | None = None
    observer: Observer = unobserved
    metrics: Observers | None = field(default=None, repr=False)

    @property
    def public_keys(self) -> EncryptionKeys:
        """The public keys that rows are encrypted by, once the options are checked; none: they go in the clear."""
        return tuple(sorted((self.encryption_keys or {}).items()))

    @property
    def named(self) -> dict[str, str]:
        """{a part of a message: the column that an option names for it}."""
        given = {part: getattr(self, part) for part in NAMED}
        return {part: column for part, column in given.items() if column is not None}

    @property
    def control_topic(self) -> str:
        """The control topic: in `control_namespace`, else in that of `topic`, else in public/default."""
        if self.control_namespace:
            return control_topic_in(self.control_namespace, self.name)
        return control_topic(self.name, self.topic or "persistent://public/default/any")

    def cluster(self, service_url: str) -> Cluster:
        """Return how to reach the cluster with these options.

        Raises InvalidInput for a service URL that is not a text, for two ways to authenticate, for a function that
        can't be pickled, for a secret in place of a path, for half of a client certificate, for a user in the service
        URL, and for a TLS option where neither the service URL nor `admin_url` asks for TLS.
        """
        if not isinstance(service_url, str):
            raise InvalidInput(
                f'service_url= is {type(service_url).__name__}. It must be a str, such as "pulsar://host:6650".'
            )
        tls = tls_of(self.tls_trust_certs, self.tls_verify_hostname, self.tls_certificate, self.tls_key)
        refuse_tls_in_vain(tls, service_url, self.admin_url)
        return Cluster(
            service_url=service_url,
            credentials=credentials_of(portable(self.token), self.basic, self.oauth2, self.tls_certificate),
            tls=tls,
            request_timeout_s=self.request_timeout_s,
            connect_timeout_s=self.connect_timeout_s,
            listener_name=self.listener_name,
            subscription_prefix=self.subscription_prefix,
        )

    def settings(self, time_limit_s: float, facts: Mapping[str, str | None]) -> WriteSettings:
        """Return how rows become frames by these options.

        Args: seconds that a task may take; what is known of Spark, for the introduction of producers.
        """
        return WriteSettings(
            topic=self.topic,
            key_hash=self.key_hash,
            compression=self.compression,
            batching=self.batching,
            chunking=self.chunking,
            encryption_keys=self.public_keys,
            max_in_flight_bytes=self.max_in_flight_bytes,
            time_limit_s=time_limit_s,
            introduction=introduction(self.name, self.producer_properties, facts, encrypted=bool(self.public_keys)),
            observer=self.observer,
        )


def check_names(
    given: Iterable[str], call: str = "eos.sink()", needs: str = "name", without: Mapping[str, str] | None = None
) -> None:
    """Check the names of the options that a caller gives, before their values.

    Args:
        given: the names.
        call: the function, as an error names it.
        needs: what the function calls the option `name`.
        without: the options that it does not take, and why, as a sentence without the full stop.

    Raises:
        InvalidInput: an option is unknown, or the one that is needed is missing.
    """
    left_out = without or {}
    known = [needs, *(one.name for one in fields(SinkOptions) if one.name not in ("name", *left_out))]
    for option in given:
        if option not in known:
            near = f" {left_out[option]}." if option in left_out else did_you_mean(option, ["service_url", *known])
            raise InvalidInput(f"{call} has no option {option!r}.{near} It takes {', '.join(sorted(known))}.")
    if needs not in given:
        raise InvalidInput(f"{call} needs {needs}=, which finds the control log again after a restart.")


def names_checked(check: Callable[[list[str]], None]) -> Callable[[Callable[_Given, _Made]], Callable[_Given, _Made]]:
    """Have a function take its options in each spelling, and answer a wrong name with InvalidInput, not a TypeError.

    Args:
        check: called with the names of the options that a caller gives. Raises InvalidInput.
    """

    def around(make: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
        positional = [one.name for one in signature(make).parameters.values() if one.kind is one.POSITIONAL_OR_KEYWORD]
        known = {*positional, "name", "job_id", *(one.name for one in fields(SinkOptions))}

        @wraps(make)
        def call(*given: _Given.args, **options: _Given.kwargs) -> _Made:
            by_place = dict(zip(positional, given, strict=False))
            by_name = same_name(options, known)
            if twice := next((name for name in by_place if name in by_name), None):
                raise InvalidInput(f"{twice!r} is given twice, by its place and by its name. Give it once.")
            check([option for option in by_name if option not in positional])
            return make(*given, **by_name)  # type: ignore[arg-type]

        return call

    return around


def checked(options: SinkOptions) -> SinkOptions:
    """Return the options with the topic's name in full, and the text of each public key.

    Raises:
        InvalidInput: an option is of a wrong type or out of range.
    """
    for one in fields(SinkOptions):
        _check_type(one, getattr(options, one.name))
    keys = options.encryption_keys
    full = replace(
        options,
        topic=None if options.topic is None else valid_topic(options.topic),
        value_format=cast("ValueFormat", plain_value_format(options.value_format)),
        encryption_keys=None if keys is None else dict(public_keys(keys)),
    )
    _check_values(full)
    return full


_CHOICES: Mapping[str, tuple[str, ...]] = {
    "guarantee": get_args(Guarantee),
    "value_format": VALUE_FORMATS,
    "key_hash": KEY_HASHES,
    "compression": COMPRESSION_OPTIONS,
    "batching": BATCHINGS,
}

_LEAST: Mapping[str, float] = {
    "transaction_timeout_s": 1,
    "max_in_flight_bytes": MIB,
    "small_batch_rows": 0,
    "attempts": 1,
    "markers_kept": 1,
    "request_timeout_s": 0.1,
    "connect_timeout_s": 0.1,
}
"""{option: the least number}."""

_OF_TRANSACTIONS = ("transaction_timeout_s", "markers_kept", "principal")

_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}


def _check_type(option: Field[object], value: object) -> None:
    if option.name in _CHOICES and not isinstance(value, str):
        raise InvalidInput(
            f"{option.name}={value!r} is {type(value).__name__}. It must be one of {', '.join(_CHOICES[option.name])}."
        )
    annotation = str(option.type)
    words = annotation.split(" | ")
    allowed = [kind for word in words for kind in _TYPES.get(word, ())]
    if not allowed:
        return
    number_for_flag = isinstance(value, bool) and bool not in allowed
    if (value is None and "None" in words) or (isinstance(value, tuple(allowed)) and not number_for_flag):
        return
    shown = repr(value) if option.repr else ""  # else it is a secret
    raise InvalidInput(f"{option.name}={shown} is {type(value).__name__}. It must be {annotation}.")


def _check_values(options: SinkOptions) -> None:
    _check_choices(options)
    _check_numbers(options)
    _check_schema(options)
    _check_callables(options)
    where = options.control_namespace
    if where is not None and not NAMESPACE.fullmatch(where):
        raise InvalidInput(
            f'control_namespace={where!r} is not a namespace. Give tenant and namespace, such as "public/control".'
        )
    check_properties(options.producer_properties, options.token, options.basic, options.oauth2)
    options.control_topic  # noqa: B018  checks the sink's name


def _check_choices(options: SinkOptions) -> None:
    for option, allowed in _CHOICES.items():
        value = getattr(options, option)
        if value not in allowed:
            raise InvalidInput(
                f"{option}={value!r} is unknown.{did_you_mean(str(value), allowed)} "
                f"It must be one of {', '.join(allowed)}."
            )
    if options.guarantee != "exactly-once":
        for option in _OF_TRANSACTIONS:
            if getattr(options, option) != getattr(SinkOptions, option):
                raise InvalidInput(
                    f"{option}= is about transactions, and guarantee={options.guarantee!r} has none. It would be "
                    "ignored. Leave it out."
                )


def _check_numbers(options: SinkOptions) -> None:
    for option, bound in _LEAST.items():
        value = getattr(options, option)
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidInput(f"{option}={value!r} must be a finite number. A wait without an end helps nothing.")
        if value < bound:
            raise InvalidInput(f"{option}={value!r} is too small. It must be at least {bound:g}.")
        if option.endswith("_s") and value > MOST_S:
            raise InvalidInput(f"{option}={value!r} is too large. It must be at most {MOST_S:g} seconds.")


def _check_schema(options: SinkOptions) -> None:
    if options.register_schema is not None:
        if options.value_format not in ("json", "avro"):
            raise InvalidInput(
                "register_schema= is about the schema of columns. Give value_format='json' or 'avro' with it, or leave "
                "it out."
            )
        if not FULL_NAME.fullmatch(options.register_schema) or options.register_schema in NO_NAMES:
            raise InvalidInput(
                f"register_schema={options.register_schema!r} can't name a record of Avro. Give letters of ASCII, "
                "digits and underscores, beginning with no digit, and dots for a namespace, as in 'org.example.Flight'."
                f" The names {', '.join(NO_NAMES)} are types."
            )
    if options.ignore_null_fields is not None and options.value_format != "json":
        raise InvalidInput("ignore_null_fields= is about JSON. Give value_format='json' with it, or leave it out.")


def _check_callables(options: SinkOptions) -> None:
    if not (options.token is None or isinstance(options.token, str) or callable(options.token)):
        raise InvalidInput(
            f'token= is {type(options.token).__name__}. It must be a str (a token or "file:PATH"), or a function that '
            "returns a token."
        )
    if not callable(options.observer):
        raise InvalidInput(
            f"observer= is {type(options.observer).__name__}, and can't be called. See eos.steps.Observer."
        )
    given = () if options.metrics is None or callable(options.metrics) else options.metrics
    if not isinstance(given, (list, tuple)) or not all(callable(one) for one in given):
        raise InvalidInput(
            f"metrics= is {type(options.metrics).__name__}, and can't be called, or holds what can't. Give a function "
            "that takes an eos.metrics.batch.FinishedBatch, or a list of such."
        )


def portable(token: Token | None) -> str | Provider | None:
    """Return a token as credentials carry it: a function by what it pickles to. Raises InvalidInput where it can't."""
    if token is None or isinstance(token, str):
        return token
    name = name_of(token)
    try:
        pickled = cloudpickle.dumps(token)  # type: ignore[no-untyped-call]
    except Exception as error:  # whatever the objects that it holds raise
        why = type(error).__name__  # what it says may show an object with a secret
    else:
        return provider(name, pickled, token)
    raise InvalidInput(
        f"token={name} can't travel to the tasks that write: pickling it raised {why}. Give a function that holds no "
        "lock, connection, session or open file. It can make them when it is called."
    )
