"""What the sink costs, next to the clients and baselines that one would use without it. Run by `make bench-sink`."""
