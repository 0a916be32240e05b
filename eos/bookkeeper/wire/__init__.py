"""Bytes of BookKeeper: frames to and from a bookie, stored entries and their digests, the metadata of ledgers."""
