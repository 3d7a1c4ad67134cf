"""What the fields of a kind are, and how Go reads and writes them."""
