"""Bytes only: frames, batch encoding, checksums, compression and routing. No sockets, no clocks."""
