"""The options of the writers by name: those of `eos.sink` that mean something there, as texts and in any case.

A table in SQL has one list of options, for reading and for writing. So each side passes over what only the other
side knows, once the list asks for a guarantee.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from typing import NoReturn, get_args

from eos.config import Cluster
from eos.errors import InvalidInput
from eos.json_reader import read_json
from eos.option_names import VALUE_FORMAT, did_you_mean, same_name, spelling_key, whole_number
from eos.pulsar.net.service_url import addresses
from eos.sinks.columns import BUILT
from eos.sinks.options import Guarantee, SinkOptions, checked
from eos.source.table import OPTIONS as READING
from eos.source.table import SYNONYMS

SERVICE_URL = "service.url"

_ONLY_THE_SINK: Mapping[str, str] = {
    "name": "nothing is found again by a name here. A writer by name has no control log",
    "register_schema": "register the schema before: pulsar-admin schemas upload --filename FILE TOPIC",
    "ignore_null_fields": "it is about JSON. Make it in the DataFrame, to_json(struct(*), map('ignoreNullFields', "
    "'false')) as value",
    "transaction_timeout_s": "it is about transactions, and there are none here",
    "markers_kept": "it is about the control log, and there is none here",
    "control_namespace": "it is about the control log, and there is none here",
    "principal": "it is about the control log, and there is none here",
    "small_batch_rows": "rows always go by tasks here",
    "attempts": "Spark runs a task again as often as spark.task.maxFailures says",
    "observer": "functions can't be given as text. Use foreachBatch(eos.sink(…))",
    "metrics": "functions can't be given as text. Use foreachBatch(eos.sink(…))",
}
"""{an option of `eos.sink` that a writer by name does not take: why, and what to do}."""

_ANSWERS: Mapping[str, str] = {
    "path": "save() and start() take no path here. Name the topic by the option topic",
    "topics": "a writer has one topic, by the option topic; without it a column `topic` names each row's",
    "kafka.bootstrap.servers": 'this writes to Pulsar. Use service.url="pulsar://host:6650"',
    "pulsar.producer.compressiontype": "use compression",
    "pulsar.producer.hashingscheme": "use key_hash",
    "pulsar.client.authpluginclassname": "use token, basic, oauth2, or tls_certificate and tls_key",
    "pulsar.client.authparams": "use token, basic, oauth2, or tls_certificate and tls_key",
}
"""{a name in lower case that is likely here and wrong: what to do}."""

_NOT_HERE = [one for one in get_args(Guarantee) if one != "at-least-once"]

_NAME = "by-name"
"""The text in place of the sink's name in the introduction of producers, where nothing is named."""

_OF_SPARK = ("checkpointlocation", "queryname")
"""The options that Spark adds to those of a stream."""

OPTIONS: tuple[Field[object], ...] = tuple(
    one for one in fields(SinkOptions) if one.name not in ("admin_url", *_ONLY_THE_SINK)
)
"""The options of a writer by name, but for the service URL; `eos.sink` describes them."""

_OURS = {one.name: one for one in OPTIONS}
_NAMES = {SERVICE_URL, *_OURS}
_KEYS = {spelling_key(name) for name in _NAMES}
_READING_KEYS = {spelling_key(one.name) for one in READING}
_READS_ONLY = _READING_KEYS - _KEYS - _ANSWERS.keys()
_WRITES_ONLY = _KEYS - _READING_KEYS


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The checked options of a writer by name.

    Attributes:
        sink: the options, as `eos.sink` has them.
        cluster: where to write.
    """

    sink: SinkOptions
    cluster: Cluster


def for_reading(given: Mapping[str, str]) -> Mapping[str, str]:
    """Return the options of a table that is written too, without what only its writer knows.

    A value format that the source does not have, such as "avro", is the writer's: such a table is read as bytes.
    """
    return {
        name: value
        for name, value in given.items()
        if spelling_key(name) not in _WRITES_ONLY
        and not (spelling_key(name) == spelling_key(VALUE_FORMAT) and value.lower() in BUILT)
    }


def parse_write_options(given: Mapping[str, str], call: str) -> WriteOptions:
    """Return the checked options of a writer by name.

    Args: the options, their names in any case; what was called, as an error names it.

    Raises InvalidInput: an option is unknown, missing, doubled, malformed, or of no use here.
    """
    texts = _named(given, call)
    service_url = texts.pop(SERVICE_URL, None)
    if service_url is None:
        raise InvalidInput(f'{call} needs service.url, such as "pulsar://localhost:6650".')
    addresses(service_url)
    if texts.get("guarantee") in _NOT_HERE:
        raise InvalidInput(
            f"guarantee={texts['guarantee']!r} can't be kept by {call}; 'at-least-once' is the one that can."
        )
    values = {name: _value(_OURS[name], text) for name, text in texts.items()}
    options = checked(SinkOptions(name=_NAME, **values))  # type: ignore[arg-type]
    if options.value_format == "json":
        raise InvalidInput(
            f"value_format='json' is not there for {call}. A data source gets Arrow batches, and Spark's to_json is a "
            "function of columns. Make the value in the DataFrame, and leave value_format out: "
            "df.selectExpr('to_json(struct(*)) as value'). INSERT INTO does not write a table whose topic has a JSON "
            "schema. Use eos.write(df, service_url, topic=..., value_format='json', job_id=...)."
        )
    return WriteOptions(options, options.cluster(service_url))


def _named(given: Mapping[str, str], call: str) -> dict[str, str]:
    """Return the texts by our names. Options that only the source knows, and those that Spark adds, are ignored."""
    texts = same_name(given, _NAMES, SYNONYMS)
    for word in texts.keys() - _NAMES:
        if spelling_key(word) not in _READS_ONLY and word.lower() not in _OF_SPARK:
            _refuse(word, call)
    return {name: text for name, text in texts.items() if name in _NAMES}


def _refuse(word: str, call: str) -> NoReturn:
    low = word.lower()
    why = _ANSWERS.get(low) or next(
        (why for name, why in _ONLY_THE_SINK.items() if spelling_key(name) == spelling_key(word)), None
    )
    near = f" {why[0].upper()}{why[1:]}." if why else did_you_mean(low, _NAMES)
    raise InvalidInput(f"{call} has no option {word!r}.{near} It takes {', '.join(sorted(_NAMES))}.")


def _value(option: Field[object], text: str) -> object:
    """Return the text of an option as its type has it. Raises InvalidInput; `checked` looks at the value."""
    kinds = str(option.type).split(" | ")
    if any(kind.startswith("Mapping") for kind in kinds):
        try:
            found = read_json(text)
        except ValueError:
            found = None
        if found is None:  # null neither: an option that is left out is not given as null
            shown = repr(text) if option.repr else ""  # else it is a secret
            raise InvalidInput(f'{option.name}={shown} is not a JSON object, such as {{"name": "text"}}.')
        return found
    if "bool" in kinds:
        if text.lower() not in ("true", "false"):
            raise InvalidInput(f"{option.name}={text!r} is neither true nor false.")
        return text.lower() == "true"
    if "int" in kinds:
        number = whole_number(text.strip())
        if number is None:
            raise InvalidInput(f"{option.name}={text!r} is not a whole number.")
        return number
    if "float" in kinds:
        try:
            return float(text)
        except ValueError:
            raise InvalidInput(f"{option.name}={text!r} is no number.") from None
    return text
