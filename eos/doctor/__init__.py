"""What holds readers up, and how to free them."""
