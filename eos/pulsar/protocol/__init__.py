"""The Pulsar protocol without I/O: tables of states, fed with commands, answering with commands.

Nothing in here opens a socket, reads a clock or starts a thread; `eos.pulsar.net` does that.
"""
