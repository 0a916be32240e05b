"""The only place with sockets and threads. `eos.pulsar.net.client` is the way in."""
