"""The oracle: what came out against what went in. It shares no code with what it judges."""
