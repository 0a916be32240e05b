"""The checks of a sink's brokers before it starts. Nothing here writes; a refusal names what an operator must set."""
