"""The command `eos`: a file for each group of verbs."""
