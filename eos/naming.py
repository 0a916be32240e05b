"""The name of a caller's function, for messages and logs."""

from __future__ import annotations

from functools import partial


def name_of(function: object) -> str:
    """Return the name of a function or of a callable's class, and nothing of what is bound to it: it may be secret."""
    while isinstance(function, partial):
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"
