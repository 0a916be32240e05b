"""A caller's function on its way to tasks: named without what it holds, and refused where it can't travel."""

from __future__ import annotations

import functools
import pickle
import threading
from collections.abc import Callable

import pytest

from eos.config import Cluster, Credentials, Provider
from eos.errors import InvalidInput
from eos.pulsar.net.authentication import _functions, secret
from eos.sinks.options import SinkOptions
from eos.sinks.tokens import portable
from tests.waiting import PATIENCE_S

SECRET = "s3cr3t"


def fetch(password: str) -> str:
    return f"token-{password}"


class Vault:
    """A source of tokens that shows its secret where it is printed."""

    def __init__(self) -> None:
        self.password = SECRET
        self.asked = 0

    def __repr__(self) -> str:
        return f"Vault({self.password})"

    def __call__(self) -> str:
        self.asked += 1
        return f"token-{self.asked}"

    def token(self) -> str:
        return self()


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (functools.partial(fetch, SECRET), "fetch"),
        (functools.partial(functools.partial(fetch), SECRET), "fetch"),
        (Vault(), "Vault"),
        (Vault().token, "Vault.token"),
        (lambda: SECRET, "<lambda>"),
    ],
)
def test_a_function_is_named_without_what_is_bound_to_it(function: Callable[[], str], name: str) -> None:
    carried = portable(function)
    assert repr(carried) == str(carried) == f"Provider(name='{__name__}.{name}')"


def test_the_driver_calls_the_function_itself_and_a_task_what_was_pickled() -> None:
    vault = Vault()
    made = portable(vault)
    assert isinstance(made, Provider)
    cluster = Cluster("pulsar://h", Credentials("token", made))
    assert [secret(cluster.credentials, PATIENCE_S) for _ in range(2)] == ["token-1", "token-2"]
    assert vault.asked == 2

    arrived: Cluster = pickle.loads(pickle.dumps(cluster))
    assert arrived == cluster, "a task's client is found again by its cluster"
    assert hash(arrived) == hash(cluster)
    del _functions[made]  # as in another process
    assert [secret(arrived.credentials, PATIENCE_S) for _ in range(2)] == ["token-1", "token-2"], "loaded once"
    assert vault.asked == 2


def test_a_function_that_can_not_be_pickled_is_refused_at_the_call() -> None:
    lock = threading.Lock()

    def token() -> str:
        with lock:
            return SECRET

    with pytest.raises(InvalidInput, match=r"token=\S+token can't travel to the tasks that write: .*TypeError") as told:
        SinkOptions(name="n", token=token).cluster("pulsar://h")
    assert "holds no lock" in str(told.value)


def test_what_pickling_says_is_not_shown() -> None:
    class Unpicklable(Vault):
        def __reduce__(self) -> str:
            raise pickle.PicklingError(f"can't pickle {self!r}")

    with pytest.raises(InvalidInput, match="PicklingError") as told:
        portable(Unpicklable())
    assert SECRET not in str(told.value)
    assert told.value.__context__ is None


def test_texts_stay_texts() -> None:
    assert (portable("file:/a"), portable(None)) == ("file:/a", None)
