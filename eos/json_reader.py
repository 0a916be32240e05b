"""JSON that another process wrote: a checkpoint's notes, records of a topic, options, a token."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn


def read_json(text: str | bytes, each_object: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Return what a text says. A reader has to expect one error alone, whatever the text is.

    Args:
        text: JSON, in UTF-8, UTF-16 or UTF-32 if it is bytes.
        each_object: makes a value of the members of each object. Default: a dict.

    Raises:
        ValueError: it is not JSON, is nested deeper than Python's stack, or has a number that no float holds. NaN and
            1e999 are such numbers: a reader that expects a whole number would fail at them with another error.
    """
    try:
        return json.loads(text, parse_constant=_refused, parse_float=_finite, object_pairs_hook=each_object)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _refused(number: str) -> NoReturn:
    raise ValueError(f"it has the number {number}")


def _finite(number: str) -> float:
    value = float(number)
    return value if abs(value) != float("inf") else _refused(number)
