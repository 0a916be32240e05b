"""The error that leaves the sink: one error, short and without a chain, that Spark reads rightly.

Of a Python error Spark gets the text of its traceback only, and asks of that text whether the query was interrupted
(StreamExecution.isInterruptionException, Spark 4.3). Two kinds of text matter:

- One that holds "py4j.protocol.Py4JJavaError: An error occurred while calling" is searched with a pattern that takes
  stack for each character (PROXY_ERROR): a long one ends the query's thread with a StackOverflowError. So no Java error
  leaves the sink, not even as the cause of one of `eos.errors`.
- One that holds "org.apache.spark.SparkException", "cancelled" and the run's id, which is the query's job group, is
  the end of a query that was stopped: Spark logs no error and raises none.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from eos.errors import (
    CommitUnknown,
    EosError,
    InvalidInput,
    NetworkError,
    NotCommitted,
    Refused,
    ReplayFailed,
    Stopped,
    Unacknowledged,
    Unreachable,
)
from eos.spark.failures import is_permanent_call
from eos.spark.query import Query, reason

log = logging.getLogger("eos.sink")


def words_of(error: BaseException) -> str:
    """Return an error's own words, and the name of its type where it is not one of `eos.errors`."""
    return str(error) if isinstance(error, EosError) else f"{type(error).__name__}: {error}"


def as_it_leaves(error: EosError | Py4JError | PySparkException, batch_id: int, query: Query | None) -> EosError:
    """Return the error to raise, `from None`, in place of one that ended the commit of a batch.

    Args:
        error: one of `eos.errors`, or of a call into Spark's JVM that was made before the control log was asked about
            the batch. Later errors, of the delivery and of a replay, are of `eos.errors` already.
        batch_id: of the micro-batch in hand.
        query: the streaming query that called the sink, as far as that is known by now.

    Returns:
        Stopped: the query was stopped, and this call has committed nothing.
        CommitUnknown, Unacknowledged, ReplayFailed: as it was; where the query was stopped, Spark reads it as a stop.
        CommitUnknown: also for a call into Spark's JVM, since an earlier run may have committed the batch.
        InvalidInput: for such a call that fails each time, until somebody changes something.
        EosError: any other as it was, without the frames below the sink.
    """
    log.debug("batch %d failed", batch_id, exc_info=error)
    if query is None or query.is_active(error):
        return error.with_traceback(None) if isinstance(error, EosError) else _before_the_log(error, batch_id)
    for_spark = f"(org.apache.spark.SparkException: job group {query.run_id} was cancelled)"
    match error:
        case NotCommitted():
            return Stopped(
                f"The query was stopped. Batch {batch_id} is not committed, and is written when the query starts "
                f"again. {for_spark}"
            )
        case CommitUnknown():
            return CommitUnknown(
                f"The query was stopped before the outcome of batch {batch_id} was known. The control log decides when "
                f"the query starts again. {for_spark}"
            )
        case Unacknowledged():
            return Unacknowledged(
                f"The query was stopped before each row of batch {batch_id} had its receipt. Some may be visible. The "
                f"batch is written again when the query starts again. {for_spark}"
            )
        case ReplayFailed():
            return ReplayFailed(
                f"The query was stopped while Spark ran batch {batch_id} again, which writes no rows. {for_spark}",
                stopped=True,
            )
        case EosError():
            return error.with_traceback(None)
        case _:
            return Stopped(
                f"The query was stopped before the control log was asked about batch {batch_id}. It decides when the "
                f"query starts again. {for_spark}"
            )


@contextmanager
def before_the_log(batch_id: int) -> Iterator[None]:
    """Ask the brokers in the block, before the control log is asked about a batch.

    Raises CommitUnknown in place of what the network layer knows, since an earlier run may have committed the batch.
    """
    try:
        yield
    except InvalidInput:
        raise
    except NetworkError as error:
        raise _before_the_log(error, batch_id) from None


def _before_the_log(error: NetworkError | Py4JError | PySparkException, batch_id: int) -> CommitUnknown | InvalidInput:
    what = "a question to the brokers" if isinstance(error, NetworkError) else "a call into Spark's JVM"
    known = (
        f"Batch {batch_id}: {what} failed before the control log was asked about the batch: "
        f"{reason(error).removesuffix('.')}. This call has written nothing"
    )
    if is_permanent_call(error):
        return InvalidInput(f"{known}. Starting the query again does not help until the cause is removed.")
    if isinstance(error, Refused) and error.advice:
        return CommitUnknown(f"{known}. Starting the query again is safe, and helps once that has changed.")
    return CommitUnknown(f"{known}; starting the query again is safe.")


class _OneLine(logging.Filter):
    """Takes the traceback off what py4j logs of an error of `eos.errors`, and drops what it logs of a stop."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether the record is to be logged."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, Stopped) or (isinstance(error, ReplayFailed) and error.stopped):
            return False
        if isinstance(error, EosError):
            record.msg, record.args, record.exc_info = "%s: %s", (type(error).__name__, error), None
        return True


def log_in_one_line() -> None:
    """Have py4j, which logs each error of a function that Spark calls, log an error of the sink in one line."""
    logger = logging.getLogger("py4j.clientserver")
    if not any(isinstance(one, _OneLine) for one in logger.filters):
        logger.addFilter(_OneLine())


def out_of_reach(who: str, service_url: str, error: NetworkError) -> InvalidInput:
    """Return the error to raise. Args: who can't use the cluster, such as "The sink"; its address; what was seen."""
    if isinstance(error, Unreachable | Refused):  # the first says what to look at, and after the second a broker runs
        return InvalidInput(f"{who} can't use {service_url}: {error}.")
    return InvalidInput(f"{who} can't use {service_url}: {error}. Check the address, and that the broker runs.")
