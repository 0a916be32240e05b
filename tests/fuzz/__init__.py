"""Real entries, damaged at random, and what is read of them held against readers that are not ours."""
