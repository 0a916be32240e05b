"""What the sink and the state on `bk://` cost, next to what one would use without them. Run by `make bench`."""
