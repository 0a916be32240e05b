"""Savepoints: named, immutable, zero-copy cuts of a running query's checkpoint, and their copies on Pulsar topics.

`creating` and `restoring` are what the command line calls; `building` and `deleting` tell step by step why a crash is
safe; `store` draws how a savepoint lies in ZooKeeper, `manifest` says what it is.
"""
