"""In step: state that was restored at batch n is rolled forward to batch m, which the sink's output is at.

The sink's control log keeps the file `offsets/<batch>` of each committed batch, byte for byte, in its MARKER. Batches n
+ 1 … m are run again one at a time, each with exactly those offsets; the sink sees that they are committed and writes
nothing, but runs the DataFrames, which advances the state. Each is a start of the user's query with the trigger `once`:
Spark runs a batch that has offsets and no commit, and ends (`MicroBatchExecution.populateStartOffsets`). With the
offsets of several such batches it would jump to the newest, hence one at a time.

The steps, and why a crash around each is safe: the same command goes on from where it stopped.

1. RESTORE     a new checkpoint of the savepoint. Before: nothing was changed. Within: its `metadata` is empty, and
               Spark refuses it. After: a checkpoint older than its output, whose sink refuses to write (`StaleBatch`).
2. DECLARE     the sink's file in it says from which batch on it is rolled forward. It is replaced by a rename. Before:
               as after RESTORE. After: the sink skips a batch whose MARKER has the same offsets, and refuses any other
               input (`IdentityMismatch`).
3. SOURCES     the logs of sources whose offsets are mere numbers are taken from the original checkpoint. Within: they
               are not whole, and are taken again. Nothing reads them before the next step.
4. OFFSETS     `offsets/b` = the text in b's MARKER, by a rename. Before: b is next again. After: b is planned, as Spark
               itself would have planned it.
5. REPLAY      the query runs b. Within: the same as any driver that dies in a batch: b is run again from the state at
               b - 1. After: `commits/b` is there, and b + 1 is next.
6. FINISH      the declaration is withdrawn. Before: the query could go on just as well, since no batch up to m is ever
               handed to the sink again.
"""

from __future__ import annotations

from statestore.roll_forward.plan import Output, behind
from statestore.roll_forward.steps import RollForward, RollForwardStep, lacked_by, restore_in_step, roll_forward

__all__ = ["Output", "RollForward", "RollForwardStep", "behind", "lacked_by", "restore_in_step", "roll_forward"]
