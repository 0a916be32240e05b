"""`python -m eos` is the command `eos`."""

from eos.cli.app import app

app()
