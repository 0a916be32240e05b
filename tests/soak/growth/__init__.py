"""`make soak-growth`: two hours of micro-batches, and whether anything grows meanwhile."""
