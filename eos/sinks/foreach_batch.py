"""How a function of `foreachBatch` must call the sink."""

from __future__ import annotations

from eos.errors import InvalidInput
from eos.spark import query as spark


def refuse_another_type(batch_id: object) -> None:
    """Refuse what is not the id of a batch. Raises InvalidInput."""
    if not isinstance(batch_id, int) or isinstance(batch_id, bool):
        raise InvalidInput(f"batch_id={batch_id!r} is {type(batch_id).__name__}; it must be the int that Spark gives.")


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
