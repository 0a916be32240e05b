"""Topics as Spark's streams and tables: where a query stands, what a micro-batch covers, how a task reads it."""
