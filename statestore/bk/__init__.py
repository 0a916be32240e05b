"""The tree of names of `bk://`, its ledgers and their copies."""
