"""Rows into a transaction: through the driver if they are few, else by tasks."""
