"""New checkpoints whose state the query's own batches have not written: rescaled, or made from a history.

The original is never touched. Until a new checkpoint is whole its `metadata` is empty, and Spark starts no query on it.
"""

from __future__ import annotations

from statestore.rewriting.bootstrapping import Bootstrapped, bootstrap
from statestore.rewriting.rescaling import Rescaled, rescale

__all__ = ["Bootstrapped", "Rescaled", "bootstrap", "rescale"]
