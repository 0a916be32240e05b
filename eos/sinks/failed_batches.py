"""The failed batches that the sinks of one name know in one run of a query, and their note in its checkpoint.

The note outlives the run. Where user code has swallowed the error of a batch, Spark counts the batch as done, and the
next run finds in the note what is missing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from eos.commit.control_topic import skip_command
from eos.commit.failure import FAILED, Failure, parse, text_of
from eos.errors import InvalidInput
from eos.pulsar.protocol.topics import namespace_of
from eos.sinks.options import SinkOptions
from eos.sinks.run import Run
from eos.spark import query as spark

log = logging.getLogger("eos.sink")

_file: Final = threading.Lock()
"""Held while the note is read and written: several sinks of one query may have an entry each."""


class FailedBatches:
    """The failed batches of the sinks of one name, in one run.

    Args: the sink's options; the streaming query, None outside one.

    Attributes:
        first: the first batch that failed in this run, until it was taken again.
    """

    def __init__(self, options: SinkOptions, query: spark.Query | None) -> None:
        self._name, self._namespace, self._query = options.name, namespace_of(options.control_topic), query
        self._logged = options.guarantee == "exactly-once"
        self._topic = None if self._logged else options.topic
        self.first: Failure | None = None
        self._noted = False  # the checkpoint has an entry, by this run or an earlier one
        self._owed: Failure | None = None  # what could not be noted, as while the query is stopped

    def add(
        self, batch_id: int, run_id: str, error: str, *, replayed: bool, partly: bool, several: bool = False
    ) -> bool:
        """Note a batch that failed or was refused. Returns whether Spark has passed an earlier one. Raises nothing.

        Args: the batch; the run; the words of its error; the others as in `Failure`.
        """
        first = self.first or self._owed
        with logged(f"{FAILED} could not be read"):
            first = first or next((one for one in self._found() if self._ours(one)), None)
        now = Failure(
            name=self._name,
            batch_id=batch_id,
            run_id=run_id,
            error=error[:1_000],
            last=batch_id,
            replayed=replayed,
            partly=partly,
            topic=self._topic,
            several=several,
        )
        if first is None:
            self._note(now)
            return False
        last, passed = max(batch_id, first.last), first.batch_id < batch_id
        if passed or first.partly:
            self._note(replace(first, last=last))
        else:
            again = first.batch_id == batch_id
            replayed, several = replayed or (again and first.replayed), several or (again and first.several)
            self._note(replace(now, last=last, replayed=replayed, several=several))
        return passed

    def forget(self, batch_id: int) -> None:
        """Forget what failed before: the batch was written after all, or the log has it.

        Not what another sink has failed to write in this run. An entry of an earlier run is made good: Spark has handed
        the batch over again, and the function has called all of its sinks.
        """
        self.first = None
        self._owed = None
        self._keep_noted(self._is_of_another_sink)

    def keep_as_part(self) -> None:
        """Note that the rows of the call that failed are missing from a batch that another call has written."""
        if self.first is not None:
            self._note(replace(self.first, partly=True))

    def of_another_sink(self) -> Failure | None:
        """Return what another sink has failed to write in this run. Raises what reading the checkpoint does."""
        return next(filter(self._is_of_another_sink, self._in_checkpoint()), None)

    def refuse_a_hole(self, batch_id: int) -> None:
        """Take no batch after one that failed in this run: Spark goes on only where the failure was swallowed."""
        if self.first is not None and self.has_passed(batch_id):
            raise InvalidInput(self._lacks(self.first, batch_id, f"Batch {batch_id} is not written"))

    def has_passed(self, batch_id: int) -> bool:
        """Tell whether a batch before this one has failed in this run."""
        return self.first is not None and self.first.batch_id < batch_id

    def look_back(self, run: Run, batch_id: int) -> None:
        """Refuse to go on after a batch that failed in an earlier run, and whose error was swallowed.

        Also to take a batch for done that the log has, and whose second call failed: no replay writes its rows.
        """
        if not run.writes:
            return
        noted = self._in_checkpoint()
        self._tell_of_others(noted, batch_id)
        newest = -1 if run.newest is None else run.newest.batch_id
        for one in self._concerning_us(noted):
            self._noted = True
            partly = one.partly or (one.several and one.batch_id <= newest)
            failed = replace(one, partly=partly)
            if partly and one.batch_id == batch_id <= newest:
                raise InvalidInput(self._lacks(failed, batch_id, f"Batch {batch_id} is not taken for done"))
            missing = one.missing(batch_id)
            in_output = newest >= missing and not one.replayed and not partly
            rewritten = run.jumped is not None and run.jumped[0] <= one.batch_id <= missing <= run.jumped[1]
            if one.batch_id < batch_id and not in_output and not rewritten:
                raise InvalidInput(self._lacks(failed, batch_id, f"Batch {batch_id} is not written"))
        # Those before are in the output. A failure from now on is not a part of theirs.
        self._keep_noted(lambda one: one.batch_id >= batch_id)

    def _tell_of_others(self, noted: Sequence[Failure], batch_id: int) -> None:
        """Warn of what sinks beside this one have failed to write: none of them refuses once it is called no longer."""
        for one in noted:
            if one.batch_id < batch_id and not self._concerns_us(one):
                log.warning(
                    'Batch %d of the sink "%s" failed in run %s of the query, and Spark has passed it. If the function '
                    "of foreachBatch calls this sink under another name or for another topic now, or no longer, the "
                    "rows are missing from its output, and no sink refuses the next batches. The error was: %s",
                    *(one.batch_id, one.name, one.run_id, one.error),
                )

    def noted_in(self, run_id: str) -> bool:
        """Tell whether the checkpoint has an entry of this name by a run, as before a sink could be made in it."""
        return any((one.name, one.run_id) == (self._name, run_id) for one in self._found())

    def end(self) -> None:
        """After the query's end, note what could not be noted, and log which failed batches Spark counts as done."""
        if self._owed is not None:
            self._note(self._owed)
        query, failed = self._query, self.first
        if query is None or failed is None or not is_committed(query, failed.batch_id):
            return
        newer = range(failed.batch_id + 1, failed.last + 1)
        not_passed = (batch for batch in newer if not is_committed(query, batch))
        log.error("%s", self._lacks(failed, next(not_passed, failed.last + 1), "The query has ended"))

    def _in_checkpoint(self) -> list[Failure]:
        """Read the entries of the checkpoint; none outside a query."""
        return [] if self._query is None else parse(self._query.read(FAILED))

    def _found(self) -> list[Failure]:
        return self._concerning_us(self._in_checkpoint())

    def _concerning_us(self, noted: Sequence[Failure]) -> list[Failure]:
        """Return the entries that concern the sink.

        A query has one sink that writes exactly once. Rows that the query gave to another one are missing too, and
        once this sink has their batch in its log, no replay writes them.
        """
        found = [one for one in noted if self._concerns_us(one)]
        return [one if self._ours(one) else replace(one, partly=True) for one in found]

    def _ours(self, one: Failure) -> bool:
        return one.name in ("", self._name) and (self._logged or one.topic in (None, self._topic))

    def _concerns_us(self, one: Failure) -> bool:
        return self._logged or self._ours(one)

    def _is_of_another_sink(self, one: Failure) -> bool:
        return self._query is not None and one.run_id == self._query.run_id and not self._ours(one)

    def _note(self, failure: Failure) -> None:
        self.first = failure
        if self._query is None:
            return
        self._noted, self._owed = True, failure
        with logged(f"batch {failure.batch_id} failed, and could not be noted in the checkpoint"), _file:
            others = [one for one in self._in_checkpoint() if not self._ours(one)]
            self._query.register(FAILED, text_of([*others, failure]))
            self._owed = None

    def _keep_noted(self, keep: Callable[[Failure], bool]) -> None:
        """Take entries that concern the sink out of the checkpoint. Args: tells which of them stay."""
        if self._query is None or not self._noted:
            return
        with logged(f"{FAILED} could not be changed in the checkpoint"), _file:
            found = self._in_checkpoint()
            left = [one for one in found if keep(one) or not self._concerns_us(one)]
            self._noted = any(map(self._concerns_us, left))
            if left and left != found:
                self._query.register(FAILED, text_of(left))
            elif not left:
                self._query.remove(FAILED)

    def _lacks(self, failed: Failure, before: int, what: str) -> str:
        """Say which batches are missing, and the ways out. Args: the failure; the batch in hand; what follows."""
        first, last = failed.batch_id, failed.missing(before)
        batches, them = (f"batch {first}", "it") if first == last else (f"batches {first} to {last}", "them")
        commands = " and then ".join(
            f"`{skip_command(self._name, self._namespace, batch)}`" for batch in dict.fromkeys((first, last))
        )
        if self._query is None:
            return self._lacks_outside(failed, batches, what, commands)
        if failed.partly:
            later = f" Nothing of the batches after it is written. {_run_again(first + 1)}" if first < last else ""
            calls, rows = (
                "a second call",
                "The rows of the first call are committed. The rows of the second call are not",
            )
            if failed.several:
                calls, rows = "calls with different rows", "The rows of one call are committed. Those of others are not"
            return (
                f'{what}: {calls} for batch {first}, of the sink "{failed.name}", failed in run {failed.run_id} of the '
                f"query. The error was: {failed.error} {rows}, and no replay writes them. Write the missing rows by "
                f"hand if they are needed, {self._erase()}, and start the query again.{later}"
            )
        lacking = "the query's state" if failed.replayed else "the output"
        if not self._logged or failed.replayed:
            commands = self._erase()
        return (
            f"{what}: batch {first} failed in run {failed.run_id} of the query, and its error did not end the query, "
            f"so {batches} would be missing from {lacking}. The error was: {failed.error} "
            f"Let the sink's errors leave foreachBatch. {_run_again(first)} Or go on without {them}: {commands}."
        )

    def _lacks_outside(self, failed: Failure, batches: str, what: str, skip: str) -> str:
        """Say the same of batches outside a query, which nothing but the caller hands over again.

        Args: the failure; which batches are missing; what follows; the commands that give them up.
        """
        first, error = failed.batch_id, failed.error.removesuffix(".")
        anew = "Give the eos.Identity of the next batches another run_id"
        if failed.partly:
            return (
                f'{what}: a second call for batch {first}, of the sink "{failed.name}", failed. The error was: {error}.'
                " The rows of the first call are committed. The rows of the second call are not. Write the missing "
                f"rows by hand if they are needed, and go on in a new run. {anew}."
            )
        again = f"Call the sink again for batch {first}, and then for the batches after it."
        if failed.replayed:
            return (
                f"{what}: batch {first} is committed, and Spark could not run it again. The error was: {error}. {again}"
            )
        gives_up = f"{anew}, after {skip}" if self._logged else anew
        return (
            f"{what}: batch {first} failed in this run, so {batches} would be missing from the output. The error was: "
            f"{error}. {again} Or give the rows up, and go on in a new run. {gives_up}."
        )

    def _erase(self) -> str:
        """Return the advice by which the next run no longer asks for the batches."""
        with logged(f"{FAILED} could not be read"):
            if self._query is not None and any(not self._concerns_us(one) for one in parse(self._query.read(FAILED))):
                return f'take the entry of the sink "{self._name}" out of {FAILED} in the checkpoint'
        return f"delete {FAILED} from the checkpoint"


def is_committed(query: spark.Query, batch_id: int) -> bool:
    """Tell whether Spark counts a batch as done."""
    return query.read(f"commits/{batch_id}") is not None


def note_without_a_sink(query: spark.Query, name: str, batch_id: int, error: str) -> bool:
    """Note a batch that failed where no sink could take it. Returns whether Spark has passed an earlier one.

    Args: the query; of the sink that could not be made, "" if that is not known; the batch; the words of the error.
    """
    passed = False
    with logged(f"batch {batch_id} failed, and could not be noted in the checkpoint"), _file:
        found = parse(query.read(FAILED))
        first = next((one for one in found if one.name == name and one.batch_id < batch_id), None)
        passed = first is not None
        entry = Failure(name, batch_id, query.run_id, error[:1_000], batch_id)
        if first is not None:
            entry = replace(first, last=max(first.last, batch_id))
        query.register(FAILED, text_of([*(one for one in found if one.name != name), entry]))
    return passed


def noted_in_run(query: spark.Query, name: str) -> Failure | None:
    """Return what the checkpoint has of a sink of this name that failed in this run; None once it was written."""
    found = parse(query.read(FAILED))
    return next((one for one in found if (one.name, one.run_id) == (name, query.run_id)), None)


def _run_again(first: int) -> str:
    return (
        f"Have Spark run batch {first} again. Stop the query, delete commits/{first} and all that is newer than batch "
        f"{first} from the folders `commits` and `offsets` of the checkpoint, and start it again."
    )


@contextmanager
def logged(what: str) -> Iterator[None]:
    """Log what fails in the block, for which no batch is to fail."""
    try:
        yield
    except Exception as error:
        log.warning("%s: %s", what, spark.reason(error))
