"""A drill as a page and as JSON, from its journal alone."""
