"""Explicit-state models of the sink's protocol and of `bk://`'s names, and the checker that explores them."""
