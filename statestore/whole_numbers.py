"""Arguments that count something."""

from __future__ import annotations

from statestore.errors import InvalidInput


def check_count(what: str, count: object, least: int = 0) -> None:
    """Refuse a count that is none: what YAML or a command line gives may be 5.0 or "5".

    Raises:
        InvalidInput: it is not a whole number, or is less than the least.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < least:
        raise InvalidInput(f"{what} is {count!r}. Give a whole number, {least} or more")
