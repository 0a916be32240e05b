"""Faults by a plan drawn from a seed, in jobs that run on a cluster of their own."""
