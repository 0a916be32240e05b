"""Hadoop's file systems, through Spark's JVM or an own one, and the settings that make a session ready for `bk://`."""
