"""Hadoop's file systems, through Spark's JVM or one of our own, and what makes a session ready for `bk://`."""
