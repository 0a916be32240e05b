"""Pulsar's schemas and Spark's types: what a schema says, which type it is, how its values are decoded and encoded."""
