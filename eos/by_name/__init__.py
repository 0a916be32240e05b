"""`format("pulsar")`: what Spark finds by that name, to read topics and to write them."""
