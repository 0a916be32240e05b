"""Shadow: a second run of a job beside the live one, on the same input and without output, and its state compared.

The shadow has a copy of the live checkpoint. A note there tells its sink to write nothing and to take nothing over. It
runs each batch that the live job commits, one after the other, with exactly the offsets of the live job's MARKER. So
the states can be compared, which they couldn't if both took their own batches. It shows beforehand what an upgrade of
the job's code or of Spark would do to the state: run this command with the new code, while the old one runs.

It must be another Spark application than the live one: within one, Spark ends a run of a query when the same query is
started again, and the copy has the same id.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from eos.pulsar.net.client import Client
from statestore.checkpoint import batch_ids, read_query_id
from statestore.checkpoint.files import HadoopFiles, join
from statestore.checkpoint.logs import COMMITS, OFFSETS
from statestore.drills.acts.acts import Acts
from statestore.drills.acts.rehearsal import JOB, RETENTION, Live, compare, cut_of
from statestore.drills.journal import JobEvent as JobEvent
from statestore.errors import InvalidInput, Unavailable
from statestore.roll_forward import behind
from statestore.roll_forward.jobs import Job
from statestore.roll_forward.plan import BatchInput, numbered
from statestore.roll_forward.steps import declare, plan_next, run_once, take_logs

_LOOK_S = 0.5


@dataclass(frozen=True)
class Shadow:
    """The task of the shadow.

    Attributes:
        job: the code to try.
        batches: how many batches of the live job it runs.
        timeout_s: the longest wait for the live job's next batch.
    """

    job: Job
    batches: int = 3
    timeout_s: float = 120.0


def follow(live: Live, shadow: Shadow, acts: Acts) -> None:
    """Do it.

    Raises:
        InvalidInput: there is no such job, or its sink is another one.
        Unavailable: the live job committed nothing within the time, or its state could not be compared.
        EosError: something else did not answer.
    """
    if live.output is None:
        raise InvalidInput("A shadow needs to know the live job's sink. The batches come from its control log")
    hadoop = live.hadoop
    query = read_query_id(HadoopFiles(hadoop, live.checkpoint))
    acts.write(JobEvent(JOB, stateful=True, topic=live.output.topic, checkpoint=live.checkpoint))
    with cut_of(live, acts) as (scratch, batch):
        files = HadoopFiles(hadoop, scratch)
        declare(hadoop, files, live.output, None, shadow=True)
        for _ in range(shadow.batches):
            text = files.read(join(OFFSETS, str(batch))).decode()
            with acts.step(f"wait for the live job's batch after {batch}"):
                planned = _next(live, shadow, query, batch, text)
            take_logs(hadoop, files, live.checkpoint, numbered(text, planned.offsets))
            plan_next(hadoop, files, planned)
            batch = planned.batch_id
            try:
                with acts.step(f"run batch {batch} without output"):
                    _run(live, shadow, scratch, files, batch)
            except Unavailable as error:
                acts.check("the shadow runs the live job's batches", False, str(error))
                return
        acts.check("the shadow runs the live job's batches", True, f"{shadow.batches}, up to batch {batch}")
        if compare(live, acts, "the shadow", scratch, batch) in ("gone", "unreadable"):
            raise Unavailable(
                f"The shadow's state could not be compared with the live job's at batch {batch}: what was not tested "
                "says why. Try again; where the live job no longer keeps that batch, with fewer --batches, or let it "
                f"keep more ({RETENTION})"
            )


def _run(live: Live, shadow: Shadow, scratch: str, files: HadoopFiles, batch: int) -> None:
    """Run a batch, and once more if that fails: a broker may be gone for a moment.

    Raises:
        Unavailable: it failed twice, and the sink's cluster answered between.
        EosError: the cluster does not answer, so whether the job can run the batch is not known.
    """
    try:
        run_once(shadow.job, live.spark, scratch, files, batch)
    except Unavailable:
        live.log()
        run_once(shadow.job, live.spark, scratch, files, batch)


def _next(live: Live, shadow: Shadow, query: str, batch: int, text: str) -> BatchInput:
    """Wait until the live job has committed the batch after this one, in its checkpoint too; return its input."""
    files = HadoopFiles(live.hadoop, live.checkpoint)
    deadline = time.monotonic() + shadow.timeout_s
    assert live.output is not None
    with Client(live.output.cluster) as client:
        while time.monotonic() < deadline:
            ahead = behind(live.output.log(client), query, batch, text)
            if ahead and ahead[0].batch_id in batch_ids(files, COMMITS):
                return ahead[0]
            time.sleep(_LOOK_S)
    raise Unavailable(
        f"The live job has committed no batch after {batch} within {shadow.timeout_s:g} s. Look whether it runs and "
        "has input, or wait longer with --timeout"
    )
