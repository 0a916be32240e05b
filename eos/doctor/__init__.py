"""Readers that wait: the causes, and how to free them."""
