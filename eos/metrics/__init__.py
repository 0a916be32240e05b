"""What a sink tells of its micro-batches, and whom: observers, Prometheus, OpenTelemetry, Spark's own progress."""
