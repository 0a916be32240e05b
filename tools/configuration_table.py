"""The tables of docs/reference/configuration.md: each option once, with the places where it can be given.

`tools/draw_options.py` draws them. The options, their defaults and their types come from the code.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence

import eos
from eos.by_name.options import OPTIONS as WRITER_OPTIONS
from eos.by_name.options import SERVICE_URL
from eos.cli.connection import connection
from eos.config import Token
from eos.source.table import OPTIONS as SOURCE_OPTIONS
from eos.source.table import SourceOption

PLACES = ("sink", "writes", "reads", "command line", "environment")
GROUPS: Mapping[str, tuple[str, ...]] = {
    "Connection": (
        *("service_url", "admin_url", "topic", "topics", "topics_pattern", "listener_name", "request_timeout_s"),
        *("connect_timeout_s", "read_timeout_s", "client_conf"),
    ),
    "Security": (
        *("token", "basic", "oauth2", "tls_trust_certs", "tls_verify_hostname", "tls_certificate", "tls_key"),
        *("encryption_keys", "decryption_keys", "principal", "subscription_prefix"),
    ),
    "Rows": (
        *("value_format", "register_schema", "ignore_null_fields", "key", "ordering_key", "event_time", "properties"),
        *("deliver_at", "partition", "key_hash", "compression", "batching", "chunking"),
    ),
    "Transactions": ("name", "guarantee", "transaction_timeout_s"),
    "Reading": (
        *("subscription", "reset_subscription", "starting_offsets", "starting_time", "ending_offsets", "ending_time"),
        *("retain_while_reading", "read_compacted", "fail_on_data_loss", "on_damaged_entry"),
    ),
    "Limits": (
        *("max_message_bytes", "min_partitions", "max_bytes_per_partition"),
        *("max_entries_per_trigger", "min_entries_per_trigger", "max_trigger_delay", "max_bytes_per_trigger"),
        "target_batch_seconds",
    ),
    "Expert": (
        *("control_namespace", "markers_kept", "small_batch_rows", "attempts", "max_in_flight_bytes"),
        *("producer_properties", "observer", "metrics", "read_from"),
        *("bookie_addresses", "bookie_tls", "bookie_tls_trust_certs", "bookie_tls_verify_hostname"),
        *("bookie_tls_certificate", "bookie_tls_key"),
        *("offload_url", "offload_credentials"),
    ),
}


_ONLY: Mapping[tuple[str, ...], str] = {("stream",): "streams: ", ("batch",): "batch reads: "}


def key_of(name: str) -> str:
    """Return an option's name in Python's style."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace(".", "_")


def tables() -> dict[str, list[tuple[str, ...]]]:
    """Return the rows of each group: option, type, default, a cell for each of PLACES, and meaning.

    Raises LookupError where an option is in no group, or a group's in no code.
    """
    sink = {one.name: one for one in inspect.signature(eos.sink).parameters.values()}
    writer = {key_of(one.name) for one in WRITER_OPTIONS} | {key_of(SERVICE_URL)}
    source = {key_of(one.name): one for one in SOURCE_OPTIONS}
    commands = inspect.signature(connection, eval_str=True).parameters
    hints, told = typing.get_type_hints(eos.sink), meanings_of_the_sink()
    known = [*sink, *(key for key in [*source, *commands] if key not in sink)]
    grouped = [key for keys in GROUPS.values() for key in keys]
    if sorted(grouped) != sorted(set(known)):
        raise LookupError(
            f"{sorted(set(grouped) ^ set(known))}: in no group, in two, or not in code. Correct GROUPS of {__name__}"
        )

    def row(key: str) -> Iterator[str]:
        yield f"`{key if key in sink or key in commands else source[key].name}`"
        yield type_of(hints[key]) if key in hints else _guessed(source[key]) if key in source else "text"
        of_sink = _default(sink[key].default) if key in sink else None
        of_source = _in_code(source[key].default) if key in source else None
        if of_sink == "none" and of_source is not None:
            of_sink = None  # what it means without the option, the meaning says
        same = None in (of_sink, of_source) or of_sink == of_source
        yield (of_sink or of_source or "none") if same else f"{of_sink}; reads: {of_source}"
        of_command, variable = _help(commands[key]) if key in commands else ("", "")
        yield from ("yes" if key in takers else "" for takers in (sink, writer, source))
        yield f"`--{key.replace('_', '-')}`" if variable else ""
        yield variable
        if key not in source or (key in told and source[key].name == key != "topic"):
            yield told.get(key, of_command)
        else:
            of_reads = _ONLY.get(source[key].kinds, "") + source[key].meaning
            yield of_reads if told.get(key, of_reads) == of_reads else f"{told[key]} Reads: {of_reads}"

    return {group: [tuple(row(key)) for key in keys] for group, keys in GROUPS.items()}


def table(group: str) -> tuple[str, list[tuple[str, ...]]]:
    """Return the head and the rows of a group. Places of commands are left out where no command takes an option."""
    rows = tables()[group]
    shown = len(PLACES) - (0 if any(row[-2] for row in rows) else 2)
    head = f"option | type | default | {'|'.join(PLACES[:shown])} | meaning"
    return head, [(*row[:3], "|".join(row[3 : 3 + shown]), row[-1]) for row in rows]


def meanings_of_the_sink() -> dict[str, str]:
    """Return what the docstring of `eos.sink` says of each parameter."""
    told = re.search(r"^Args:\n(.*?)\n\n", inspect.getdoc(eos.sink) or "", re.MULTILINE | re.DOTALL)
    assert told is not None
    each = re.findall(r"^    (\w+): (.*?)(?=\n    \w|\Z)", told[1], re.MULTILINE | re.DOTALL)
    return {name: " ".join(meaning.split()) for name, meaning in each}


def _help(parameter: inspect.Parameter) -> tuple[str, str]:
    """Return the meaning of a command's option, and the variable that it may come from."""
    meaning, _, variable = str(parameter.annotation.__metadata__[0].help).rpartition(" Or ")
    return meaning, f"`{variable.rstrip('.')}`"


def type_of(hint: object) -> str:
    """Return a type in a user's words."""
    if hint == Token or hint == Token | None:
        return "text or function"
    names = {str: "text", bool: "bool", int: "integer", float: "number", type(None): ""}
    if isinstance(hint, type):
        return names.get(hint, "function" if getattr(hint, "_is_protocol", False) else "dict")
    if typing.get_origin(hint) is typing.Literal:
        return "text"
    if typing.get_args(hint) and typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(text for one in typing.get_args(hint) if (text := type_of(one))))
    return {Callable: "function", Sequence: "list"}.get(typing.get_origin(hint), "dict")


_TYPES = {
    "maxEntriesPerTrigger": "integer",
    "minEntriesPerTrigger": "integer",
    "maxBytesPerTrigger": "integer",
    "read_timeout_s": "number",
}
"""Those of the source's options whose default does not show its type."""


def _guessed(option: SourceOption) -> str:
    if option.name in _TYPES:
        return _TYPES[option.name]
    text = option.default.strip("`")
    if text in ("true", "false"):
        return "bool"
    return "integer" if text.isdecimal() else "number" if text == "no limit" else "text"


def _default(value: object) -> str:
    if value is inspect.Parameter.empty:
        return "required"
    if value is None or callable(value):
        return "none"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _in_code(text: str) -> str:
    if not text:
        return "none"
    return f"`{text}`" if re.fullmatch(r"[a-z0-9]+", text) and text != "required" else text
