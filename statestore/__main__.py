"""`python -m statestore` is the command `statestore`."""

from statestore.cli.app import app

app()
