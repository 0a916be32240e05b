"""The decision about a micro-batch: a table, and nothing that touches a network or a clock.

It decides about a batch before anything is written, by the log alone, never by the coordinator, which
can't tell how a transaction ended (`eos.commit.transaction`).

Each row carries its reason. The first row that applies decides. The tests are the rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from eos.errors import DamagedLog, EosError, IdentityMismatch, InvalidInput, StaleBatch

JOB: Final = "job:"
"""The beginning of the query id of a job of `eos.write`, which is batch 0 of a query of its own."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The query, the run and the input of a batch.

    Attributes:
        query_id: Spark's `sql.streaming.queryId`, the same over restarts of one checkpoint.
        run_id: Spark's id of this run of the query, new with each start.
        offsets: the unchanged text of the checkpoint's file `offsets/<batchId>`.
        principal: the role by which the broker knows the job, or None where it is not known.
    """

    query_id: str
    run_id: str
    offsets: str
    principal: str | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of the whole offsets file, in hexadecimal digits."""
        return digest(self.offsets)


def digest(offsets: str) -> str:
    """SHA-256 of an offsets file, in hexadecimal digits."""
    return hashlib.sha256(offsets.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Past:
    """One batch as the log tells of it: the newest MARKER, or the last INTENT.

    Attributes:
        batch_id: Spark's number of the batch.
        query_id: the query that wrote it.
        digest: SHA-256 of its offsets; "" for an INTENT, which does not carry them.
        principal: who opened its transaction, or None where that is not known.
        ended: False for an INTENT whose transaction left no MARKER, so that it may still be open.
    """

    batch_id: int
    query_id: str
    digest: str = ""
    principal: str | None = None
    ended: bool = True


@dataclass(frozen=True, slots=True)
class Known:
    """The content of the log, reduced to what the decision needs.

    Attributes:
        query_id: the query the log belongs to, or None for an empty log.
        marker: the MARKER of the newest committed batch.
        intent: the last INTENT.
    """

    query_id: str | None = None
    marker: Past | None = None
    intent: Past | None = None


class Action(Enum):
    """The action of the sink for the batch."""

    WRITE = "write"  # in a new transaction
    SKIP = "skip"  # it is committed already: write nothing


class Case(NamedTuple):
    """One question to the table: what the log says, the batch, and who asks.

    `retained` is the MARKER of this very batch, where the checkpoint says that it is being rolled forward to the
    output; else None. `jumped` are the first and the last of the batches in whose place the checkpoint's state was
    rewritten, or None. `unlogged` is the newest batch that the checkpoint's query has begun without the log, or None.
    """

    known: Known
    batch_id: int
    identity: Identity
    retained: Past | None = None
    jumped: tuple[int, int] | None = None
    unlogged: int | None = None


class Rule(NamedTuple):
    """One row: when it applies, what follows, and why.

    `says` is an `Action`, or the error to raise. `because` may use {batch}, {newest}, {intent},
    {ours}, {theirs}, {us} and {them}.
    """

    name: str
    applies: Callable[[Case], bool]
    says: Action | type[EosError]
    because: str


def _newest(case: Case) -> int:
    return case.known.marker.batch_id if case.known.marker is not None else -1


def _same_input(case: Case) -> bool:
    return case.known.marker is not None and case.known.marker.digest == case.identity.digest


def _rolls_forward(case: Case) -> bool:
    return case.retained is not None and case.batch_id < _newest(case)


def _over_output(case: Case) -> bool:
    return case.jumped is not None and case.jumped[0] <= _newest(case) <= case.jumped[1]


def _other_principal(case: Case) -> bool:
    intent = case.known.intent
    if intent is None or intent.ended or intent.principal is None or case.identity.principal is None:
        return False
    return intent.principal != case.identity.principal


def _intent_ahead(case: Case) -> bool:
    return case.known.intent is not None and case.known.intent.batch_id > case.batch_id


def _over_a_hole(case: Case) -> bool:
    """Tell whether a batch before this one was begun, and is not in the output, in whichever way."""
    intent = case.known.intent
    if intent is None or intent.ended or not _newest(case) < intent.batch_id < case.batch_id:
        return False
    rewritten = case.jumped is not None and case.jumped[0] <= intent.batch_id <= case.jumped[1]
    unlogged = case.unlogged is not None and intent.batch_id <= case.unlogged
    return not rewritten and not unlogged


# Rules about the sink as a whole: asked before another driver is fenced, and again with each batch.
OWNERSHIP: Final[tuple[Rule, ...]] = (
    Rule(
        "another query",
        lambda c: c.known.query_id is not None and c.known.query_id != c.identity.query_id,
        IdentityMismatch,
        "the control log belongs to the query {theirs}, and this is the query {ours}. Either the checkpoint was"
        " deleted (then its input would be read, and written, a second time), or two jobs use one sink name."
        " Give this job a sink name of its own, or start it on the checkpoint of {theirs}",
    ),
    Rule(
        "another principal",
        _other_principal,
        InvalidInput,
        "the transaction of batch {intent} was opened by {them}, and to {us} the coordinator would answer"
        ' "not found" while it is still open. Start the query once as {them}, or let {them} run `eos sink abort`',
    ),
)

# Rules about one batch. b is the batch in hand and m the newest MARKER's.
DECISION: Final[tuple[Rule, ...]] = (
    *OWNERSHIP,
    Rule(
        "rewritten before the output's batch",
        _over_output,
        StaleBatch,
        "the output holds batch {newest}, and this checkpoint's state, which was rescaled, has nothing of it. Batch"
        " {batch} would write the same input again. Stop the query that wrote it, let it end in good order, and rescale"
        " its checkpoint. Or bring a savepoint in step with `statestore restore --in-step`, and rescale that",
    ),
    Rule(
        "replay",
        lambda c: c.batch_id == _newest(c) and _same_input(c),
        Action.SKIP,
        "b = m with the same offsets: batch {batch} is committed, and Spark did not get to note it",
    ),
    Rule(
        "other input",
        lambda c: c.batch_id == _newest(c),
        IdentityMismatch,
        "batch {batch} is committed, but with other offsets. The checkpoint was probably restored from an old"
        " backup. Skipping would lose this input, and writing could double the other. Restore the checkpoint that"
        " belongs to the output, or give the job a new sink name and decide what becomes of the output",
    ),
    Rule(
        "in step",
        lambda c: _rolls_forward(c) and c.retained is not None and c.retained.digest == c.identity.digest,
        Action.SKIP,
        "b < m in a checkpoint that is being rolled forward, with the same offsets: batch {batch} is committed",
    ),
    Rule(
        "out of step",
        _rolls_forward,
        IdentityMismatch,
        "batch {batch} is committed with other offsets than those that the query was started with. A checkpoint is"
        " rolled forward by `statestore restore --in-step`, which gives Spark the offsets of each batch, and by nothing"
        " else. Run it again",
    ),
    Rule(
        "stale",
        lambda c: c.batch_id < _newest(c),
        StaleBatch,
        "the output holds batch {newest}, and Spark hands over batch {batch}. Another driver is ahead, or the"
        " checkpoint is older than the output. Stop the other driver, restore the newer checkpoint, or bring this one"
        " in step with `statestore restore --in-step`",
    ),
    Rule(
        "damaged",
        _intent_ahead,
        DamagedLog,
        "batch {intent} had been begun, so batch {batch} must have been committed, and its MARKER is missing."
        " Records were lost from the control log. Check its retention and message TTL",
    ),
    Rule(
        "hole",
        _over_a_hole,
        InvalidInput,
        "batch {intent} was begun and is not committed, and Spark hands over batch {batch}. Batch {intent} would be"
        " missing from the output. It failed, and its error did not leave foreachBatch, or the checkpoint was edited."
        " Have Spark run batch {intent} again. Stop the query, delete commits/{intent} and all that is newer than batch"
        " {intent} from the folders `commits` and `offsets` of the checkpoint, and start it again. Or give its rows up:"
        " `eos sink skip NAME --batch {intent}`",
    ),
    Rule(
        "write",
        lambda c: True,
        Action.WRITE,
        "b > m, or an empty log. Batch ids may have gaps, so b need not be m + 1",
    ),
)


def _judge(rules: tuple[Rule, ...], case: Case) -> Action | None:
    rule = next((rule for rule in rules if rule.applies(case)), None)
    if rule is None:
        return None
    if isinstance(rule.says, Action):
        return rule.says
    intent = case.known.intent
    raise rule.says(
        rule.because.format(
            batch=case.batch_id,
            newest=_newest(case),
            intent="none" if intent is None else intent.batch_id,
            ours=case.identity.query_id,
            theirs=case.known.query_id,
            us=case.identity.principal,
            them=None if intent is None else intent.principal,
        )
    )


def decide(
    known: Known,
    batch_id: int,
    identity: Identity,
    retained: Past | None = None,
    jumped: tuple[int, int] | None = None,
    unlogged: int | None = None,
) -> Action:
    """Look the batch up in the table; `retained`, `jumped` and `unlogged` are as in `Case`.

    Raises IdentityMismatch, InvalidInput, StaleBatch or DamagedLog with the reason of the row.
    """
    action = _judge(DECISION, Case(known, batch_id, identity, retained, jumped, unlogged))
    assert action is not None, "the last row of the table always applies"
    return action


def check_ownership(known: Known, identity: Identity) -> None:
    """Refuse a log of another query or principal. Raises IdentityMismatch or InvalidInput."""
    _judge(OWNERSHIP, Case(known, -1, identity))
