"""What `foreachBatch` calls: the sink, its options, the columns it takes, and its metrics."""
