"""Facts of a streaming query, and how Spark jobs are run."""
