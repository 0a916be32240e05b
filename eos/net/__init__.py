"""The only place with sockets and threads. `eos.net.client` is the way in."""
