"""Connections to bookies, and reading a ledger from its replicas."""
