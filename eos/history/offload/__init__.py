"""Ledgers that a broker has offloaded, read from secondary storage: both of Pulsar's formats, by `pyarrow.fs`."""
