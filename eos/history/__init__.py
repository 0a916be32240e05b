"""Closed ranges of a topic, read past the brokers: where their entries are, and which of them readers may see."""
