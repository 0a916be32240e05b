"""What leaves the sink is short, unchained, and read by Spark for what it is."""

from __future__ import annotations

import logging
import re
import threading
import traceback
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    ParseException,
    PySparkAttributeError,
    PySparkException,
    PySparkTypeError,
    PySparkValueError,
)

from eos.errors import (
    AuthorizationUnknown,
    CommitUnknown,
    ConnectionLost,
    EosError,
    Fenced,
    IdentityMismatch,
    InvalidInput,
    LimitReached,
    NetworkError,
    NoCredentials,
    NotCommitted,
    Refused,
    ReplayFailed,
    Stopped,
    Unacknowledged,
    Unanswered,
    Unreachable,
)
from eos.sinks.error_translation import as_it_leaves, before_the_log, log_in_one_line, out_of_reach
from eos.spark.failures import PERMANENT_IN_JAVA
from eos.spark.query import Query

LONG = "py4j.protocol.Py4JJavaError: An error occurred while calling o1.collect\n" * 50
RUN = "ab5b42a8-6f71-4d37-a0f5-d69a8b7fce0d"
SPARKS_WORDS = ("org.apache.spark.SparkException", "cancelled", RUN)


def query(*, active: bool) -> Query:
    return cast(Query, SimpleNamespace(run_id=RUN, is_active=lambda failed: active))


def leave(error: Exception, of: Query | None) -> Exception:
    try:
        try:
            raise error from Py4JError(LONG)
        except (EosError, Py4JError, PySparkException) as caught:
            left = as_it_leaves(caught, 3, of)
        raise left from None
    except EosError as seen:
        return seen


def text_of(error: Exception) -> str:
    """What Spark gets of it."""
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    ("error", "kind", "known"),
    [
        (NotCommitted("why"), Stopped, "Batch 3 is not committed"),
        (Stopped("why"), Stopped, "Batch 3 is not committed"),
        (CommitUnknown("why"), CommitUnknown, "before the outcome of batch 3 was known. The control log decides"),
        (Unacknowledged("why"), Unacknowledged, "before each row of batch 3 had its receipt. Some may be visible"),
        (ReplayFailed("why"), ReplayFailed, "batch 3 again, which writes no rows"),
        (Py4JError("why"), Stopped, "before the control log was asked about batch 3. It decides"),
        (PySparkException("why"), Stopped, "before the control log was asked about batch 3. It decides"),
    ],
)
def test_what_fails_in_a_stopped_query_is_a_stop_to_spark_and_tells_what_is_known(
    error: Exception, kind: type[Exception], known: str
) -> None:
    left = leave(error, query(active=False))
    assert type(left) is kind
    assert known in str(left)
    assert all(words in str(left) for words in SPARKS_WORDS)


@pytest.mark.parametrize("error", [Fenced("why"), InvalidInput("why"), IdentityMismatch("why")])
def test_what_the_caller_must_mend_is_told_in_a_stopped_query_too(error: EosError) -> None:
    assert leave(error, query(active=False)) is error


@pytest.mark.parametrize("of", [None, query(active=True)], ids=["no query", "running"])
def test_an_error_of_a_running_query_stays_what_it_is(of: Query | None) -> None:
    for error in (CommitUnknown("why"), NotCommitted("why"), ReplayFailed("why")):
        assert leave(error, of) is error


@pytest.mark.parametrize("of", [None, query(active=True)], ids=["no query", "running"])
@pytest.mark.parametrize("error", [Py4JError("why"), PySparkException("why")])
def test_a_call_into_the_jvm_before_the_log_was_asked_leaves_open_what_an_earlier_run_has_done(
    of: Query | None, error: Exception
) -> None:
    left = leave(error, of)
    assert type(left) is CommitUnknown
    assert re.search("Batch 3: a call into Spark's JVM failed before the control log was asked .*: .*why", str(left))


class _Thrown:
    """A Java exception, as far as a Py4JJavaError needs it."""

    _target_id = "o1"
    _gateway_client = None

    def __init__(self, text: str) -> None:
        self.text = text

    def toString(self) -> str:  # noqa: N802
        return self.text


def thrown(text: str) -> Py4JJavaError:
    return Py4JJavaError("An error occurred while calling o7.read", _Thrown(text))


@pytest.mark.parametrize(
    "error",
    [
        *(thrown(f"{name}: why") for name in PERMANENT_IN_JAVA),
        Py4JError("why. Trace:\nMethod checkpoint([]) does not exist"),
        *(kind("why") for kind in (AnalysisException, ParseException, IllegalArgumentException)),
        *(kind("why") for kind in (PySparkTypeError, PySparkValueError, PySparkAttributeError)),
    ],
    ids=lambda error: f"{type(error).__name__} {getattr(getattr(error, 'java_exception', ''), 'text', '')}",
)
def test_a_call_into_the_jvm_that_fails_each_time_is_not_to_be_started_again(error: Exception) -> None:
    left = leave(error, query(active=True))
    assert type(left) is InvalidInput
    assert "is safe" not in str(left)
    assert re.search("Batch 3: .* failed before the control log .*why.* does not help until the cause", str(left), re.S)


def test_other_java_errors_may_pass_and_a_limit_is_to_be_lifted_first() -> None:
    assert "; starting the query again is safe." in str(leave(thrown("java.io.IOException: why"), None))
    lifted = r"why\. Raise it\. .* is safe, and helps once that has changed"
    with pytest.raises(CommitUnknown, match=lifted), before_the_log(3):
        raise LimitReached("open", "ProducerBusy", "why", "Raise it")


@pytest.mark.parametrize("error", [NotCommitted("why"), Fenced("why"), Py4JError("why")])
@pytest.mark.parametrize("active", [True, False])
def test_no_java_error_and_no_chain_leaves(error: Exception, active: bool) -> None:
    text = text_of(leave(error, query(active=active)))
    assert "Py4JJavaError" not in text
    assert text.count("Traceback") == 1
    assert re.search(r"^eos\.errors\.\w+: .*$", text.splitlines()[-1])


def test_py4j_logs_an_error_of_the_sink_in_one_line_and_a_stop_not_at_all(caplog: Any) -> None:
    log_in_one_line()
    log_in_one_line()
    logger = logging.getLogger("py4j.clientserver")
    errors = (
        Stopped("stopped"),
        ReplayFailed("stopped", stopped=True),
        Fenced("fenced"),
        ReplayFailed("no memory"),
        KeyError("the user's own"),
    )
    for error in errors:
        try:
            raise error
        except Exception:
            logger.exception("There was an exception")
    records = [
        record for record in caplog.records if record.thread == threading.get_ident()
    ]  # Py4J's own threads log too
    assert [record.getMessage() for record in records] == [
        "Fenced: fenced",
        "ReplayFailed: no memory",
        "There was an exception",
    ]
    assert [record.exc_info is None for record in records] == [True, True, False]


@pytest.mark.parametrize(
    ("error", "advised"),
    [
        (Unanswered("no answer within 30 s"), True),
        (ConnectionLost("closed"), True),
        (Unreachable("no TLS connection to host:6651. Check the trusted certificates"), False),
        (NoCredentials("can't read the token"), False),
        (Refused("look up t", "ServiceNotReady", "not now"), False),
        (AuthorizationUnknown("look up t", "AuthorizationError", "", "Look at the broker's log"), False),
    ],
)
def test_the_address_is_to_be_checked_only_where_nothing_else_is_known(error: NetworkError, advised: bool) -> None:
    told = str(out_of_reach("The sink", "pulsar://host", error))
    assert told.startswith(f"The sink can't use pulsar://host: {error}.")
    assert told.endswith("Check the address, and that the broker runs.") is advised
