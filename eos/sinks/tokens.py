"""A caller's function that returns tokens, made ready to travel to tasks."""

from __future__ import annotations

from pyspark import cloudpickle

from eos.config import Provider, Token
from eos.errors import InvalidInput
from eos.naming import name_of
from eos.pulsar.net.authentication import provider


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
        "lock, connection, session or open file; it can make them when it is called."
    )
