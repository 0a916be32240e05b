"""Defaults that the help of the command line shows: known without loading what its verbs need."""

from __future__ import annotations

BATCHES = 2
"""How many of the last committed batches are verified: Spark goes on after the last, and could go back by one."""

TRANSACTION_S = 600.0
"""Seconds that the transaction of a savepoint on a topic may take."""
