"""One name for an option in all its spellings: `service.url`, `serviceUrl` and `service_url` are one option.

Spark spells options `startingOffsets`, and Python `starting_offsets`. Each function and `format("pulsar")` take both.
For error messages there is also the known word that was probably meant.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

from eos.errors import InvalidInput

_Value = TypeVar("_Value")

VALUE_FORMAT = "value_format"

CATALOG_QUESTION = "catalog.question"
"""By which the Java class of the catalog asks: `eos.sql.answers`."""


def spelling_key(name: str) -> str:
    """Return what the spellings of one option's name have in common."""
    return name.replace("_", "").replace(".", "").lower()


def same_name(
    given: Mapping[str, _Value], known: Iterable[str], synonyms: Mapping[str, str] = MappingProxyType({})
) -> dict[str, _Value]:
    """Return the options by the names that are known here. Names that are not known stay as they are.

    Args: the options, their names in any spelling; the names that are known, each in one spelling; {another name of an
    option, in lower case: the known one}.

    Raises InvalidInput: an option is given twice, with different values.
    """
    known_by_key = {spelling_key(name): name for name in known}
    found: dict[str, _Value] = {}
    words: dict[str, str] = {}
    for word, value in given.items():
        name = known_by_key.get(spelling_key(synonyms.get(word.lower(), word)), word)
        if name in found and not _equal(name, found[name], value):
            raise InvalidInput(
                f"Option {name!r} is given twice with different values, as {words[name]!r} and as {word!r}. Nothing is "
                "read or written. Give it once."
            )
        found.setdefault(name, value)
        words.setdefault(name, word)
    return found


def first_doubled(names: Iterable[str]) -> str | None:
    """Return the first name, by the alphabet, that is there twice; None where each is there once."""
    return min((name for name, times in Counter(names).items() if times > 1), default=None)


def as_texts(given: object) -> dict[str, str]:
    """Return options as Spark's readers take them: a number and a boolean by their text.

    Raises InvalidInput: they are not a mapping of names, or a value has no such text. The message does not show the
    value, which may be a secret.
    """
    if not isinstance(given, Mapping):
        raise InvalidInput(f"options= is {type(given).__name__}. It must be a dict of options by name.")
    found = {}
    for name, value in given.items():
        if not isinstance(name, str):
            raise InvalidInput(f"The name of an option is {type(name).__name__}. It must be a str.")
        if not isinstance(value, str | bool | int | float):
            raise InvalidInput(
                f"{name}= is {type(value).__name__}. It must be a text, a number, or True or False. Leave the option "
                "out for its default."
            )
        found[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def without_parameters(options: Mapping[str, str], parameters: Mapping[str, tuple[str, str | None]]) -> dict[str, str]:
    """Return the options without those that say the same as a parameter of the function.

    Args: the options, their names in any spelling; {an option: the parameter for it, and its value, None: not given}.
    Raises InvalidInput for an option that says otherwise. It would replace the parameter in silence.
    """
    by_key = {spelling_key(name): parameter for name, parameter in parameters.items()}
    found = {}
    for name, value in options.items():
        parameter, given = by_key.get(spelling_key(name), ("", None))
        if given is None:
            found[name] = value
        elif value != given:
            raise InvalidInput(f"options= has {name!r}, which would replace {parameter}=. Give {parameter}= alone.")
    return found


_MOST_DIGITS = 40


def whole_number(text: str) -> int | None:
    """Return the number that a text of digits says; None for another text.

    Python reads no number of more than 4,300 digits. One that is larger than any limit here stays so without its end.
    """
    return int(text.lstrip("0")[:_MOST_DIGITS] or "0") if text.isdecimal() else None


def plain_value_format(value: object) -> object:
    """Return a value of `value_format` in one spelling: "bytes", as the source says, is "raw", as the sink says."""
    return "raw" if isinstance(value, str) and value.lower() in ("raw", "bytes") else value


def _equal(name: str, one: object, other: object) -> bool:
    if spelling_key(name) == spelling_key(VALUE_FORMAT):
        return plain_value_format(one) == plain_value_format(other)
    return one == other


_SHORT = 5


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the closest known word, whatever its spelling, or an empty string."""
    least = 0.6 if len(word) <= _SHORT else 0.75  # one wrong letter is a larger part of a short word
    by_key = {spelling_key(name): name for name in reversed(list(known))}
    close = difflib.get_close_matches(spelling_key(word), list(by_key), n=1, cutoff=least)
    return f" Did you mean {by_key[close[0]]!r}?" if close else ""
