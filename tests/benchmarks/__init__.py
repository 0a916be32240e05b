"""The cost of the sink and of the state on `bk://`, next to what one would use without them. Run by `make bench`."""
