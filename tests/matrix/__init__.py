"""Crash tests: a real Spark driver in a process of its own, killed at a chosen moment."""
