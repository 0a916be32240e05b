"""What a sink asks of its brokers before it starts. Nothing here writes; a refusal names what an operator must set."""
