"""What the total-loss job should write: by hand, for batches small enough to count."""

from __future__ import annotations

import json

from statestore.drills.acts import total_loss_job
from statestore.drills.judge import rows


def test_the_input_of_a_batch_is_a_function_of_its_number() -> None:
    first = total_loss_job.inputs([0])
    assert first[["batch", "key", "amount"]].head(3).values.tolist() == [[0, "k0", 0], [0, "k1", 919], [0, "k2", 838]]
    assert total_loss_job.inputs([0, 1]).query("batch == 1")["key"].iloc[0] == f"k{200 % 7}"


def test_every_key_has_a_row_in_every_batch_with_its_totals_so_far() -> None:
    expected = total_loss_job.expected(range(3))
    assert {batch: len(found) for batch, found in expected.batches.items()} == {0: 7, 1: 7, 2: 7}
    assert sum(row.order for row in expected.batches[2]) == 3 * total_loss_job.ROWS
    k0 = [value for value in range(400) if value % 7 == 0]
    (row,) = (row for row in expected.batches[1] if row.key == "k0")
    message = {"key": "k0", "count": len(k0), "sum": sum(value * 7919 % 1000 for value in k0), "batch": 1}
    assert row == rows.parse("k0", json.dumps(message).encode())
