"""The driver side of `foreachBatch`: the sink, its options, the columns it takes, and its metrics."""
