"""The parts of a network address that anybody gives as a text: a host, and the number of a port."""

from __future__ import annotations

from eos.option_names import whole_number


def is_host(name: str) -> bool:
    """Tell whether a name can be looked up at all. Each part between dots must have 1 to 63 characters."""
    try:
        return bool(name.encode("idna"))
    except UnicodeError:
        return False


def port_number(text: str) -> int | None:
    """Return the port that a text of digits says, from 1 to 65535; None for another text."""
    number = whole_number(text) or 0
    return number if 0 < number < 65536 else None
