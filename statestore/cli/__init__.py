"""The command `statestore`: a file for each group of verbs."""
