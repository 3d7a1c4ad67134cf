"""The fields of each kind, and how Go reads and writes them."""
