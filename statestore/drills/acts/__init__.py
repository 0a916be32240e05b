"""Rehearsals beside a live job, and the loss of everything but a savepoint."""
