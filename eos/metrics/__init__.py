"""The reports of a sink about its micro-batches: observers, Prometheus, OpenTelemetry, Spark's own progress."""
