"""Pulsar as a catalog of Spark's SQL: the answers to what the Java class `eos.sql.PulsarCatalog` asks."""
