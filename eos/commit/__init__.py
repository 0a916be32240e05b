"""Commits of batches: the decision, the attempt, and the control log. It reaches the network through its ports only."""
