"""How a function of `foreachBatch` must call the sink, and to which query a call belongs that comes from elsewhere."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import fields
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from pyspark.sql import SparkSession

from eos.commit.decision import Identity
from eos.commit.registration import REGISTRATION, Registration
from eos.errors import EosError, InvalidInput
from eos.sinks.shared_run import failed_without_a_sink, sinks_of
from eos.spark import query as spark
from eos.spark.pyspark_api import ClassicDataFrame

log = logging.getLogger("eos.sink")

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")

IDENTITY_IN_A_QUERY: Final = (
    "sink.batch() was given identity= in foreachBatch. Then neither the query nor its checkpoint would learn of a "
    "batch that fails, and its rows could be missing without a word. Nothing is written. Leave identity= out, and call "
    "the sink in the thread in which Spark runs the function of foreachBatch."
)

_NOT_PINNED: Final = (
    "PySpark runs without pinned threads (PYSPARK_PIN_THREAD=false), so the sink can't tell in which query it was "
    "called, and nothing is written. Unset the environment variable PYSPARK_PIN_THREAD before the session is made."
)


def noted_if_it_fails(call: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """Have a function note the batch in hand as failed where it raises in a batch function, which may swallow that."""

    @wraps(call)
    def around(*given: _Given.args, **options: _Given.kwargs) -> _Made:
        try:
            return call(*given, **options)
        except BaseException as error:
            with suppress(*spark.JVM_GONE):
                name = options.get("name")
                _note(name if isinstance(name, str) else "", (*given, *options.values()), error)
            raise

    return around


def _note(name: str, given: Iterable[object], error: BaseException) -> None:
    """Note what a call raises: by its thread, by the DataFrames that it was given, else by the name of its sink."""
    query = spark.current_query()
    if query is not None:
        failed_without_a_sink(query, name, error)
        return
    for one in given:
        query = spark.query_of(one.sparkSession) if isinstance(one, ClassicDataFrame) else None
        if query is not None:
            failed_without_a_sink(query, name, error)
            query.end_after_batch()  # no error reaches its thread
            return
    if name:
        _note_stray(name, error)


def _note_stray(name: str, error: BaseException) -> None:
    """Note that a sink could not be made in a thread that a batch function may have started.

    A query whose batches go to a sink of this name learns of it. Any other one may have nothing to do with the thread.
    """
    for query in queries_of_stray(None, None, name):
        if query.read(REGISTRATION) is not None or sinks_of(query, name):
            failed_without_a_sink(query, name, error)
        else:
            log.error(
                'The sink "%s" could not be made in a thread of your own. If the batch function of query %s has '
                "started the thread and swallows the error, rows of batch %d are missing. Make the sink before the "
                "query starts. The error was: %s",
                *(name, query.query_id, query.batch_in_hand(), error),
            )


def refuse_another_type(batch_id: object, identity: object = None) -> None:
    """Refuse what is not the id of a batch, and what is not an identity. Raises InvalidInput."""
    if not isinstance(batch_id, int) or isinstance(batch_id, bool):
        raise InvalidInput(f"batch_id={batch_id!r} is {type(batch_id).__name__}. It must be the int that Spark gives.")
    if batch_id < 0:
        raise InvalidInput(f"batch_id={batch_id} is negative. Batches are numbered from 0, as Spark does.")
    if identity is None:
        return
    if not isinstance(identity, Identity):
        raise InvalidInput(
            f"identity= is {type(identity).__name__}. It must be an eos.Identity(query_id, run_id, offsets)."
        )
    for one in fields(Identity):
        value = getattr(identity, one.name)
        if not isinstance(value, str) and not (value is None and one.name == "principal"):
            raise InvalidInput(
                f"{one.name} of the eos.Identity of batch {batch_id} is {type(value).__name__}. It must be a text. "
                "Offsets of another type can be given as the JSON of them."
            )


def refuse_another_batch(query: spark.Query, batch_id: int) -> None:
    """Refuse an id that the caller made up: the log may know it, and these rows would be skipped as a replay.

    Raises InvalidInput, and what py4j does.
    """
    in_hand = query.batch_in_hand()
    if batch_id != in_hand:
        raise InvalidInput(
            f"The sink was called with batch_id={batch_id}, and Spark runs batch {in_hand} of the query. The control "
            f"log knows a batch by its id, so the rows of batch {in_hand} could be taken for those of batch "
            f"{batch_id}. Nothing of batch {in_hand} is written. Pass the id that foreachBatch gives to your function."
        )


def refuse_identity_in_a_query(session: SparkSession | None, identity: Identity) -> None:
    """Refuse an identity for rows of a query that runs. Raises InvalidInput, and what py4j does."""
    if session is not None and spark.query_of(session, identity.query_id) is not None:
        raise InvalidInput(IDENTITY_IN_A_QUERY)


def query_of_call(session: SparkSession) -> spark.Query:
    """Return the query whose batch function runs in this thread. Raises InvalidInput, and what py4j does."""
    query = spark.current_query(session)
    if query is not None:
        return query
    if not spark.threads_are_pinned():
        raise InvalidInput(_NOT_PINNED)
    raise InvalidInput(
        "The sink was not called in the thread in which Spark runs the function of foreachBatch, so it can't tell "
        "which query and input the batch belongs to, and nothing is written. Call it there, and not in a thread of "
        "your own. Only where no streaming query is involved, use sink.batch(batch_id, identity=eos.Identity(...)). "
        "In foreachBatch the sink refuses it."
    )


def queries_of_stray(session: SparkSession | None, identity: Identity | None, name: str) -> list[spark.Query]:
    """Return the queries in whose batch a call may be missing that came from another thread than theirs.

    No query runs in the main thread, and no batch function starts it: a call there belongs to none but that of its
    DataFrame. Any other thread may be one that a batch function has started.

    Args: of the DataFrame, if there is one; what the caller gave; the sink's name.
    Raises what py4j does.
    """
    if not hasattr(session, "_jsparkSession"):  # none, or one of Spark Connect
        session = SparkSession._instantiatedSession
    if session is None:
        return []
    found = spark.query_of(session, None if identity is None else identity.query_id)
    if found is not None:
        return [found]
    if identity is not None or threading.current_thread() is threading.main_thread():
        return []
    return [query for query in spark.foreach_batch_queries(session) if _may_write(query, name)]


def _may_write(query: spark.Query, name: str) -> bool:
    """Tell whether a query may use the sink of this name: not if its checkpoint belongs to another sink.

    A thread may be late, so the query may wait for its next batch. Then it must have called such a sink before.
    """
    if sinks_of(query, name):
        return True
    if not query.is_in_batch():
        return False
    text = query.read(REGISTRATION)
    with suppress(EosError):
        return text is None or Registration.parse(text).name == name
    return True
