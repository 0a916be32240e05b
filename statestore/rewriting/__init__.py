"""New checkpoints whose state no batch of the query has written: rescaled to another number of partitions.

The original is never touched. Until a new checkpoint is whole its `metadata` is empty, and Spark starts no query on it.
"""

from __future__ import annotations

from statestore.rewriting.rescaling import Rescaled, rescale

__all__ = ["Rescaled", "rescale"]
