"""The Pulsar protocol, of use without Spark: bytes, state machines, sockets."""
