"""A caller's function that returns tokens, made ready to travel to tasks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pyspark import cloudpickle

from eos.config import Provider, Token
from eos.errors import InvalidInput
from eos.pulsar.net.authentication import provider


def portable(token: Token | None) -> str | Provider | None:
    """Return a token as credentials carry it: a function by what it pickles to. Raises InvalidInput where it can't."""
    if token is None or isinstance(token, str):
        return token
    name = _name(token)
    try:
        pickled = cloudpickle.dumps(token)  # type: ignore[no-untyped-call]
    except Exception as error:  # whatever the objects that it holds raise
        why = type(error).__name__  # what it says may show an object with a secret
    else:
        return provider(name, pickled, token)
    raise InvalidInput(
        f"token={name} can't travel to the tasks that write: pickling it raised {why}. Give a function that holds no "
        "lock, connection, session or open file; it can make them when it is called."
    )


def _name(function: Callable[[], str]) -> str:
    """Return the name of a function, and nothing of what is bound to it."""
    while isinstance(function, partial):
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"
